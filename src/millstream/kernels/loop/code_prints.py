"""What is printed: a template for each place that prints; a loop keeps the values for it."""

from __future__ import annotations

from dataclasses import dataclass

from millstream.calculus.terms import Call, Literal, Term
from millstream.kernels.loop.code_layout import NotCompiled
from millstream.values.types import TEXT

_TEXTS = ("int32_text", "single_text", "bit_text", "boolean_text")


@dataclass(frozen=True, slots=True)
class Template:
    """Pieces of a text: literal ones, and terms whose values stand in it."""

    pieces: tuple[str | Term, ...]

    @property
    def terms(self) -> tuple[Term, ...]:
        return tuple(piece for piece in self.pieces if not isinstance(piece, str))


def template_of(term: Term) -> Template:
    """A printed text taken apart."""
    match term:
        case Literal(str(text), _):
            return Template((text,))
        case Call("||", (left, right)):
            return Template(template_of(left).pieces + template_of(right).pieces)
        case Call(function, (value,)) if function in _TEXTS and value.type != TEXT:
            return Template((value,))
        case _:
            raise NotCompiled("a text that is calculated")
