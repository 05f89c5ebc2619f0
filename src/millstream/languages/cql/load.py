"""The whole of CQL: from the text of a file to what it means."""

from __future__ import annotations

from millstream.languages.cql.statements import read_statements
from millstream.languages.language import Translation, beside
from millstream.queries.translate import translate
from millstream.source import Source


def load(source: Source) -> Translation:
    """The verified program of a text, or an error with every fault in it."""
    made = translate(read_statements(source), beside(source))
    return Translation(made.program, made.sources, made.sinks, warnings=made.warnings)
