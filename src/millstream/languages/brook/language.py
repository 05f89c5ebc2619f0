"""Brook, as the rest of the house knows it."""

from millstream.languages.language import Language

LANGUAGE = Language("brook", (".brook",), "brook", load="millstream.languages.brook.load:translate")
