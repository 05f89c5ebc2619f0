"""Sawzall, as the rest of the house knows it."""

from millstream.languages.language import Language, Option

LANGUAGE = Language(
    "sawzall",
    (".szl",),
    "sawzall",
    load="millstream.languages.sawzall.load:load",
    read="millstream.languages.sawzall.load:read",
    settings="millstream.languages.sawzall.load:node_settings",
    node_keys=("every", "window", "timezone"),
    takes_names=True,
    options=(
        Option(
            "run",
            ("--ignore-undefs",),
            "of Sawzall: pass over statements that have no value, and keep the record",
            sets="name",
        ),
        Option(
            "run",
            ("--emits",),
            "of Sawzall: print each emit, as source, and no tables",
            sets="name",
        ),
        Option(
            "run",
            ("--timezone",),
            "of Sawzall: the zone of times that name none (default: UTC)",
            metavar="ZONE",
            sets="name",
        ),
    ),
)
