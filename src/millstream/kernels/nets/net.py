"""What a net is made of before it runs: its operators, its items, and where times come from."""

from __future__ import annotations

from dataclasses import dataclass, replace

from millstream.calculus.functions import RoundRobinJoin
from millstream.calculus.graph import Operator
from millstream.calculus.procedures import Shape
from millstream.calculus.types import Row
from millstream.calculus.work import Work
from millstream.kernels.nets.courses import Course, courses_of
from millstream.kernels.nets.moments import Moments, NotKnown, moments_of
from millstream.kernels.nets.permute import Permute, permute_of
from millstream.values.core.machine import single, wrapped


@dataclass(frozen=True, slots=True)
class Net:
    """Operators without those that only pass items on; where splits and joins take items from."""

    operators: tuple[Operator, ...]
    #: What travels on each queue.
    shapes: dict[str, Shape]
    #: The queues that splits and joins fill.
    courses: dict[str, Course]
    #: When items leave, by their numbers; None if their times travel with them.
    moments: dict[str, Moments] | None
    has_cycle: bool
    #: Queues whose items are not there as soon as what they are taken from is.
    waiting: set[str]

    @property
    def held(self) -> set[str]:
        """The queues that are there: those between splits and joins are not."""
        filters = [op for op in self.operators if isinstance(op.function, Work)]
        produced = {q for op in self.operators for q in op.outputs}
        entries = {q for op in self.operators for q in op.inputs} - produced
        around = {q for op in filters for q in (*op.inputs, *op.outputs)}
        return (around | entries | set(self.courses)) & set(self.shapes)

    @property
    def numbers(self) -> dict[str, int]:
        return {queue: n for n, queue in enumerate(self.shapes)}


def net_of(operators: tuple[Operator, ...], inputs: set[str], outputs: set[str]) -> Net:
    operators = _without_identities(operators, inputs | outputs)
    shapes = shapes_of(operators)
    moments = _moments(operators, inputs & set(shapes))
    waiting: set[str] = set()
    if moments is not None:
        operators = tuple(map(_permuted, operators))
        waiting = _behind(operators)
    numbers = {queue: n for n, queue in enumerate(shapes)}
    courses = courses_of(operators, numbers, is_stepwise=moments is None)
    place = {q: n for n, op in enumerate(operators) for q in op.inputs}
    has_cycle = any(place.get(q, n + 1) <= n for n, op in enumerate(operators) for q in op.outputs)
    return Net(operators, shapes, courses, moments, has_cycle, waiting & set(courses))


def _permuted(op: Operator) -> Operator:
    """Where times need not travel, a filter that only moves items is an order like a split."""
    permute = permute_of(op.function) if isinstance(op.function, Work) else None
    return op if permute is None else replace(op, function=permute)


def _behind(operators: tuple[Operator, ...]) -> set[str]:
    """The queues that a filter fills which only moves items, itself or through others."""
    waiting: set[str] = set()
    for op in operators:
        is_mover = not isinstance(op.function, Work) and not waiting.isdisjoint(op.inputs)
        if is_mover or isinstance(op.function, Permute):
            waiting |= set(op.outputs)
    return waiting


def _moments(operators: tuple[Operator, ...], entries: set[str]) -> dict[str, Moments] | None:
    sources = sum(isinstance(op.function, Work) and op.function.pace is not None
                  for op in operators)  # fmt: skip
    if sources + len(entries) != 1:
        return None
    try:
        return moments_of(operators, next(iter(entries), None))
    except NotKnown:
        return None


def _without_identities(operators: tuple[Operator, ...], outside: set[str]) -> tuple[Operator, ...]:
    """Leave out what passes on every item as it is: its two queues are one."""
    names: dict[str, str] = {}
    kept = []
    for op in operators:
        function = op.function
        is_between = isinstance(function, Work) and outside.isdisjoint((*op.inputs, *op.outputs))
        if is_between and isinstance(function, Work) and function.is_identity:
            names[op.outputs[0]] = op.inputs[0]
        else:
            kept.append(op)

    def named(queue: str) -> str:
        while queue in names:
            queue = names[queue]
        return queue

    fewer = tuple(replace(op, inputs=tuple(map(named, op.inputs))) for op in kept)
    # Where nothing else says what items are like, they must stay.
    return fewer if why_not(fewer) is None else operators


def shapes_of(operators: tuple[Operator, ...]) -> dict[str, Shape]:
    """What travels on each queue of a net; splits and joins pass on what they get."""
    shapes: dict[str, Shape] = {}
    for op in operators:
        if isinstance(op.function, Work):
            if op.function.taken is not None and op.function.pace is None:
                shapes[op.inputs[0]] = op.function.taken
            if op.function.given is not None:
                shapes[op.outputs[0]] = op.function.given
    dealers = [op for op in operators if not isinstance(op.function, Work)]
    around: dict[str, list[Operator]] = {}
    for op in dealers:
        for queue in (*op.inputs, *op.outputs):
            around.setdefault(queue, []).append(op)
    waiting = list(shapes)
    while waiting:
        shape = shapes[queue := waiting.pop()]
        for op in around.pop(queue, ()):
            others = [q for q in (*op.inputs, *op.outputs) if q not in shapes]
            shapes.update(dict.fromkeys(others, shape))
            waiting += others
    return shapes


def why_not(operators: tuple[Operator, ...]) -> str | None:
    """Why a net cannot be run on buffers."""
    shapes = shapes_of(operators)
    for op in operators:
        if isinstance(op.function, Work):
            continue
        missing = [q for q in (*op.inputs, *op.outputs) if q not in shapes]
        if missing:
            return f"nothing is known of the items of {missing[0]}"
    return _why_not_narrow(operators, shapes)


def _why_not_narrow(operators: tuple[Operator, ...], shapes: dict[str, Shape]) -> str | None:
    """What passes no filter leaves as it came, but buffers have 32 bits for each value."""
    produced = {q for op in operators for q in op.outputs}
    read = {q for op in operators for q in op.inputs}
    movers = [op for op in operators if not isinstance(op.function, Work)]
    untouched = (read & set(shapes)) - produced
    for op in movers:
        if isinstance(op.function, RoundRobinJoin):
            pairs = zip(op.inputs, op.function.enqueued, strict=False)
            untouched |= {q for q, rows in pairs if not all(map(_is_narrow, rows))}
    while True:
        more = {q for op in movers if not untouched.isdisjoint(op.inputs) for q in op.outputs}
        if more <= untouched:
            break
        untouched |= more
    leaving = sorted(untouched & produced - read)
    return f"items come to {leaving[0]} as they are, through no filter" if leaving else None


def _is_narrow(row: Row) -> bool:
    """Whether the values of a row are such as filters calculate."""
    integers = [value for value in row if isinstance(value, int)]
    numbers = [value for value in row if isinstance(value, float)]
    return integers == [wrapped(i) for i in integers] and numbers == [single(n) for n in numbers]
