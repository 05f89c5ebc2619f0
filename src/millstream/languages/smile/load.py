"""The whole of SMILE: from the text of a file to what it means."""

from __future__ import annotations

from millstream.languages.language import Translation
from millstream.languages.smile.statements import read_statements
from millstream.languages.smile.translate import translate
from millstream.source import Source


def load(source: Source) -> Translation:
    """The verified program of a text, or an error with every fault in it."""
    return translate(source, read_statements(source))
