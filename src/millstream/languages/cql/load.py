"""The whole of CQL: from the text of a file to what it means."""

from __future__ import annotations

from millstream.languages.cql.statements import read_statements
from millstream.languages.cql.translate import translate
from millstream.languages.language import Translation
from millstream.source import Source


def load(source: Source) -> Translation:
    """The verified program of a text, or an error with every fault in it."""
    return translate(read_statements(source))
