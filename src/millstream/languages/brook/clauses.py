"""The clauses of an operator, from what is written to names, terms and numbers."""

from __future__ import annotations

from dataclasses import dataclass, field

from millstream.calculus import functions
from millstream.calculus.check import Scope, check_into
from millstream.calculus.syntax import Constant, Expression, Name
from millstream.calculus.terms import Term
from millstream.calculus.types import (
    BOOLEAN,
    DURATION,
    INTEGER,
    TIME_COLUMN,
    WEIGHT_COLUMN,
    QueueType,
    Schema,
    Type,
)
from millstream.errors import Fault
from millstream.languages.brook.written import (
    Item,
    WrittenOperator,
)
from millstream.source import Span


def check_names(names: list[tuple[str, Span]], faults: list[Fault]) -> None:
    seen: set[str] = set()
    for name, span in names:
        if name in seen:
            faults.append(Fault(f'there are two columns "{name}"', span))
        if name in (TIME_COLUMN, WEIGHT_COLUMN):
            faults.append(Fault(f'"{name}" is a reserved name; every item has it', span))
        seen.add(name)


@dataclass
class Clauses:
    """Mutable: the clauses of one operator, and what is wrong with them."""

    op: WrittenOperator
    inputs: tuple[QueueType, ...]
    variables: dict[str, Schema]
    faults: list[Fault]
    scope: Scope = field(init=False)

    def __post_init__(self) -> None:
        readable = {w.name for w in self.op.reads}
        known = {n: s for n, s in self.variables.items() if n in readable}
        fields = tuple(dict.fromkeys(f for i in self.inputs for f in i.schema))
        owner = " and ".join(q.name for q in self.op.inputs)
        self.scope = Scope(Schema(fields), owner, known)

    def fail(self, message: str, span: Span | None = None, hint: str | None = None) -> None:
        self.faults.append(Fault(message, span or self.op.function.span, hint))

    def items(self, keyword: str | None) -> tuple[Item, ...]:
        return tuple(i for c in self.op.clauses if c.keyword == keyword for i in c.items)

    def column_names(self, keyword: str) -> tuple[str, ...]:
        names = []
        for item in self.items(keyword):
            if isinstance(item.value, Name) and item.target is None:
                check_into(item.value, self.scope, self.faults)
                names.append(item.value.name)
            else:
                self.fail("expected the name of a column", item.span)
        return tuple(names)

    def term(self, expression: Expression, wanted: Type | None = None) -> Term | None:
        return check_into(expression, self.scope, self.faults, wanted=wanted)

    def condition(self, items: tuple[Item, ...], word: str) -> Term | None:
        if not items:
            return None
        if items[0].target is not None:
            self.fail(
                "expected a condition, got an assignment", items[0].span, "write == to compare"
            )
            return None
        if len(items) != 1:
            self.fail(f"expected one condition after `{word}`", items[1].span)
            return None
        return self.term(items[0].value, BOOLEAN)

    def columns(self, items: tuple[Item, ...]) -> functions.Columns:
        assigned: list[functions.Assign] = []
        for item in items:
            target = item.target or item.value
            if not isinstance(target, Name):
                self.fail("this column needs a name", item.span, "write: name = expression")
                continue
            check_names(
                [(a.name, item.span) for a in assigned if a.name == target.name]
                + [(target.name, item.span)],
                self.faults,
            )
            term = self.term(item.value)
            if term is not None:
                assigned.append(functions.Assign(target.name, term))
        return tuple(assigned)

    def whole(self, items: tuple[Item, ...], what: str) -> tuple[int, ...]:
        numbers = []
        for item in items:
            value = item.value
            if isinstance(value, Constant) and value.type == INTEGER and item.target is None:
                assert isinstance(value.value, int)
                numbers.append(value.value)
            else:
                self.fail(f"expected {what}", item.span)
        return tuple(numbers)

    def durations(self, keyword: str | None, usage: str) -> tuple[int, ...]:
        """The durations of a clause; none if there is no such clause."""
        durations = []
        for item in self.items(keyword):
            value = item.value
            if isinstance(value, Constant) and value.type == DURATION and item.target is None:
                assert isinstance(value.value, int)
                durations.append(value.value)
            else:
                self.fail("expected a duration", item.span, f"usage: {usage}")
        return tuple(durations)

    def duration(self, keyword: str | None, usage: str) -> int | None:
        """The one duration of a clause, or None if there is no such clause."""
        durations = self.durations(keyword, usage)
        if len(durations) > 1:
            what = f"`{keyword}`" if keyword else self.op.function.name
            self.fail(f"{what} needs one duration", hint=f"usage: {usage}")
        return durations[0] if durations else None

    def pairs(self) -> tuple[tuple[str, str], ...]:
        pairs: list[tuple[str, str]] = []
        for item in self.items("on"):
            left, right = item.target or item.value, item.value
            if isinstance(left, Name) and isinstance(right, Name):
                pairs.append((left.name, right.name))
            else:
                self.fail("expected `column` or `left = right`", item.span)
        return tuple(pairs)

    def has(self, flag: str) -> bool:
        return any(c.keyword == flag for c in self.op.clauses)

    def texts(self, what: str) -> list[str]:
        lines: list[str] = []
        for item in self.items(None):
            value = item.value
            if isinstance(value, Constant) and isinstance(value.value, str):
                lines.append(value.value)
            else:
                self.fail(f"expected {what}", item.span)
        return lines

    def weights(self) -> tuple[int, ...]:
        return self.whole(self.items(None), "a weight")
