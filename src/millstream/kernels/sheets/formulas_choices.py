"""Comparisons and choices, as statements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from millstream.kernels.sheets.formulas_base import BOOLEAN, MIXED, NUMBER, TEXT, FormulasBase
from millstream.kernels.sheets.operands import (
    FIRST_ERROR,
    TEXT_HELD,
    Operand,
    constant,
    pair,
    refuse_if,
)
from millstream.values.excel.kinds import Kind
from millstream.values.excel.syntax import Literal, Node
from millstream.values.excel.values import NA, VALUE

COMPARISONS = {"=": "== 0", "<>": "!= 0", "<": "< 0", ">": "> 0", "<=": "<= 0", ">=": ">= 0"}
_RANKS = {NUMBER: 0, TEXT: 1, BOOLEAN: 2, MIXED: 0}


class Choices(FormulasBase):
    """The functions and operators that decide something."""

    def comparison(self, operator: str, a: Operand, b: Operand) -> Operand:
        kind = b.kind if a.is_left_out else a.kind
        is_same = a.is_left_out or b.is_left_out or a.kind is b.kind
        if is_same and kind is not MIXED:
            refuse_if(kind is TEXT and operator not in ("=", "<>"), "an order of texts")
            # A text or boolean cell that may show zero for an empty one is two kinds.
            if kind is NUMBER or not (a.shows_zero or b.shows_zero):
                return self.compared(kind, operator, a, b)
        return self.compared_as_they_are(operator, a, b)

    def compared(self, kind: Kind, operator: str, a: Operand, b: Operand) -> Operand:
        function = "compared" if kind is NUMBER else "compared_plainly"
        arguments = [a.value, a.status, b.value, b.status]
        if kind is TEXT:
            arguments = [self._folded(a), a.status, self._folded(b), b.status]
        self.lines.used.add(function)
        order, status = self.lines.made(f"{function}({', '.join(arguments)})")
        value, _ = self.lines.fresh()
        self.lines.add(f"{value} = ({order} {COMPARISONS[operator]}) * 1.0")
        return Operand(BOOLEAN, value, status, may_be_empty=False)

    def _folded(self, operand: Operand) -> str:
        """The number of the text in small letters; texts are compared without case."""
        return "0.0" if operand.is_left_out else f"folded[int({operand.value})]"

    def compared_as_they_are(self, operator: str, a: Operand, b: Operand) -> Operand:
        """Of different kinds, or of kinds that only statuses tell."""
        may_be_texts = all(o.kind in (TEXT, MIXED) for o in (a, b))
        refuse_if(may_be_texts and operator not in ("=", "<>"), "an order of texts")
        sides = [f"{self._compared_by(o)}, np.int64({o.status}), {_RANKS[o.kind]}" for o in (a, b)]
        self.lines.used.add("compared_kinds")
        order, status = self.lines.made(f"compared_kinds({', '.join(sides)})")
        value, _ = self.lines.fresh()
        self.lines.add(f"{value} = ({order} {COMPARISONS[operator]}) * 1.0")
        return Operand(BOOLEAN, value, status, may_be_empty=False)

    def _compared_by(self, operand: Operand) -> str:
        if operand.kind is TEXT:
            return f"float({self._folded(operand)})"
        if operand.kind is not MIXED:
            return operand.value
        folded = f"float(folded[int({operand.value})])"
        return f"({folded} if {operand.status} == {TEXT_HELD} else {operand.value})"

    def if_(self, arguments: tuple[Node, ...]) -> Operand:
        condition = self.truth(self.operand(arguments[0]))
        texts = self.around.texts
        then, other = constant(True, texts), constant(False, texts)
        if len(arguments) > 1:
            then = self.branch(condition, "== 0.0", lambda: self.side(arguments[1]))
        if len(arguments) > 2:
            other = self.branch(condition, "!= 0.0", lambda: self.side(arguments[2]))
        return self.chosen(condition, then, other)

    def chosen(self, condition: Operand, then: Operand, other: Operand) -> Operand:
        then, other = self._alike(then, other)
        kind = other.kind if then.is_left_out else then.kind
        return replace(
            self.choice(condition, then, other),
            kind=kind,
            shows_zero=then.shows_zero or other.shows_zero,
            may_be_empty=then.may_be_empty or other.may_be_empty,
        )

    def side(self, node: Node) -> Operand:
        return self.operand(node)

    def branch(self, condition: Operand, test: str, make: Callable[[], Operand]) -> Operand:
        """One side of IF, which is not taken if the condition meets the test.

        Both sides are computed, unless something is called for one.
        """
        start, called = len(self.lines.lines), self.called
        made = make()
        if self.called == called:
            return made
        body = self.lines.lines[start:]
        del self.lines.lines[start:]
        value, status = self.lines.fresh()
        self.lines.add(f"{value}, {status} = 0.0, 0")
        self.lines.add(f"if not ({condition.value} {test}):")
        self.lines.lines += [f"    {line}" for line in body]
        self.lines.add(f"    {value}, {status} = {made.value}, {made.status}")
        return replace(made, value=value, status=status)

    def choice(self, condition: Operand, then: Operand, other: Operand) -> Operand:
        return self.lines.call(then.kind, "choose", *pair(condition), *pair(then), *pair(other))

    def _alike(self, a: Operand, b: Operand) -> tuple[Operand, Operand]:
        """Both of one kind, be it that of all kinds."""
        if a.is_left_out or b.is_left_out or a.kind is b.kind:
            return a, b
        return self.as_mixed(a), self.as_mixed(b)

    def if_error(self, arguments: tuple[Node, ...]) -> Operand:
        return self._or_else("if_error", arguments)

    def if_na(self, arguments: tuple[Node, ...]) -> Operand:
        return self._or_else("if_na", arguments)

    def _or_else(self, function: str, arguments: tuple[Node, ...]) -> Operand:
        a, b = self._alike(self.operand(arguments[0]), self.operand(arguments[1]))
        kind = b.kind if a.is_left_out else a.kind
        return replace(
            self.lines.call(kind, function, *pair(a), *pair(b)),
            shows_zero=a.shows_zero or b.shows_zero,
            may_be_empty=a.may_be_empty or b.may_be_empty,
        )

    def ifs(self, arguments: tuple[Node, ...]) -> Operand:
        """As IF inside of IF; in the end there is no value."""
        return self._first_that_holds(
            [
                (lambda test=test: self.truth(self.operand(test)), result)  # type: ignore[misc]
                for test, result in zip(arguments[::2], arguments[1::2], strict=True)
            ],
            Literal(NA),
        )

    def switch(self, arguments: tuple[Node, ...]) -> Operand:
        value, rest = self.operand(arguments[0]), arguments[1:]
        return self._first_that_holds(
            [
                (lambda case=case: self.comparison("=", value, self.operand(case)), result)  # type: ignore[misc]
                for case, result in zip(rest[::2], rest[1::2], strict=False)
            ],
            rest[-1] if len(rest) % 2 else Literal(NA),
        )

    def choose(self, arguments: tuple[Node, ...]) -> Operand:
        which = self.number(self.operand(arguments[0]))
        # What comes after the point does not count.
        whole, status = self.lines.fresh()
        self.lines.add(f"{whole} = np.trunc({which.value})")
        self.lines.add(f"{status} = {which.status}")

        def is_it(number: int) -> Operand:
            value, _ = self.lines.fresh()
            self.lines.add(f"{value} = ({whole} == {number}.0) * 1.0")
            return Operand(BOOLEAN, value, status, may_be_empty=False)

        return self._first_that_holds(
            [
                (lambda number=number: is_it(number), result)  # type: ignore[misc]
                for number, result in enumerate(arguments[1:], 1)
            ],
            Literal(VALUE),
        )

    def _first_that_holds(
        self, cases: Sequence[tuple[Callable[[], Operand], Node]], otherwise: Node
    ) -> Operand:
        """What belongs to the first condition that holds; later ones are not looked at."""
        if not cases:
            return self.side(otherwise)
        (test, result), *rest = cases
        condition = test()
        then = self.branch(condition, "== 0.0", lambda: self.side(result))
        other = self.branch(condition, "!= 0.0", lambda: self._first_that_holds(rest, otherwise))
        return self.chosen(condition, then, other)

    def not_(self, arguments: tuple[Node, ...]) -> Operand:
        operand = self.truth(self.operand(arguments[0]))
        value, status = self.lines.fresh()
        self.lines.add(f"{value} = ({operand.value} == 0.0) * 1.0")
        self.lines.add(f"{status} = {operand.status} if {operand.status} >= {FIRST_ERROR} else 0")
        return Operand(BOOLEAN, value, status, may_be_empty=False)
