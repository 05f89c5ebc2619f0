"""The whole of brook: from the text of a file to what it means."""

from __future__ import annotations

from millstream.calculus.graph import Program
from millstream.calculus.verify import verified
from millstream.languages.brook.elaborate import elaborate
from millstream.languages.brook.parser import parse
from millstream.languages.language import Translation
from millstream.source import Source


def load(source: Source) -> Program:
    """The verified program of a text, or an error with every fault in it."""
    return verified(elaborate(parse(source)))


def translate(source: Source) -> Translation:
    return Translation(load(source))
