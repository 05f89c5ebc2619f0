"""The courses of a net as the numbers that its driver moves items by."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from millstream.kernels.nets.courses import Course
from millstream.kernels.nets.table import (
    CHUNK,
    COUNT,
    GIVEN,
    KIND,
    LIST,
    MOVED,
    MOVER,
    Q_CHUNK,
    Q_TAKINGS,
    ROUND,
    T_COLUMNS,
    T_COUNT,
    T_IS_ALL,
    T_IS_RUN,
    T_LEAST,
    T_LIST,
    T_MOST,
    T_NEEDED,
    T_NEXT,
    T_QUEUE,
    T_STEP,
    TAKINGS,
)
from millstream.plan.batch import Array


class Movers:
    """Mutable while it is built: `takings` and `list`, to which rows of actors refer."""

    def __init__(self, queues: Array) -> None:
        self.queues = queues
        self.rows: list[Array] = []
        self._takings: list[list[int]] = []
        self._lists: list[Array] = [np.zeros(1, np.int64)]
        self._size = 1

    def add(self, row: Array, given: int, course: Course) -> None:
        """A row of the table of actors becomes a mover."""
        row[KIND], row[GIVEN], row[ROUND] = MOVER, given, len(course)
        row[TAKINGS] = len(self._takings)
        pairs = np.stack((course.queues, course.steps), axis=1)
        kinds, which = np.unique(pairs, axis=0, return_inverse=True)
        which = which.reshape(-1)
        row[COUNT] = len(kinds)
        order = np.stack((which + row[TAKINGS], course.numbers), axis=1)
        row[LIST] = self._listed(order.ravel())
        for number, (queue, step) in enumerate(kinds.tolist()):
            places = np.flatnonzero(which == number)
            self._take(queue, step, places, course.numbers[places], len(course))
        self.rows.append(row)

    def _take(self, queue: int, step: int, places: Array, numbers: Array, size: int) -> None:
        taking = [0] * T_COLUMNS
        taking[T_IS_ALL] = int(len(places) == size)
        taking[T_QUEUE], taking[T_STEP], taking[T_COUNT] = queue, step, len(places)
        taking[T_LIST] = self._listed(np.concatenate((places, numbers)))
        least, most = int(numbers.min()), int(numbers.max())
        taking[T_LEAST] = taking[T_NEEDED] = least
        taking[T_MOST] = most
        taking[T_IS_RUN] = int((np.diff(places) == 1).all() and (np.diff(numbers) == 1).all())
        taking[T_NEXT] = int(self.queues[queue, Q_TAKINGS])
        self.queues[queue, Q_TAKINGS] = len(self._takings)
        self._takings.append(taking)

    def _listed(self, numbers: Array) -> int:
        place = self._size
        self._lists.append(numbers)
        self._size += len(numbers)
        return place

    def tables(self) -> tuple[Array, Array]:
        takings = np.array(self._takings or [[0] * T_COLUMNS], np.int64)
        return takings, np.concatenate(self._lists)


def needed_again(actors: Iterable[Array], takings: Array) -> None:
    """What movers still need, after they were told how many items they have moved."""
    for row in actors:
        begin, count = row[TAKINGS], row[COUNT]
        some = takings[begin : begin + count]
        some[:, T_NEEDED] = some[:, T_LEAST] + row[MOVED] // row[ROUND] * some[:, T_STEP]


def shared_chunks(
    queues: Array, filters: Iterable[tuple[int, int, int, int]], courses: Mapping[int, Course]
) -> Array:
    """How many items of each queue are worked on at a time, as they are used up together.

    Of each filter its queues are told, and how many items it takes and gives. Gives back the
    share of each queue in the busiest one.
    """
    sides: dict[int, list[tuple[int, float]]] = {}

    def beside(a: int, b: int, rate: float) -> None:
        sides.setdefault(a, []).append((b, rate))
        sides.setdefault(b, []).append((a, 1 / rate))

    for taken, given, pop, push in filters:
        if taken >= 0 and given >= 0 and pop and push:
            beside(taken, given, push / pop)
    for given, course in courses.items():
        for queue, step in set(zip(course.queues.tolist(), course.steps.tolist(), strict=True)):
            beside(queue, given, len(course) / step)
    shares = np.zeros(len(queues))
    seen: set[int] = set()
    for begin in sides:
        if begin not in seen:
            rates = _rates_from(begin, sides)
            seen |= set(rates)
            most = max(rates.values())
            for queue, rate in rates.items():
                shares[queue] = rate / most
    known = shares > 0
    queues[:, Q_CHUNK] = CHUNK
    queues[known, Q_CHUNK] = np.maximum(1, np.round(CHUNK * shares[known]))
    return shares


def _rates_from(begin: int, sides: Mapping[int, list[tuple[int, float]]]) -> dict[int, float]:
    """How many items pass through each queue for one of the first; what disagrees is let be."""
    rates, waiting = {begin: 1.0}, [begin]
    while waiting:
        queue = waiting.pop()
        for other, rate in sides[queue]:
            if other not in rates:
                rates[other] = rates[queue] * rate
                waiting.append(other)
    return rates
