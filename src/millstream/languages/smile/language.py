"""SMILE, as the rest of the house knows it."""

from millstream.languages.language import Language

LANGUAGE = Language(
    "smile", (".smile",), "smile", load="millstream.languages.smile.load:load",
    served="millstream.languages.smile.served:load_served",
)  # fmt: skip
