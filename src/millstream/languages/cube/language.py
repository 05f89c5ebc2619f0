"""Cubes, as the rest of the house knows them."""

from millstream.languages.language import Language

LANGUAGE = Language(
    "cube",
    (".conf",),
    "cube",
    read="millstream.languages.cube.node:read",
    settings="millstream.languages.cube.node:settings",
    names_itself=True,
    node_keys=("over",),
    section=("cube", "config"),
)
