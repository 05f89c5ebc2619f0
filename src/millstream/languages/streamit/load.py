"""From a StreamIt text to a program of the calculus."""

from __future__ import annotations

from millstream.languages.language import Translation
from millstream.languages.streamit.translate import program_of
from millstream.source import Source


def load(source: Source) -> Translation:
    """What a text means, or all that is wrong with it."""
    return Translation(program_of(source))
