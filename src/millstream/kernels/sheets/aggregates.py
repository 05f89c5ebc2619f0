"""From aggregates of windows to statements: what each needs kept, and how it is read."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeGuard

from millstream.calculus.sheets import Address
from millstream.kernels.sheets.called import Site, Sites
from millstream.kernels.sheets.criteria import FUNCTIONS as CRITERIA
from millstream.kernels.sheets.criteria import Criteria
from millstream.kernels.sheets.operands import (
    Lines,
    NotCompiled,
    Operand,
    Texts,
    pair,
    refuse_if,
    written_number,
)
from millstream.kernels.sheets.window_lookups import xlookup
from millstream.kernels.sheets.windows import Group
from millstream.kernels.windows import pairs
from millstream.kernels.windows.ring import ERRORS
from millstream.kernels.windows.tops import MOST
from millstream.values.excel.kinds import Kind
from millstream.values.excel.syntax import Call, Cell, Node, WindowOf
from millstream.values.excel.syntax import Group as Parenthesis
from millstream.values.excel.values import Scalar

NUMBER, TEXT = Kind.NUMBER, Kind.TEXT
_SPREADS = {
    "VAR": (1, 0), "VAR.S": (1, 0), "VARP": (0, 0), "VAR.P": (0, 0),
    "STDEV": (1, 1), "STDEV.S": (1, 1), "STDEVP": (0, 1), "STDEV.P": (0, 1),
}  # fmt: skip


class Surroundings(Protocol):
    """What formulas refer to: cells of the path, constants, windows."""

    lines: Lines
    texts: Texts
    #: What is called.
    sites: Sites
    #: The cell whose formula is generated.
    place: Address | None
    #: Does the workbook count days from 1904?
    uses_1904: bool
    #: Are statements generated for nothing, to find kinds?
    is_scratch: bool

    def cell(self, address: Address) -> Operand | None:
        """A cell that changes, or None for a constant."""
        ...

    def fixed(self, address: Address) -> Scalar: ...

    def formula(self, address: Address) -> Node | None:
        """The formula of a cell that is computed."""
        ...

    def site(self, node: Node) -> Site | None:
        """A part of the formula that is generated now, if it is called."""
        ...

    def called_from_now_on(self, node: Node, reason: str) -> Site: ...

    def called_otherwise(self, node: Node, reason: str, *, is_seldom: bool = False) -> Site:
        """A part of the formula that is called for values for which it has no compiled form."""
        ...

    def is_compiled(self, node: Node, operand: Operand) -> None:
        """A part has a compiled form."""
        ...

    def window(self, address: Address) -> tuple[Group, int, Operand]:
        """The group of a window, its column there, and what its source holds."""
        ...


@dataclass
class Seen:
    """A window as an aggregate sees it: names in the generated code."""

    group: Group
    column: int
    source: Operand

    @property
    def place(self) -> str:
        return f"G{self.group.number}, E{self.group.number}"

    @property
    def counts(self) -> str:
        return self.group.counts(self.column)

    @property
    def numbers(self) -> str:
        return f"window_numbers(row, G{self.group.number}, {self.counts})"

    @property
    def error(self) -> str:
        call = f"error_in(row, pool, {self.place}, {self.column})"
        return f"({call} if row[{self.counts} + {ERRORS}] != 0 else 0)"

    @property
    def tree(self) -> str:
        return f"row, pool, numbers, {self.group.tree(self.column)}"


class Aggregates:
    """Generates statements for calls with windows among their arguments."""

    def __init__(
        self, around: Surroundings, operand: Callable[[Node], Operand],
        call_out: Callable[[Site], Operand],
    ) -> None:  # fmt: skip
        self.around = around
        self.lines = around.lines
        self.operand = operand
        self.call_out = call_out
        self.criteria = Criteria(self)

    def call(self, function: str, arguments: tuple[Node, ...]) -> Operand:
        windows = [n for n in arguments if isinstance(n, WindowOf)]
        others = [n for n in arguments if not isinstance(n, WindowOf)]
        if function == "SUMPRODUCT" and not others:
            return self._products([self.seen(n) for n in windows])
        if function in CRITERIA:
            return self.criteria.call(function, arguments)
        if function in ("FORECAST", "FORECAST.LINEAR") and len(windows) == 2 and len(others) == 1:
            return self._forecast(arguments)
        if function in _PAIRS and len(windows) == 2 and not others:
            return self._pairs(self.seen(windows[0]), self.seen(windows[1]), _PAIRS[function])
        if function == "XLOOKUP" and 3 <= len(arguments) <= 6:
            return xlookup(self, arguments)
        refuse_if(len(windows) > 1, f"{function} of several windows")
        window = self.seen(windows[0])
        if function == "INDEX" and arguments[0] is windows[0] and len(others) == 1:
            return self._index(window, others[0])
        if function == "MATCH" and len(arguments) > 1 and arguments[1] is windows[0]:
            return self._match(window, others)
        if function == "ROWS" and not others:
            group = f"G{window.group.number}"
            return self.made(f"float(row[{group} + SEEN] - row[{group} + FIRST]), 0")
        simple = _SIMPLE.get(function)
        if function == "COUNTA" and not others:
            return self.made(
                f"float(window_given(row, G{window.group.number}, {window.counts})), 0"
            )
        if window.source.kind not in (NUMBER, Kind.MIXED):
            raise NotCompiled(f"{function} of a window that does not hold numbers")
        if simple is not None and not others:
            return self.made(simple(window))
        if function in _SPREADS and not others:
            return self._spread(window, *_SPREADS[function])
        if function in ("RANK", "RANK.EQ") and arguments[1] is windows[0]:
            return self._rank(window, others)
        if function in _TOPS and len(others) == 1 and arguments[0] is windows[0]:
            count = self._few(others[0])
            if count:
                tops = window.group.top(window.column, _TOPS[function], count)
                return self.made(
                    f"window_top(row, pool, numbers, {tops}, {window.error}, {window.numbers}, "
                    f"{count})"
                )
        if function in _WITH_ONE and len(others) == 1 and arguments[0] is windows[0]:
            return self.made(_WITH_ONE[function].format(
                w=window.tree, e=window.error, a=", ".join(pair(self._number(others[0])))
            ))  # fmt: skip
        raise NotCompiled(f"{function} of a window")

    def seen(self, node: Node) -> Seen:
        assert isinstance(node, WindowOf)
        cell = node.cell
        return Seen(*self.around.window((cell.sheet, cell.row, cell.column)))

    def made(self, call: str) -> Operand:
        value, status = self.lines.made(call)
        return Operand(NUMBER, value, status, may_be_empty=False)

    def made_or_called(self, test: str, call: str, node: Node, reason: str) -> Operand:
        """What a call gives if a test holds; otherwise the loop calls out for the whole."""
        site = self.around.called_otherwise(node, reason)
        refuse_if(site.kind is not NUMBER, reason)
        value, status = self.lines.fresh()
        self.lines.add(f"{value}, {status} = 0.0, 0")
        self.lines.add(f"if {test}:")
        self.lines.add(f"    {value}, {status} = {call}")
        self.lines.add("else:")
        self.lines.depth += 1
        called = self.call_out(site)
        self.lines.add(f"{value}, {status} = {called.value}, {called.status}")
        self.lines.depth -= 1
        return Operand(NUMBER, value, status, may_be_empty=site.may_be_empty)

    def _number(self, node: Node) -> Operand:
        operand = self.operand(node)
        refuse_if(operand.kind in (TEXT, Kind.MIXED), "a text where a number is wanted")
        return operand

    # --- one by one ---

    def _index(self, window: Seen, place: Node) -> Operand:
        value, status = self.lines.fresh()
        which = self._number(place)
        self.lines.add(
            f"{value}, {status} = window_index(row, pool, numbers, {window.place}, "
            f"{window.column}, {which.value}, {which.status})"
        )
        return Operand(window.source.kind, value, status, shows_zero=window.source.shows_zero)

    def _match(self, window: Seen, others: Sequence[Node]) -> Operand:
        wanted = self.operand(others[0])
        if wanted.kind is not NUMBER or window.source.kind is not NUMBER:
            raise NotCompiled("MATCH of what is no number in a window")
        mode = written_number(others[1]) if len(others) > 1 else 1.0
        if mode is None:
            raise NotCompiled("MATCH in a window with a mode that is computed")
        if mode == 0:
            tops = self._tops_of(window, others[0])
            if tops:
                return self.made(
                    f"window_match_top(row, pool, numbers, {tops}, {window.numbers}, "
                    f"{', '.join(pair(wanted))})"
                )
            first = f"row[G{window.group.number} + FIRST]"
            return self.made(f"window_match({window.tree}, {first}, {', '.join(pair(wanted))})")
        trees, near = window.group.peak(window.column), "window_match_above"
        if mode > 0:
            trees, near = f"{trees}, {window.group.peak(window.column, -1)}", "window_match_below"
        return self.made(f"{near}(row, pool, numbers, {trees}, {', '.join(pair(wanted))})")

    def _few(self, node: Node) -> int:
        """A written number of values that is small; otherwise zero."""
        number = self.criteria.constant_number(node)
        return math.ceil(number) if number is not None and 1.0 <= number <= MOST else 0

    def _tops_of(self, window: Seen, node: Node) -> str | None:
        """The queues in which LARGE or SMALL has found what is looked for in the same window."""
        if isinstance(node, Cell):
            node = self.around.formula((node.sheet, node.row, node.column)) or node
        while isinstance(node, Parenthesis) or _is_or_else(node):
            node = node.inner if isinstance(node, Parenthesis) else node.arguments[0]
        if not (isinstance(node, Call) and node.function in _TOPS and len(node.arguments) == 2):
            return None
        source, which = node.arguments
        count = self._few(which)
        if not isinstance(source, WindowOf) or not count:
            return None
        other = self.seen(source)
        if other.group is not window.group or other.column != window.column:
            return None
        return window.group.top(window.column, _TOPS[node.function], count)

    def _rank(self, window: Seen, others: Sequence[Node]) -> Operand:
        x = self._number(others[0])
        rising = "0"
        if len(others) > 1:
            order = written_number(others[1])
            if order is None:
                raise NotCompiled("RANK with an order that is computed")
            rising = "1" if order else "0"
        return self.made(
            f"window_rank({window.tree}, {window.error}, {', '.join(pair(x))}, {rising})"
        )

    def _spread(self, window: Seen, less: int, is_root: int) -> Operand:
        kinds = ("number", "square", "rest", "scratch")
        places = ", ".join(window.group.sum((kind, (window.column,))) for kind in kinds)
        return self.made(
            f"window_spread(row, floats, ({places}), {window.error}, {window.numbers}, "
            f"{less}, {is_root}, wides)"
        )

    def _pairs(self, one: Seen, other: Seen, what: int) -> Operand:
        refuse_if(one.group is not other.group, "pairs of windows of different ticks")
        is_numeric = all(w.source.kind in (NUMBER, Kind.MIXED) for w in (one, other))
        refuse_if(not is_numeric, "pairs of windows that do not hold numbers")
        columns = f"{one.column}, {other.column}"
        return self.made(f"window_pairs(row, pool, numbers, {one.place}, {columns}, {what})")

    def _forecast(self, arguments: tuple[Node, ...]) -> Operand:
        x = self._number(arguments[0])
        ys, xs = (self.seen(n) for n in arguments[1:])
        start, steepness = (self._pairs(ys, xs, what) for what in (pairs.INTERCEPT, pairs.SLOPE))
        parts = ", ".join(part for o in (start, steepness, x) for part in pair(o))
        return self.made(f"point_of_line({parts})")

    def _products(self, windows: list[Seen]) -> Operand:
        if len({w.group.number for w in windows}) > 1:
            raise NotCompiled("SUMPRODUCT of windows of different ticks")
        if any(w.source.kind is not NUMBER for w in windows):
            raise NotCompiled("SUMPRODUCT of windows that do not hold numbers")
        columns = tuple(w.column for w in windows)
        if len(columns) == 1:
            place = windows[0].group.sum(("number", columns))
        else:
            place = windows[0].group.sum(("product", columns))
        tests = " or ".join(f"row[{w.counts} + {ERRORS}] != 0" for w in windows)
        error, _ = self.lines.fresh()
        which = sum(1 << 8 * c for c in set(columns))
        self.lines.add(
            f"{error} = first_error_of(row, pool, {windows[0].place}, {which}) if {tests} else 0"
        )
        return self.made(f"window_sum(row, floats, {place}, {error}, wides)")


def _is_or_else(node: Node) -> TypeGuard[Call]:
    return isinstance(node, Call) and node.function in ("IFERROR", "IFNA")


def _sum_place(window: Seen) -> str:
    return window.group.sum(("number", (window.column,)))


def _mode(window: Seen) -> str:
    return f"window_mode(row, pool, numbers, {window.group.mode(window.column)}, {window.error})"


def _extreme(window: Seen, sign: int) -> str:
    queue, word = window.group.queue(window.column, sign)
    return (
        f"window_extreme(row, pool, numbers, {window.place}, {queue}, {word}, "
        f"VALUES + {window.column}, {window.error})"
    )


_SIMPLE: dict[str, Callable[[Seen], str]] = {
    "SUM": lambda w: f"window_sum(row, floats, {_sum_place(w)}, {w.error}, wides)",
    "AVERAGE": lambda w: (
        f"window_average(row, floats, {_sum_place(w)}, {w.error}, {w.numbers}, wides)"
    ),
    "COUNT": lambda w: f"float({w.numbers}), 0",
    "MIN": lambda w: _extreme(w, 1),
    "MAX": lambda w: _extreme(w, -1),
    "MEDIAN": lambda w: f"window_median({w.tree}, {w.error})",
    "MODE": _mode,
    "MODE.SNGL": _mode,
    "PRODUCT": lambda w: (
        f"window_product(row, pool, {w.group.product(w.column)}, {w.error}, {w.numbers})"
    ),
    "SUMSQ": lambda w: (
        f"window_sum(row, floats, {w.group.sum(('product', (w.column, w.column)))}, "
        f"{w.error}, wides)"
    ),
}
_PAIRS = {
    "CORREL": pairs.CORRELATION, "COVAR": pairs.COVARIANCE, "COVARIANCE.P": pairs.COVARIANCE,
    "COVARIANCE.S": pairs.SAMPLE_COVARIANCE, "INTERCEPT": pairs.INTERCEPT,
    "PEARSON": pairs.CORRELATION, "RSQ": pairs.DETERMINATION, "SLOPE": pairs.SLOPE,
    "STEYX": pairs.STANDARD_ERROR,
}  # fmt: skip
#: Whether the greatest or the least come first.
_TOPS = {"LARGE": 1, "SMALL": -1}
_WITH_ONE = {
    "LARGE": "window_kth({w}, {e}, {a}, 1)",
    "SMALL": "window_kth({w}, {e}, {a}, 0)",
    "PERCENTILE": "window_percentile({w}, {e}, {a})",
    "PERCENTILE.INC": "window_percentile({w}, {e}, {a})",
    "QUARTILE": "window_quartile({w}, {e}, {a})",
    "QUARTILE.INC": "window_quartile({w}, {e}, {a})",
}
