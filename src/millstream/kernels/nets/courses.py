"""Where the items of a queue come from, through all splits and joins before it.

Splits and joins only move items, in an order that repeats itself. So what lies between filters
is one order for each queue that a filter reads: of which queue an item is taken, and by which
number. Queues between splits and joins need not be there at all.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from millstream.calculus.functions import Duplicate, RoundRobinJoin, RoundRobinSplit
from millstream.calculus.graph import Operator
from millstream.calculus.work import Work
from millstream.kernels.nets.permute import Permute, sent_by
from millstream.plan.batch import Array

#: A longer order is cut, with a queue between.
_LONGEST = 1 << 14


@dataclass(frozen=True, slots=True)
class Course:
    """The order of a queue: item n of a round is number `numbers[n]` of queue `queues[n]`.

    In every further round each is taken `steps[n]` further.
    """

    queues: Array
    numbers: Array
    steps: Array

    def __len__(self) -> int:
        return len(self.numbers)

    def repeated(self, rounds: int) -> Course:
        """So many rounds as one."""
        later = np.repeat(np.arange(rounds), len(self))
        steps = np.tile(self.steps, rounds)
        numbers = np.tile(self.numbers, rounds) + later * steps
        return Course(np.tile(self.queues, rounds), numbers, steps * rounds)

    def chosen(self, which: Array) -> Course:
        return Course(self.queues[which], self.numbers[which], self.steps[which])


def courses_of(
    operators: tuple[Operator, ...], number: Mapping[str, int], *, is_stepwise: bool
) -> dict[str, Course]:
    """The queues that splits and joins fill, and how; all of them if that is wanted stepwise."""
    held = _held(operators, is_stepwise=is_stepwise)
    kept: dict[str, Course] = {}
    courses: dict[str, Course] = {}

    def known(queue: str) -> Course:
        return courses[queue] if queue in courses else _alone(number[queue])

    for op in operators:
        if isinstance(op.function, Work):
            continue
        made = _moved(op, [known(q) for q in op.inputs])
        if max(map(len, made)) > _LONGEST:
            kept |= {q: courses.pop(q) for q in op.inputs if q in courses}
            made = _moved(op, [known(q) for q in op.inputs])
        for queue, course in zip(op.outputs, made, strict=True):
            (kept if queue in held else courses)[queue] = course
    return kept


def _held(operators: tuple[Operator, ...], *, is_stepwise: bool) -> set[str]:
    """Queues that must be there: for a filter, for others, in a cycle, or before it begins."""
    place = {q: n for n, op in enumerate(operators) for q in op.inputs}
    held: set[str] = set()
    for n, op in enumerate(operators):
        for queue in op.outputs:
            reader = operators[place[queue]].function if queue in place else None
            if is_stepwise or reader is None or isinstance(reader, Work) or place[queue] <= n:
                held.add(queue)
        if isinstance(op.function, RoundRobinJoin):
            held |= {q for q, rows in zip(op.inputs, op.function.enqueued, strict=False) if rows}
    return held


def _alone(number: int) -> Course:
    """One queue, as it is."""
    return Course(np.array([number]), np.array([0]), np.array([1]))


def _moved(op: Operator, inputs: list[Course]) -> list[Course]:
    """The orders of what a split or join gives."""
    match op.function:
        case Duplicate():
            return inputs * len(op.outputs)
        case RoundRobinSplit(weights):
            return _split(inputs[0], weights or (1,) * len(op.outputs))
        case RoundRobinJoin(weights):
            return [_joined(inputs, weights or (1,) * len(inputs))]
        case Permute() as permute:
            return [_permuted(inputs[0], permute)]
        case _:
            raise AssertionError(f"{op.function.name} moves no items")


def _permuted(course: Course, permute: Permute) -> Course:
    firings = len(course) // math.gcd(len(course), permute.pop)
    turn = course.repeated(firings * permute.pop // len(course))
    later, places = np.divmod(sent_by(permute, firings), len(turn))
    sent = turn.chosen(places)
    return _shortest(Course(sent.queues, sent.numbers + later * sent.steps, sent.steps))


def _split(course: Course, weights: tuple[int, ...]) -> list[Course]:
    total = sum(weights)
    turn = course.repeated(math.lcm(len(course), total) // len(course))
    places = np.arange(len(turn)) % total
    ends = np.cumsum(weights)
    return [
        _shortest(turn.chosen((places >= end - weight) & (places < end)))
        for end, weight in zip(ends.tolist(), weights, strict=True)
    ]


def _joined(courses: list[Course], weights: tuple[int, ...]) -> Course:
    pairs = list(zip(courses, weights, strict=True))
    turns = math.lcm(*(len(c) // math.gcd(len(c), w) for c, w in pairs))
    parts = [course.repeated(turns * weight // len(course)) for course, weight in pairs]
    order = np.argsort(
        np.concatenate([np.repeat(np.arange(turns), weight) for weight in weights]), kind="stable"
    )
    return _shortest(Course(
        np.concatenate([part.queues for part in parts])[order],
        np.concatenate([part.numbers for part in parts])[order],
        np.concatenate([part.steps for part in parts])[order],
    ))  # fmt: skip


def _shortest(course: Course) -> Course:
    """The same order in the shortest rounds; a round is halved, or cut in three and so on."""
    for part in (2, 3, 5, 7):
        while len(course) % part == 0 and not (course.steps % part).any():
            size = len(course) // part
            steps = course.steps[:size] // part
            first = Course(course.queues[:size], course.numbers[:size], steps)
            again = first.repeated(part)
            if not all(
                np.array_equal(getattr(course, name), getattr(again, name))
                for name in ("queues", "numbers", "steps")
            ):
                break
            course = first
    return course
