"""Pipes, as the rest of the house knows them."""

from millstream.languages.language import Language

LANGUAGE = Language(
    "pipes",
    (".jaql",),
    "pipes",
    read="millstream.languages.pipes.node:read",
    settings="millstream.languages.pipes.node:settings",
    node_keys=("set",),
    takes_names=True,
)
