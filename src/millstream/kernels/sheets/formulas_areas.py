"""Aggregates over areas of cells, as statements: formulas, FILTER, criteria, flows of money."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

from millstream.kernels.sheets.areas import Areas, Places, names_areas
from millstream.kernels.sheets.criteria import FUNCTIONS as CRITERIA
from millstream.kernels.sheets.criteria import summed_and_tested
from millstream.kernels.sheets.formulas_base import MIXED, NUMBER
from millstream.kernels.sheets.formulas_defined import Definitions, defined_form
from millstream.kernels.sheets.formulas_folds import FOLDS, Folds
from millstream.kernels.sheets.operands import (
    FIRST_ERROR,
    UNTOLD,
    NotCompiled,
    Operand,
    constant,
    refuse_if,
)
from millstream.kernels.sheets.scanned import (
    SAMPLES,
    OfValues,
    Scans,
    beside,
    gathered,
    is_reduced,
    names_values,
    products,
)
from millstream.values.excel.syntax import Call, Node, Range
from millstream.values.excel.values import CALC

#: Of the numbers that FILTER leaves.
_OF_FILTERED = frozenset({*FOLDS, *SAMPLES, "ROWS"}) - {"AND", "COUNT", "COUNTA", "OR"}
_OF_STEPS = frozenset({"AVERAGE", "MAX", "MIN", "SUM"})
#: Functions of the numbers in some cells, and of one that stands before or after these.
FLOWS = frozenset({"IRR", "NPV"})


@dataclass(frozen=True)
class _Source:
    """What criteria are asked of."""

    source: Operand


def is_filtered(function: str, arguments: tuple[Node, ...]) -> bool:
    """Is it an aggregate of what FILTER leaves of areas, or of windows?"""
    match arguments:
        case (Call("FILTER", (values, condition, *_)), *_):
            is_over = any(all(map(of, (values, condition))) for of in (names_areas, names_values))
            return function in _OF_FILTERED and is_over
    return False


def is_of_steps(function: str, arguments: tuple[Node, ...]) -> bool:
    """Is it an aggregate of what SCAN makes of windows by a formula of numbers?"""
    match arguments:
        case (Call("SCAN", steps),):
            return function in _OF_STEPS and is_reduced("REDUCE", steps)
    return False


class OfAreas(Definitions, Folds):
    """Generates statements for aggregates over areas."""

    @abstractmethod
    def areas(self) -> Areas:
        """What goes along areas."""

    @abstractmethod
    def scans(self) -> Scans:
        """What goes along windows."""

    def of_areas(self, function: str, arguments: tuple[Node, ...]) -> Operand:
        """An aggregate of a formula over all places of areas."""
        areas = self.areas()
        if function == "SUMPRODUCT":
            refuse_if(not all(map(names_areas, arguments)), "SUMPRODUCT of other shapes")
            return products(self.lines, areas.each(areas.elements(arguments)), arguments)
        return self._over(function, arguments, areas.each(areas.elements(arguments[:1])))

    def _over(
        self, function: str, arguments: tuple[Node, ...], each: Iterator[OfValues]
    ) -> Operand:
        if function in FOLDS:
            return self._folded_over(function, arguments[0], each)
        numbers = beside(function, arguments[1:], self.operand)
        count, error = gathered(self.lines, each, arguments[0])
        return self.lines.call(NUMBER, SAMPLES[function][0], "scratch", count, error, *numbers)

    def of_filtered(self, function: str, arguments: tuple[Node, ...]) -> Operand:
        """An aggregate of what FILTER leaves; where that is nothing, of what stands for it."""
        (filtered, *rest) = arguments
        assert isinstance(filtered, Call)
        values, condition, *empty = filtered.arguments
        refuse_if(len(empty) > 1, "FILTER of so many values")
        each = self._each((values, condition))
        some, bad = self.lines.fresh()
        self.lines.add(f"{some}, {bad} = 0, np.int64(0)")
        each = self._kept(each, condition, some, bad)
        if function == "ROWS":
            refuse_if(bool(rest), "ROWS of so many values")
            for _ in each:
                pass
            made = Operand(NUMBER, f"float({some})")
        else:
            made = self._over(function, (values, *rest), each)
        instead = constant(CALC, self.around.texts)
        if empty:
            refuse_if(function not in ("AVERAGE", "MAX", "MIN", "PRODUCT", "SUM"), "FILTER or else")
            instead = self.operand(empty[0])
            refuse_if(instead.kind is not NUMBER, "FILTER or else a text")
        value, status = self.lines.fresh()
        self.lines.add(f"{value}, {status} = {made.value}, np.int64({made.status})")
        self.lines.add(f"if {bad} != 0:")
        self.lines.add(f"    {value}, {status} = 0.0, {bad}")
        self.lines.add(f"elif {some} == 0:")
        self.lines.add(f"    {value}, {status} = {instead.value}, np.int64({instead.status})")
        return Operand(NUMBER, value, status, may_be_empty=instead.may_be_empty)

    def _each(self, nodes: tuple[Node, ...]) -> Iterator[OfValues]:
        """All values of windows, or all places of areas."""
        if any(map(names_values, nodes)):
            scans = self.scans()
            return scans.each(scans.elements(nodes))
        areas = self.areas()
        return areas.each(areas.elements(nodes))

    def _kept(
        self, each: Iterator[OfValues], condition: Node, some: str, bad: str
    ) -> Iterator[OfValues]:
        """The places where a condition holds; an error of it ends all."""
        for formulas in each:
            told = self.truth(formulas.value(condition))
            self.lines.add(f"if {told.status} >= {FIRST_ERROR}:")
            self.lines.add(f"    {bad} = {bad} if {bad} else np.int64({told.status})")
            self.lines.add(f"elif {told.value} != 0.0:")
            self.lines.depth += 1
            self.lines.add(f"{some} += 1")
            yield formulas
            self.lines.depth -= 1

    def of_steps(self, function: str, arguments: tuple[Node, ...]) -> Operand:
        """An aggregate of all that SCAN makes on its way."""
        (steps,) = arguments
        assert isinstance(steps, Call)
        first, values, made_by = steps.arguments
        assert isinstance(made_by, Call)
        total, status, count = self._fold_begins(function)

        def folded(value: Operand) -> None:
            step = FOLDS[function][1].format(t=total, v=value.value, n=count)
            self._folded_in(function, value, step, count, status)

        self.scans().reduced(first, values, made_by, folded)
        return self._fold_ends(function, total, status, count)

    def of_matching(self, function: str, arguments: tuple[Node, ...]) -> Operand:
        """COUNTIF, SUMIFS and their kin over areas."""
        summed, tested = summed_and_tested(function, arguments)
        nodes = [summed, *(node for node, _ in tested)]
        if not all(isinstance(n, Range) for n in nodes):
            raise NotCompiled(f"{function} of other things than areas")
        areas = self.areas()
        places = areas.elements(nodes)
        tests = [(n, self._test(areas, places, n, wanted)) for n, wanted in tested]
        name = function.removesuffix("S").removesuffix("IF")
        total, status, count = self._fold_begins(name)
        for formulas in areas.each(places):
            met = []
            for node, (test, _) in tests:
                operand = formulas.value(node)
                met.append(f"({test.format(v=operand.value, s=operand.status)})")
            self.lines.add(f"if {' and '.join(met)}:")
            self.lines.depth += 1
            if name == "COUNT":
                self.lines.add(f"{count} += 1")
            else:
                step = FOLDS[name][1]
                added = formulas.value(summed)
                step = step.format(t=total, v=added.value, n=count)
                self._folded_in(name, added, step, count, status)
            self.lines.depth -= 1
        made = self._fold_ends(name, total, status, count)
        unclear = [plain for _, (_, plain) in tests if plain]
        if not unclear:
            return made
        value, status = self.lines.fresh()
        self.lines.add(f"{value}, {status} = {made.value}, np.int64({made.status})")
        self.lines.add(f"if not ({' and '.join(unclear)}):")
        self.lines.add(f"    {status} = np.int64({UNTOLD})")
        return self.told(Operand(NUMBER, value, status, may_be_empty=False), function, arguments)

    def _test(self, areas: Areas, places: Places, node: Node, wanted: Node) -> tuple[str, str]:
        """A criterion as an expression of a value and its status, and when it may be used."""
        assert isinstance(node, Range)
        kinds = areas.kinds(places.cells[node])
        refuse_if(len(kinds) > 1 or MIXED in kinds, "criteria for values of several kinds")
        kind = next(iter(kinds), NUMBER)
        return self.aggregates.criteria.of_source(_Source(Operand(kind, "", "?")), wanted)

    def flows(self, function: str, arguments: tuple[Node, ...]) -> Operand:
        """A function of numbers in cells, and of one beside them."""
        compiled = defined_form(function)
        assert compiled is not None
        if function == "NPV":
            refuse_if(len(arguments) < 2, "NPV of so many values")
            beside_them: Operand | None = self.number(self.operand(arguments[0]))
            cells = arguments[1:]
        else:
            refuse_if(not 1 <= len(arguments) <= 2, "IRR of so many values")
            beside_them = self.number(self.operand(arguments[1])) if arguments[1:] else None
            cells = arguments[:1]
        if any(map(names_values, cells)):
            refuse_if(len(cells) > 1, f"{function} of several windows")
            count, error = gathered(self.lines, self._each(cells), cells[0])
        else:
            count, error = self.numbers_gathered(cells)
        first = f"{compiled.defaults[0]!r}, 0" if compiled.defaults else ""
        if beside_them is not None:
            first = f"{beside_them.value}, {beside_them.status}"
        self.lines.used.add(compiled.caught)
        value, status = self.lines.fresh()
        call = f"{compiled.caught}({first}, scratch, {count}, {error})"
        self.lines.add(f"{value}, {status} = {call}")
        return self.told(Operand(NUMBER, value, status, may_be_empty=False), function, arguments)


def names_only_areas(function: str, arguments: tuple[Node, ...]) -> bool:
    """Is it COUNTIF or one of its kin over areas that are written there?"""
    if function not in CRITERIA or len(arguments) < 2:
        return False
    summed, tested = summed_and_tested(function, arguments)
    return all(isinstance(node, Range) for node in (summed, *(n for n, _ in tested)))
