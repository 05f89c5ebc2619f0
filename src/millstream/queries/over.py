"""OVER: columns that follow from the place of a row among others.

All that have one order of one partition are made by one `Ordered`, each with its frame.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from millstream.calculus import syntax
from millstream.calculus.functions import Frame, FunctionFault, Ordered, Placed
from millstream.calculus.library.places import is_known_in_time, placed_in_time
from millstream.calculus.terms import Call, Literal, Term
from millstream.calculus.types import BOOLEAN, INTEGER, Kind
from millstream.errors import Fault
from millstream.queries import ast
from millstream.queries.build import Builder, Flow
from millstream.queries.joins import with_columns
from millstream.queries.scope import Names
from millstream.queries.terms import Replacing, term_of, walk, written
from millstream.queries.tokens import stop
from millstream.source import Span

#: Aggregates that may stand before OVER.
_SUMS = ("sum", "count", "avg", "min", "max")
_WHOLE = Frame()
_NEIGHBOURS = ("lag", "lead")
#: A neighbour of a neighbour's neighbour is as far as one looks.
_FARTHEST = 1_000_000


def overs_in(expressions: Sequence[ast.Expression]) -> list[ast.Over]:
    """Every OVER inside some expressions, once."""
    return list(dict.fromkeys(p for e in expressions for p in walk(e) if isinstance(p, ast.Over)))


@dataclass(frozen=True, slots=True)
class OverWindow:
    """A partition and an order, as columns."""

    by: tuple[str, ...]
    on: tuple[str, ...]
    descending: tuple[str, ...]


@dataclass
class Placing:
    """Mutable: adds to a flow what OVER asks for."""

    builder: Builder
    prefix: str
    faults: list[Fault]
    names: Names
    span: Span
    replacing: Replacing
    #: The columns that are the time at which rows come, if they come in that order.
    times: frozenset[str] = frozenset()
    written: dict[ast.Over, syntax.Expression] = field(default_factory=dict)

    def placed(self, flow: Flow, overs: Sequence[ast.Over]) -> Flow:
        """The flow with a column for each of them, and perhaps others that these are made of."""
        windows: dict[OverWindow, list[Placed]] = {}
        for over in overs:
            flow, window = self._window(flow, over)
            flow = self._written(flow, over, windows.setdefault(window, []))
        for window, columns in windows.items():
            if self._is_in_time(window, columns):
                wiring, name = self.builder.wiring, f"{self.prefix}_places"
                made = placed_in_time(
                    wiring, flow.wired, window.by, window.on[0], columns, name=name
                )
                flow = Flow(made.name, made.type, is_monotone=True, beats=flow.beats)
                continue
            self.times = frozenset()  # rows may leave from here on
            function = Ordered(window.by, window.on, window.descending, tuple(columns))
            flow = self.builder.add(
                function, flow, name=f"{self.prefix}_ordered", span=self.span, is_monotone=False
            )
        return flow

    def _is_in_time(self, window: OverWindow, columns: Sequence[Placed]) -> bool:
        """Is what is asked for known when a row comes?"""
        is_order = len(window.on) == 1 and not window.descending and window.on[0] in self.times
        return is_order and all(is_known_in_time(column) for column in columns)

    def replaced(self, expression: ast.Expression) -> syntax.Expression | None:
        """What to write for parts of expressions from now on."""
        if isinstance(expression, ast.Over):
            return self.written[expression]
        return self.replacing(expression)

    # --- partitions and orders ---

    def _term(self, flow: Flow, expression: ast.Expression) -> Term:
        return term_of(expression, self.names, flow.schema, self.faults, replacing=self.replacing)

    def _window(self, flow: Flow, over: ast.Over) -> tuple[Flow, OverWindow]:
        terms = [self._term(flow, e) for e in over.by]
        orders: list[tuple[Term, bool]] = []
        for one in over.order:
            term = self._term(flow, one.value)
            if one.nulls_first == one.is_descending:
                # Nulls are less than all else, unless they are told to be otherwise.
                orders.append((Call("is_null", (term,), BOOLEAN, term.span), one.nulls_first))
            orders.append((term, one.is_descending))
        every = [*terms, *(term for term, _ in orders)]
        flow, named = with_columns(self.builder, flow, every, self.prefix, self.span)
        on = named[len(terms) :]
        down = [name for name, (_, is_down) in zip(on, orders, strict=True) if is_down]
        by = tuple(dict.fromkeys(named[: len(terms)]))
        self._check(over, orders, flow)
        return flow, OverWindow(by, tuple(dict.fromkeys(on)), tuple(dict.fromkeys(down)))

    def _check(self, over: ast.Over, orders: list[tuple[Term, bool]], flow: Flow) -> None:
        is_measured = over.frame.unit == "range" and any(
            end not in (None, 0) for end in over.frame.ends
        )
        if not is_measured:
            return
        if len(orders) != 1 or orders[0][0].type.kind in (Kind.TEXT, Kind.BOOLEAN):
            message = "such a RANGE needs ORDER BY one number or time, its nulls where they are"
            stop(self.faults, message, over.span)

    # --- functions ---

    def _written(self, flow: Flow, over: ast.Over, columns: list[Placed]) -> Flow:
        """Note what is to be written for an OVER, and the columns that needs."""
        name = over.function.name

        def place(function: str, column: str | None = None, offset: int = 1,
                  frame: Frame = _WHOLE) -> syntax.Expression:  # fmt: skip
            wanted = Placed("", function, column, offset, "", frame)
            for known in columns:
                if known == Placed(known.name, function, column, offset, "", frame):
                    return syntax.Name(known.name, over.span)
            placed = Placed(self.builder.hidden(function), *_fields(wanted))
            try:
                placed.result_type(flow.schema)
            except FunctionFault as fault:
                stop(self.faults, str(fault).removeprefix("Ordered: "), over.span)
            columns.append(placed)
            return syntax.Name(placed.name, over.span)

        if over.args and name != "ntile":
            flow, column = self._argument(flow, over)
        else:
            column = None
        if name in ("row_number", "rank", "dense_rank"):
            made = place(name)
        elif name in _NEIGHBOURS:
            made = self._neighbour(flow, over, column, place)
        elif name in ("first_value", "last_value"):
            made = place(name.removesuffix("_value"), column, frame=over.frame)
        elif name in _SUMS:
            made = place(name, column, frame=over.frame)
        elif name in ("percent_rank", "cume_dist", "ntile"):
            made = self._share(over, place)
        else:
            hint = "before OVER there may stand SUM, COUNT, AVG, MIN, MAX and functions of places"
            stop(self.faults, f"{name.upper()} cannot stand before OVER", over.function.span, hint)
        self.written[over] = made
        return flow

    def _argument(self, flow: Flow, over: ast.Over) -> tuple[Flow, str]:
        term = self._term(flow, over.args[0])
        if over.where is not None:
            condition = term_of(
                over.where, self.names, flow.schema, self.faults, wanted=BOOLEAN,
                replacing=self.replacing,
            )  # fmt: skip
            term = Call("if", (condition, term, Literal(None, term.type)), term.type, term.span)
        flow, (column,) = with_columns(self.builder, flow, [term], self.prefix, self.span)
        return flow, column

    def _whole(self, over: ast.Over, number: int, what: str) -> int:
        """An argument that is a whole number, written down."""
        arg = over.args[number]
        value = arg.value if isinstance(arg, ast.Constant) and arg.type == INTEGER else None
        if not isinstance(value, int) or not 0 <= value <= _FARTHEST:
            stop(self.faults, f"expected {what}, written as a number", arg.span)
        return value

    def _neighbour(
        self, flow: Flow, over: ast.Over, column: str | None,
        place: Callable[..., syntax.Expression],
    ) -> syntax.Expression:  # fmt: skip
        offset = 1 if len(over.args) < 2 else self._whole(over, 1, "a number of rows")
        self._needs_order(over)
        neighbour = place(over.function.name, column, offset)
        if len(over.args) < 3:
            return neighbour
        # The third is told where there is no such row, not where its value is null.
        otherwise = written(over.args[2], self.names, self.faults, self.replacing)
        distance: syntax.Expression = place("row_number")
        if over.function.name == "lead":
            rows = place("count")
            distance = _apply("+", _apply("-", rows, distance), syntax.Constant(1, INTEGER))
        is_beyond = _apply("<=", distance, syntax.Constant(offset, INTEGER))
        return _apply("if", is_beyond, otherwise, neighbour)

    def _share(self, over: ast.Over, place: Callable[..., syntax.Expression]) -> syntax.Expression:
        """How far a row is in its partition, of 1 or of so many parts."""
        self._needs_order(over)
        one = syntax.Constant(1, INTEGER)
        rows = place("count")
        if over.function.name == "cume_dist":
            return _apply("/", place("count", frame=Frame("range", None, 0)), rows)
        if over.function.name == "percent_rank":
            others = _apply("greatest", _apply("-", rows, one), one)
            return _apply("/", _apply("-", place("rank"), one), others)
        parts = syntax.Constant(max(self._whole(over, 0, "a number of parts"), 1), INTEGER)
        before = _apply("-", place("row_number"), one)
        small, larger = _apply("div", rows, parts), _apply("%", rows, parts)
        # The first parts have a row more, if rows do not go into them.
        large = _apply("+", small, one)
        in_large = _apply("*", larger, large)
        rest = _apply("div", _apply("-", before, in_large), _apply("greatest", small, one))
        number = _apply("if", _apply("<", before, in_large), _apply("div", before, large),
                        _apply("+", rest, larger))  # fmt: skip
        return _apply("+", number, one)

    def _needs_order(self, over: ast.Over) -> None:
        if not over.order:
            name = over.function.name.upper()
            stop(self.faults, f"{name} needs ORDER BY inside OVER (...)", over.span)


def _fields(placed: Placed) -> tuple[str, str | None, int, str, Frame]:
    return placed.function, placed.column, placed.offset, placed.between, placed.frame


def _apply(function: str, *args: syntax.Expression) -> syntax.Expression:
    return syntax.Apply(function, args)
