"""How much work a plan is, by a model of costs: whether rows are worth being moved for it.

Costs are nanoseconds of one core for one row, as kernels were measured to take; rates are rows
for one row of the inputs. Neither need be right, they must tell what takes ten times as long
as moving a row from what takes a tenth of it. Nothing is measured while a program runs, so the
same program on the same inputs is always laid out in the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from millstream.calculus.costs import NO_SAMPLE, Shares, cost_in_turn, cost_of, kept_by
from millstream.calculus.each import PerKey
from millstream.calculus.estimates import NOTHING, Estimates, Measures
from millstream.calculus.functions import (
    Aggregate,
    Cubify,
    Dstream,
    Duplicate,
    Filter,
    FlatMap,
    Fold,
    Function,
    Istream,
    Join,
    Judge,
    Lookup,
    Map,
    Merge,
    Range,
)
from millstream.calculus.graph import Operator, Program, in_dependency_order
from millstream.calculus.sheets import Computed, CountWindow, Sheet, SheetCell, TimeWindow
from millstream.calculus.terms import conjuncts
from millstream.calculus.types import QueueType
from millstream.plan.steps import Plan, Step
from millstream.values.excel.syntax import Binary, Call, Node, children

#: To find the place of a row and to take it there, or to put it back in order; and each column.
_MOVED, _MOVED_COLUMN = 25.0, 10.0
#: To number a row that stays among its neighbours, or to put it behind them.
_CUT = 12.0
#: To carry a row past a step that is a loop of its own.
_ROW = 4.0
#: What keeps rows by keys, and tells how they change; of totals less, and something for each,
#: more where a row that leaves cannot be taken off again.
_KEPT = 150.0
_TOTALS, _TOTAL, _DEAR_TOTAL = 60.0, 20.0, 100.0
_CHEAP_TOTALS = frozenset({"count", "sum", "avg"})
#: A window of a sheet, one of its other cells, and what a cell calls or joins to a text.
_WINDOW, _CELL, _CALL = 55.0, 0.7, 6.0
#: To read a row or to write one, beside the work of threads: the row, and each of its columns.
_PASSED, _PASSED_COLUMN = 20.0, 12.0
#: What is run one item at a time.
_WALKED = 5_000.0
#: To take a column of a row into what is kept, and to tell it again.
_COLUMN = 10.0
#: A row of a window comes and goes.
_COMES_AND_GOES = 2.0


def work_of(function: Function, kept: Shares = NO_SAMPLE) -> float:
    """What a function does with one row."""
    terms = sum(map(cost_of, function.terms()))
    match function:
        case Filter(condition):
            return _ROW + cost_in_turn(conjuncts(condition), kept)
        case Map() | FlatMap() | Fold():
            return _ROW + terms
        case Duplicate() | Merge() | Istream() | Dstream():
            return _ROW
        case Range(length=0):
            return _COMES_AND_GOES * _ROW  # it keeps nothing
        case Aggregate(aggregations=aggregations):
            cheap = sum(aggregation.function in _CHEAP_TOTALS for aggregation in aggregations)
            dear = len(aggregations) - cheap
            return _TOTALS + _TOTAL * cheap + _DEAR_TOTAL * dear + terms
        case Sheet(cells=cells):
            return _ROW + sum(map(_work_of_cell, cells))
        case PerKey(program=program):
            return _KEPT + sum(work_of(op.function) for op in program.operators)
        case Cubify() | Judge():
            return 2 * _KEPT + terms
        case _:
            return _KEPT + terms


def _work_of_cell(cell: SheetCell) -> float:
    match cell.rule:
        case TimeWindow() | CountWindow():
            return _WINDOW
        case Computed(formula=formula):
            return _CELL + _CALL * _calls_in(formula)
        case _:
            return _CELL


def _calls_in(node: Node) -> int:
    is_call = isinstance(node, Call) or (isinstance(node, Binary) and node.operator == "&")
    return is_call + sum(map(_calls_in, children(node)))


def work_of_step(step: Step) -> float:
    """What a step does with one row of its inputs."""
    if step.fallback is not None:
        return _WALKED
    return sum(work_of(op.function) for op in step.operators)


def passed(type_: QueueType, rows: float) -> float:
    """What it takes to read or write so many rows."""
    return rows * (_PASSED + _PASSED_COLUMN * len(type_.schema))


def moved(type_: QueueType, rows: float, *, has_key: bool) -> float:
    """What it takes to share so many rows among threads, or to gather what these have made."""
    return rows * (_MOVED + _MOVED_COLUMN * len(type_.schema) if has_key else _CUT)


def work_of_program(program: Program, measures: Measures = NOTHING) -> float:
    """What a program does with one row of each of its inputs."""
    operators = in_dependency_order(program)
    types = program.queue_types()
    estimates = Estimates(program, measures)
    known = dict.fromkeys(program.input_names, 1.0)
    for op in operators:
        given = [known[q] for q in op.inputs if q in known]
        rate = _rate(op.function, given, measures.kept)
        if isinstance(op.function, Join):
            rate = _pairs(op, op.function, known, estimates)
        known.update(dict.fromkeys(op.outputs, rate))

    def of_row(op: Operator, queue: str) -> float:
        kept = len(types[queue].schema) if op.writes else 0
        return known.get(queue, 0.0) * (work_of(op.function, measures.kept) + _COLUMN * kept)

    return sum(of_row(op, queue) for op in operators for queue in op.inputs)


def _pairs(op: Operator, join: Join, known: Mapping[str, float], estimates: Estimates) -> float:
    """How many pairs a join makes: what either side has dropped is in none of them."""
    first, second = op.inputs
    left = estimates.left
    whole = max(known.get(q, 0.0) / left[q] if left[q] else 0.0 for q in op.inputs)
    return whole * left[first] * estimates.met(second, [theirs for _, theirs in join.on])


def rates(plan: Plan, sizes: Mapping[str, float]) -> dict[str, float]:
    """How many rows come along each queue, of one that comes along all inputs."""
    total = sum(sizes.values()) or 1.0
    known = {name: size / total for name, size in sizes.items()}
    return _rates([op for step in plan.steps for op in step.operators], known)


def _rates(operators: Iterable[Operator], known: dict[str, float]) -> dict[str, float]:
    for op in operators:
        given = [known[q] for q in op.inputs if q in known]
        known.update(dict.fromkeys(op.outputs, _rate(op.function, given)))
    return known


def _rate(function: Function, given: list[float], kept: Shares = NO_SAMPLE) -> float:
    match function:
        case Filter(condition):
            return kept_by(condition, kept) * sum(given)
        case Range(length=int()):
            return _COMES_AND_GOES * sum(given)
        case FlatMap(branches=branches):
            return len(branches) * sum(given)
        case Join() | Lookup():
            return max(given, default=0.0)
        case _:
            return sum(given)
