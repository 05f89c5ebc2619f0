"""From aggregates of windows to statements: what each needs kept, and how it is read."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from millstream.calculus.sheets import Address
from millstream.formulas.kinds import Kind
from millstream.formulas.numerals import number_in_text
from millstream.formulas.syntax import Group as Parenthesis
from millstream.formulas.syntax import Literal, Node, WindowOf
from millstream.kernels.loops_sums import CELL
from millstream.kernels.loops_window import ERRORS
from millstream.kernels.sheet_operands import (
    Lines,
    NotCompiled,
    Operand,
    Texts,
    pair,
    written_number,
)
from millstream.kernels.sheet_windows import Condition, Group

NUMBER, TEXT = Kind.NUMBER, Kind.TEXT
_SPREADS = {
    "VAR": (1, 0), "VAR.S": (1, 0), "VARP": (0, 0), "VAR.P": (0, 0),
    "STDEV": (1, 1), "STDEV.S": (1, 1), "STDEVP": (0, 1), "STDEV.P": (0, 1),
}  # fmt: skip
_CRITERION = re.compile(r"(<=|>=|=|<|>)?(.*)", re.DOTALL)
_TESTS = {
    "": "same({v}, {c})", "=": "same({v}, {c})",
    "<": "{v} < {c} and not same({v}, {c})", ">": "{v} > {c} and not same({v}, {c})",
    "<=": "{v} <= {c} or same({v}, {c})", ">=": "{v} >= {c} or same({v}, {c})",
}  # fmt: skip


class Surroundings(Protocol):
    lines: Lines
    texts: Texts

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
        found = f"error_in(row, pool, {self.place}, {self.column})"
        return f"({found} if row[{self.counts} + {ERRORS}] != 0 else 0)"

    @property
    def tree(self) -> str:
        return f"row, pool, numbers, {self.group.tree(self.column)}"


class Aggregates:
    """Generates statements for calls with windows among their arguments."""

    def __init__(self, around: Surroundings, operand: Callable[[Node], Operand]) -> None:
        self.around = around
        self.lines = around.lines
        self.operand = operand

    def call(self, function: str, arguments: tuple[Node, ...]) -> Operand:
        windows = [n for n in arguments if isinstance(n, WindowOf)]
        others = [n for n in arguments if not isinstance(n, WindowOf)]
        if function == "SUMPRODUCT" and not others:
            return self._products([self._seen(n) for n in windows])
        if function in ("COUNTIF", "SUMIF", "AVERAGEIF", "COUNTIFS", "SUMIFS", "AVERAGEIFS"):
            return self._conditional(function, arguments)
        if len(windows) > 1:
            raise NotCompiled(f"{function} of several windows")
        window = self._seen(windows[0])
        if function == "INDEX" and arguments[0] is windows[0] and len(others) == 1:
            return self._index(window, others[0])
        if function == "MATCH" and len(arguments) > 1 and arguments[1] is windows[0]:
            return self._match(window, others)
        found = _SIMPLE.get(function)
        if function == "COUNTA" and not others:
            return self._made(
                f"float(window_given(row, G{window.group.number}, {window.counts})), 0"
            )
        if window.source.kind is not NUMBER:
            raise NotCompiled(f"{function} of a window that does not hold numbers")
        if found is not None and not others:
            return self._made(found(window))
        if function in _SPREADS and not others:
            return self._spread(window, *_SPREADS[function])
        if function in ("RANK", "RANK.EQ") and arguments[1] is windows[0]:
            return self._rank(window, others)
        if function in _WITH_ONE and len(others) == 1 and arguments[0] is windows[0]:
            return self._made(_WITH_ONE[function].format(
                w=window.tree, e=window.error, a=", ".join(pair(self._number(others[0])))
            ))  # fmt: skip
        raise NotCompiled(f"{function} of a window")

    def _seen(self, node: Node) -> Seen:
        assert isinstance(node, WindowOf)
        cell = node.cell
        return Seen(*self.around.window((cell.sheet, cell.row, cell.column)))

    def _made(self, call: str) -> Operand:
        value, status = self.lines.fresh()
        self.lines.add(f"{value}, {status} = {call}")
        return Operand(NUMBER, value, status, may_be_empty=False)

    def _number(self, node: Node) -> Operand:
        found = self.operand(node)
        if found.kind is TEXT:
            raise NotCompiled("a text where a number is wanted")
        return found

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
            first = f"row[G{window.group.number} + FIRST]"
            return self._made(f"window_match({window.tree}, {first}, {', '.join(pair(wanted))})")
        near = "window_match_below" if mode > 0 else "window_match_above"
        return self._made(
            f"{near}(row, pool, numbers, {window.place}, {window.column}, "
            f"{', '.join(pair(wanted))})"
        )

    def _rank(self, window: Seen, others: Sequence[Node]) -> Operand:
        x = self._number(others[0])
        rising = "0"
        if len(others) > 1:
            order = written_number(others[1])
            if order is None:
                raise NotCompiled("RANK with an order that is computed")
            rising = "1" if order else "0"
        return self._made(
            f"window_rank({window.tree}, {window.error}, {', '.join(pair(x))}, {rising})"
        )

    def _spread(self, window: Seen, less: int, is_root: int) -> Operand:
        kinds = ("number", "square", "rest", "scratch")
        places = ", ".join(window.group.sum((kind, (window.column,))) for kind in kinds)
        return self._made(
            f"window_spread(row, floats, ({places}), {window.error}, {window.numbers}, "
            f"{less}, {is_root}, wides)"
        )

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
        return self._made(f"window_sum(row, floats, {place}, {error}, wides)")

    # --- criteria ---

    def _conditional(self, function: str, arguments: tuple[Node, ...]) -> Operand:
        if function.endswith("S"):
            if len(arguments) != (2 if function == "COUNTIFS" else 3):
                raise NotCompiled(f"{function} with several criteria")
            function = function[:-1]
            if function != "COUNTIF":
                arguments = (*arguments[1:], arguments[0])
        tested, wanted, *more = arguments
        if not isinstance(tested, WindowOf) or (more and not isinstance(more[0], WindowOf)):
            raise NotCompiled(f"{function} of a window and something else")
        window = self._seen(tested)
        summed = self._seen(more[0]) if more else window
        if summed.group is not window.group:
            raise NotCompiled(f"{function} of windows of different ticks")
        literal = wanted
        while isinstance(literal, Parenthesis):
            literal = literal.inner
        if isinstance(literal, Literal):
            return self._constant_criterion(function, window, summed, literal)
        found = self.operand(wanted)
        if function != "COUNTIF" or found.kind is not NUMBER or window.source.kind is not NUMBER:
            raise NotCompiled(f"{function} with a criterion that is computed")
        return self._made(
            f"window_count_equal({window.tree}, {window.place}, {window.column}, "
            f"{', '.join(pair(found))}), 0"
        )

    def _constant_criterion(
        self, function: str, window: Seen, summed: Seen, literal: Literal
    ) -> Operand:
        condition = Condition(window.column, self._test(window, literal))
        if function != "COUNTIF" and summed.source.kind is not NUMBER:
            raise NotCompiled(f"{function} of a window that does not hold numbers")
        if function == "COUNTIF":
            place = window.group.matching(condition, -1)
            return self._made(f"float(row[{place} + {CELL + 1}]), 0")
        place = window.group.matching(condition, summed.column)
        error, _ = self.lines.fresh()
        self.lines.add(f"{error} = 0")
        if summed.column != window.column:
            # The error is that of the first value that meets the condition.
            number = window.group.matching_number(condition, summed.column)
            g = window.group.number
            self.lines.add(f"if row[{place} + {CELL + 2}] != 0:")
            self.lines.add(f"    {error} = error_{g}_{number}(row, pool, numbers, folded)")
        if function == "SUMIF":
            return self._made(f"window_sum(row, floats, {place}, {error}, wides)")
        return self._made(
            f"window_average(row, floats, {place}, {error}, row[{place} + {CELL}], wides)"
        )

    def _test(self, window: Seen, literal: Literal) -> str:
        value = literal.value
        if type(value) is float and window.source.kind is NUMBER:
            return _TESTS[""].replace("{c}", repr(value))
        if type(value) is not str:
            raise NotCompiled("a criterion of this kind")
        found = _CRITERION.fullmatch(value)
        assert found is not None
        operator, rest = found[1] or "", found[2]
        number = number_in_text(rest) if rest else None
        if window.source.kind is NUMBER and number is not None and value[:2] != "<>":
            return _TESTS[operator].replace("{c}", repr(number))
        is_plain = window.source.kind is TEXT and number is None and operator in ("", "=")
        if not is_plain or not rest or any(c in rest for c in "*?~<>") or _is_word(rest):
            raise NotCompiled(f"the criterion {value!r}")
        code = self.around.texts.number(rest)
        return f"folded[np.int64({{v}})] == folded[{code}]"


def _is_word(text: str) -> bool:
    return text.upper() in ("TRUE", "FALSE") or text.startswith("#")


def _sum_place(window: Seen) -> str:
    return window.group.sum(("number", (window.column,)))


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
    "MODE": lambda w: f"window_mode({w.tree}, {w.error})",
    "MODE.SNGL": lambda w: f"window_mode({w.tree}, {w.error})",
    "PRODUCT": lambda w: f"window_product(row, pool, numbers, {w.place}, {w.column}, {w.error})",
    "SUMSQ": lambda w: (
        f"window_sum(row, floats, {w.group.sum(('product', (w.column, w.column)))}, "
        f"{w.error}, wides)"
    ),
}
_WITH_ONE = {
    "LARGE": "window_kth({w}, {e}, {a}, 1)",
    "SMALL": "window_kth({w}, {e}, {a}, 0)",
    "PERCENTILE": "window_percentile({w}, {e}, {a})",
    "PERCENTILE.INC": "window_percentile({w}, {e}, {a})",
    "QUARTILE": "window_quartile({w}, {e}, {a})",
    "QUARTILE.INC": "window_quartile({w}, {e}, {a})",
}
