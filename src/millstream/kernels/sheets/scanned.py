"""Aggregates of formulas over all values of windows: `SUMPRODUCT((w=A2)*u)`, `MAX(ABS(w-B2))`.

What is the same for all values is computed once; then the formula is computed for one value after
the other, from the oldest on, and what it gives is added up, or gathered for functions that look at
all numbers more than once. The windows must take in and drop values at the same ticks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Protocol

from millstream.kernels.sheets.aggregates import Surroundings
from millstream.kernels.sheets.operands import FIRST_ERROR, Lines, Operand, pair, refuse_if
from millstream.kernels.sheets.scalar_parts import is_scalar
from millstream.kernels.sheets.windows import Group
from millstream.values.excel.elementwise import aggregates, is_elementwise
from millstream.values.excel.kinds import Kind
from millstream.values.excel.syntax import (
    Binary,
    Call,
    Cell,
    Literal,
    Name,
    Node,
    WindowOf,
    children,
    rebuilt,
)
from millstream.values.excel.syntax import Group as Parenthesis

#: Functions of all numbers of an array, and how many numbers they take beside it. The last of
#: these may be left out where a value stands for it.
SAMPLES: dict[str, tuple[str, int, tuple[float, ...]]] = {
    "AVEDEV": ("mean_deviation", 0, ()),
    "DEVSQ": ("squared_deviations", 0, ()),
    "GEOMEAN": ("geometric_mean", 0, ()),
    "HARMEAN": ("harmonic_mean", 0, ()),
    "KURT": ("kurtosis", 0, ()),
    "LARGE": ("kth_largest", 1, ()),
    "MEDIAN": ("median", 0, ()),
    "PERCENTILE": ("percentile", 1, ()),
    "PERCENTILE.EXC": ("percentile_exclusive", 1, ()),
    "PERCENTILE.INC": ("percentile", 1, ()),
    "PERCENTRANK": ("percent_rank", 2, (3.0,)),
    "PERCENTRANK.INC": ("percent_rank", 2, (3.0,)),
    "QUARTILE": ("quartile", 1, ()),
    "QUARTILE.EXC": ("quartile_exclusive", 1, ()),
    "QUARTILE.INC": ("quartile", 1, ()),
    "SKEW": ("skewness", 0, ()),
    "SKEW.P": ("skewness_of_all", 0, ()),
    "SMALL": ("kth_smallest", 1, ()),
    "STDEV": ("deviation_of_sample", 0, ()),
    "STDEV.P": ("deviation_of_all", 0, ()),
    "STDEV.S": ("deviation_of_sample", 0, ()),
    "STDEVP": ("deviation_of_all", 0, ()),
    "TRIMMEAN": ("trimmed_mean", 1, ()),
    "VAR": ("variance_of_sample", 0, ()),
    "VAR.P": ("variance_of_all", 0, ()),
    "VAR.S": ("variance_of_sample", 0, ()),
    "VARP": ("variance_of_all", 0, ()),
}
#: Of a window itself they are kept up to date (`aggregates`).
_KEPT = frozenset({
    "LARGE", "MEDIAN", "PERCENTILE", "PERCENTILE.INC", "QUARTILE", "QUARTILE.INC", "SMALL", "STDEV",
    "STDEV.P", "STDEV.S", "STDEVP", "VAR", "VAR.P", "VAR.S", "VARP",
})  # fmt: skip
FOLDED = frozenset({"AND", "AVERAGE", "COUNT", "MAX", "MIN", "OR", "PRODUCT", "SUM"})


def is_scan(function: str, arguments: tuple[Node, ...]) -> bool:
    """Must all values of windows be looked at to compute a call?"""
    if function == "SUMPRODUCT":
        return any(map(_is_of_values, arguments))
    if function in FOLDED:
        return len(arguments) == 1 and _is_of_values(arguments[0])
    return (
        function in SAMPLES
        and bool(arguments)
        and (
            _is_of_values(arguments[0])
            or (isinstance(arguments[0], WindowOf) and function not in _KEPT)
        )
    )


def is_reduced(function: str, arguments: tuple[Node, ...]) -> bool:
    """Is it REDUCE of windows by a formula of numbers that is written there?

    An error ends it as soon as a step gives one; so a step must not hand over an error of a value.
    """
    match function, arguments:
        case "REDUCE", (_, values, Call("LAMBDA", (Name() as so_far, Name(), body))):
            return names_values(values) and _is_step(body, _folded(so_far))
    return False


def _is_step(node: Node, so_far: Name) -> bool:
    match node:
        case Parenthesis(inner):
            return _is_step(inner, so_far)
        case Binary("+" | "-" | "*" | "/" | "^", _, _) | Literal(float()):
            return True
        case Call("IF", (_, then, other)):
            return _is_step(then, so_far) and _is_step(other, so_far)
        case Call("MAX" | "MIN" | "ABS" | "ROUND", _):
            return True
    return isinstance(node, Name) and _folded(node) == so_far


def _is_number(operand: Operand) -> bool:
    """Is it a number or an error, and never empty?"""
    is_there = operand.is_sure or not operand.may_be_empty
    return operand.kind is Kind.NUMBER and is_there and not operand.is_left_out


def _folded(name: Node) -> Name:
    """Capitals do not matter in names, nor where they stand."""
    assert isinstance(name, Name)
    return Name(name.name.casefold(), "")


def _with_names(node: Node) -> Node:
    return _folded(node) if isinstance(node, Name) else rebuilt(node, _with_names)


def _is_of_values(node: Node) -> bool:
    """Is it a formula over the values of windows, and no window itself?"""
    while isinstance(node, Parenthesis):
        node = node.inner
    return not isinstance(node, WindowOf) and names_values(node)


def names_values(node: Node) -> bool:
    """Are there windows in it of which it takes value by value?"""
    if isinstance(node, Call):
        return any(names_values(a) for n, a in enumerate(node.arguments) if not aggregates(node, n))
    return isinstance(node, WindowOf) or any(map(names_values, children(node)))


class OfValues(Protocol):
    """A compiler of formulas where windows are one of their values."""

    def value(self, node: Node) -> Operand:
        """What an array has there."""
        ...

    def is_number(self, operand: Operand) -> str:
        """Whether it is a number, as aggregates see them in arrays."""
        ...

    def of_names(self, node: Node, names: dict[Node, Operand]) -> Operand:
        """A formula in which names stand for values."""
        ...


@dataclass(frozen=True)
class Elements:
    """What a formula is computed of for each value: windows side by side, and what is the same."""

    group: Group
    columns: dict[WindowOf, tuple[int, Operand]]
    known: dict[Node, Operand]


class Scans:
    """Generates loops over the values of windows.

    `compute` gives the value of a part outside of these loops, `formulas` makes the compiler of
    formulas for what is inside, given what is known there.
    """

    def __init__(
        self, around: Surroundings, compute: Callable[[Node], Operand],
        formulas: Callable[[dict[Node, Operand]], OfValues],
    ) -> None:  # fmt: skip
        self.around = around
        self.lines: Lines = around.lines
        self.compute = compute
        self.formulas = formulas

    def each(self, elements: Elements) -> Iterator[OfValues]:
        with self.over(elements) as formulas:
            yield formulas

    def elements(self, nodes: Sequence[Node]) -> Elements:
        known: dict[Node, Operand] = {}
        windows = [w for node in nodes for w in self._windows(node, known)]
        seen = {w: self.around.window((w.cell.sheet, w.cell.row, w.cell.column)) for w in windows}
        groups = {group.number for group, _, _ in seen.values()}
        refuse_if(len(groups) > 1, "a formula over windows of different ticks")
        group = next(iter(seen.values()))[0]
        return Elements(group, {w: (n, source) for w, (_, n, source) in seen.items()}, known)

    def _windows(self, node: Node, known: dict[Node, Operand]) -> Iterator[WindowOf]:
        """The windows of which value by value is taken; what has none is computed at once."""
        if isinstance(node, WindowOf):
            yield node
        elif not names_values(node):
            refuse_if(not is_scalar(node), "several values in a formula over windows")
            if not isinstance(node, (Literal, Cell)):
                known[node] = self.compute(node)
        else:
            refuse_if(not is_elementwise(node), "a function of arrays of windows")
            for child in children(node):
                yield from self._windows(child, known)

    @contextmanager
    def over(self, elements: Elements) -> Iterator[OfValues]:
        """What is generated here is for one value after the other."""
        group, lines = elements.group.number, self.lines
        place, statuses = (f"{name}_{lines.fresh()[0]}" for name in ("at", "all"))
        lines.add(f"for position in range(row[G{group} + FIRST], row[G{group} + SEEN]):")
        lines.depth += 1
        lines.add(f"{place} = place_of(row, G{group}, E{group}, position)")
        lines.add(f"{statuses} = pool[{place} + STATUSES]")
        known = dict(elements.known)
        for window, (column, source) in elements.columns.items():
            value, status = lines.fresh()
            lines.add(f"{value} = numbers[{place} + VALUES + {column}]")
            lines.add(f"{status} = ({statuses} >> {8 * column}) & 0xFF")
            known[window] = replace(
                source, value=value, status=status, may_be_empty=True, is_left_out=False
            )
        try:
            yield self.formulas(known)
        finally:
            lines.depth -= 1

    # --- aggregates ---

    def reduced(
        self, first: Node, values: Node, function: Call,
        visit: Callable[[Operand], None] = lambda _so_far: None,
    ) -> Operand:  # fmt: skip
        """REDUCE: what a formula makes of what it has made so far and of the next value."""
        so_far, value, body = function.arguments
        lines, start = self.lines, self.compute(first)
        refuse_if(not _is_number(start), "REDUCE of other kinds")
        elements = self.elements([values])
        total, status = lines.fresh()
        lines.add(f"{total}, {status} = {start.value}, np.int64({start.status})")
        names: dict[Node, Operand] = {
            _folded(so_far): Operand(Kind.NUMBER, total, status, may_be_empty=False)
        }
        with self.over(elements) as formulas:
            lines.add(f"if {status} >= {FIRST_ERROR}:")
            lines.add("    break")
            names[_folded(value)] = formulas.value(values)
            made = formulas.of_names(_with_names(body), names)
            refuse_if(not _is_number(made), "REDUCE of other kinds")
            lines.add(f"{total}, {status} = {made.value}, {made.status}")
            visit(Operand(Kind.NUMBER, total, status, may_be_empty=False))
        return Operand(Kind.NUMBER, total, status, may_be_empty=False)

    def products(self, arguments: tuple[Node, ...]) -> Operand:
        """SUMPRODUCT: what is no number counts as zero."""
        refuse_if(not all(map(names_values, arguments)), "SUMPRODUCT of other shapes")
        return products(self.lines, self.each(self.elements(arguments)), arguments)

    def sample(self, function: str, arguments: tuple[Node, ...]) -> Operand:
        """A function of all numbers, which are gathered for it."""
        numbers = beside(function, arguments[1:], self.compute)
        each = self.each(self.elements(arguments[:1]))
        count, error = gathered(self.lines, each, arguments[0])
        return self.lines.call(Kind.NUMBER, SAMPLES[function][0], "scratch", count, error, *numbers)


def products(lines: Lines, each: Iterator[OfValues], arguments: tuple[Node, ...]) -> Operand:
    """The sum of the products of what stands at the same place; what is no number is zero."""
    total, status = lines.fresh()
    lines.add(f"{total}, {status} = 0.0, 0")
    for formulas in each:
        parts = []
        for value in [formulas.value(node) for node in arguments]:
            lines.add(f"if {status} == 0 and {value.status} >= {FIRST_ERROR}:")
            lines.add(f"    {status} = {value.status}")
            parts.append(f"({value.value} if {formulas.is_number(value)} else 0.0)")
        lines.add(f"{total} += {' * '.join(['1.0', *parts])}")
    return lines.call(Kind.NUMBER, "checked", total, status)


def gathered(lines: Lines, each: Iterator[OfValues], node: Node) -> tuple[str, str]:
    """All numbers that a formula gives, one after the other: how many, and the first error."""
    error, count = lines.fresh()[0], lines.fresh()[0]
    lines.add(f"{error}, {count} = 0, 0")
    for formulas in each:
        value = formulas.value(node)
        lines.add(f"if {value.status} >= {FIRST_ERROR} and {error} == 0:")
        lines.add(f"    {error} = {value.status}")
        lines.add(f"elif {formulas.is_number(value)}:")
        lines.add(f"    scratch[{count}] = {value.value}")
        lines.add(f"    {count} += 1")
    return count, error


def beside(
    function: str, others: tuple[Node, ...], compute: Callable[[Node], Operand]
) -> list[str]:
    """The numbers that a function takes beside those that are gathered."""
    _, count, defaults = SAMPLES[function]
    refuse_if(not count - len(defaults) <= len(others) <= count, f"{function} of so many values")
    given = [compute(n) for n in others]
    refuse_if(any(o.kind is not Kind.NUMBER for o in given), "a text where a number is wanted")
    left_out = defaults[len(defaults) - (count - len(others)) :] if defaults else ()
    numbers = [part for o in given for part in pair(o)]
    return numbers + [part for default in left_out for part in (repr(default), "0")]
