"""Spreadsheets, as the rest of the house knows them."""

from millstream.languages.language import Language, Option

LANGUAGE = Language(
    "sheets",
    (".xlsx", ".xlsm"),
    "sheet",
    read="millstream.languages.sheets.node:read",
    settings="millstream.languages.sheets.node:settings",
    names_itself=True,
    node_keys=("partition", "firing"),
    options=(
        Option(
            "run",
            ("--watch",),
            "show a sheet with live values instead of running",
            view="millstream.languages.sheets.watch:view",
        ),
        Option("run", ("--key",), "with --watch: whose sheet (default: the first)", metavar="KEY"),
    ),
)
