"""The whole of CQL: from the text of a file to what it means."""

from __future__ import annotations

from pathlib import Path

from millstream.errors import Fault
from millstream.languages.cql.inferred import DeclaredByItself
from millstream.languages.cql.statements import read_statements
from millstream.languages.language import Translation, beside
from millstream.queries.translate import translate
from millstream.source import Source


def load(source: Source) -> Translation:
    """The verified program of a text, or an error with every fault in it."""
    notes: list[Fault] = []
    read = read_statements(source, DeclaredByItself(Path(source.name).parent, notes))
    made = translate(read, beside(source))
    return Translation(made.program, made.sources, made.sinks, warnings=(*notes, *made.warnings))
