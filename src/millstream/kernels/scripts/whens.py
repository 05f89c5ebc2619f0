"""Lines of Python, and statements with quantifiers as loops."""

from __future__ import annotations

from abc import abstractmethod

from millstream.calculus.scripts import (
    Block,
    Quantifier,
    Script,
    Statement,
    When,
)
from millstream.kernels.scripts.expressions import ExpressionWriter, NotGenerated
from millstream.source import Span
from millstream.values.records.types import MapOf, resolved

#: Deeper blocks than this are more than Python takes.
_MOST_BLOCKS = 18


class WhenWriter(ExpressionWriter):
    """Mutable: the lines so far. What writes the other statements is made of it."""

    def __init__(self, script: Script, columns: tuple[str, ...]) -> None:
        super().__init__(script, columns)
        self.lines: list[str] = []
        self.places: dict[int, str] = {}
        self.indent = 0
        self.blocks = 0
        self.span: Span | None = None

    @abstractmethod
    def statement(self, statement: Statement) -> None:
        """Write a statement."""

    # --- lines ---

    def line(self, text: str) -> None:
        self.lines.append("  " * self.indent + text)
        if self.span is not None:
            self.places[len(self.lines)] = self.span.place

    def block(self, block: Block) -> None:
        if not block:
            self.line("pass")
        for statement in block:
            self.statement(statement)

    def nested(self, block: Block) -> None:
        self.indent += 1
        self.block(block)
        self.indent -= 1

    def open(self, text: str) -> None:
        """A block of Python's own, of which only so many may be inside of each other."""
        self.line(text)
        self.blocks += 1
        if self.blocks > _MOST_BLOCKS:
            raise NotGenerated("its statements are nested very deeply")

    # --- when ---

    def do_when(self, when: When) -> None:
        words = [q.word for q in when.quantifiers]
        first = words.index("all") if "all" in words else len(words)
        if set(words[first:]) - {"all"}:
            raise NotGenerated("a quantifier comes after `all`")
        holds = self.temporary()
        self.quantified(when, when.quantifiers[:first], when.quantifiers[first:], holds)

    def quantified(
        self, when: When, bound: tuple[Quantifier, ...], alls: tuple[Quantifier, ...], holds: str
    ) -> None:
        if not bound:
            self.tested(when, alls, holds)
            return
        quantifier, *others = bound
        self.line(f"{holds} = False")
        self.open(f"for {self.var(quantifier.var)} in {self.range_of(quantifier)}:")
        self.indent += 1
        inner = self.temporary()
        self.quantified(when, tuple(others), alls, inner)
        self.line(f"{holds} = {holds} or {inner}")
        if quantifier.word == "some":
            self.line(f"if {inner}: break")
        self.indent -= 1
        self.blocks -= 1

    def tested(self, when: When, alls: tuple[Quantifier, ...], holds: str) -> None:
        """What is to be done, if the condition holds, for all that must be looked at."""
        self.line(f"{holds} = True")
        self.all_of(when, alls, holds)
        self.line(f"if {holds}:")
        self.nested(when.body)

    def all_of(self, when: When, alls: tuple[Quantifier, ...], holds: str) -> None:
        if not alls:
            condition = self.value(when.condition)
            if self.is_sure(when.condition):
                self.line(f"{holds} = {condition}")
                return
            self.line("try:")
            self.line(f"  {holds} = {condition}")
            self.line("except UNDEFINED:")
            self.line(f"  {holds} = False")
            return
        quantifier, *others = alls
        self.open(f"for {self.var(quantifier.var)} in {self.range_of(quantifier)}:")
        self.indent += 1
        self.all_of(when, tuple(others), holds)
        self.line(f"if not {holds}: break")
        self.indent -= 1
        self.blocks -= 1

    def range_of(self, quantifier: Quantifier) -> str:
        bases = [
            (isinstance(resolved(b.type), MapOf), self.raw(b), self.is_sure(b))
            for b in quantifier.ranges
        ]
        if len(bases) == 1 and bases[0][2]:
            is_map, base, _ = bases[0]
            return f"sorted({base})" if is_map else f"range(len({base}))"
        return "ranged(" + ", ".join(f"({m}, lambda: {b})" for m, b, _ in bases) + ")"
