"""StreamIt, as the rest of the house knows it."""

from millstream.languages.language import Language

LANGUAGE = Language(
    "streamit", (".str",), "streamit", load="millstream.languages.streamit.load:load"
)
