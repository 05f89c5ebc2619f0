"""When items leave a net, told from their numbers: times need not travel with items.

Everything in a net with one entry happens as soon as some item of that entry has come, and an
item has the time of that one. Which it is follows from the rates alone, and repeats itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from millstream.calculus.functions import Duplicate, RoundRobinJoin, RoundRobinSplit
from millstream.calculus.graph import Operator
from millstream.calculus.work import Rates, Work
from millstream.plan.batch import Array

#: Longer sequences are not worth it: times travel with items then.
_LONGEST = 1 << 20


class NotKnown(Exception):
    """The moments of a queue do not follow from rates, or are too many."""


@dataclass(frozen=True, slots=True)
class Moments:
    """For each item of a queue the number of the item of the entry that it waits for.

    At first those of `begins`; then those of `repeats`, over and over, each time `step` more.
    """

    begins: Array
    repeats: Array
    step: int

    def at(self, numbers: Array) -> Array:
        later = numbers - len(self.begins)
        rounds, places = np.divmod(later, len(self.repeats))
        firings: Array = self.repeats[places] + rounds * self.step
        early = later < 0
        if early.any():
            firings[early] = self.begins[numbers[early]]
        return firings

    def before(self, end: int) -> int:
        """How many items wait for none from that number on."""
        early = int(np.searchsorted(self.begins, end))
        if early < len(self.begins):
            return early
        rounds = max(0, (end - 1 - int(self.repeats[-1])) // self.step + 1)
        more = int(np.searchsorted(self.repeats + rounds * self.step, end))
        return early + rounds * len(self.repeats) + more

    def first(self, count: int) -> Array:
        return self.at(np.arange(count))

    def run(self) -> int:
        """How many of those that repeat are the same one after the other, wherever one begins."""
        changes = np.flatnonzero(np.diff(self.repeats)) + 1
        return math.gcd(len(self.repeats), *changes.tolist())


def moments_of(operators: tuple[Operator, ...], entry: str | None) -> dict[str, Moments]:
    """The moments of all queues of a net that is entered by one queue, or by one source.

    The moment of a source's item is the number of its firing. What a filter prints has the
    moments of its firings.
    """
    moments: dict[str, Moments] = {}
    if entry is not None:
        moments[entry] = Moments(np.zeros(0, np.int64), np.zeros(1, np.int64), 1)
    for op in operators:
        if any(q not in moments for q in op.inputs) and not _is_source(op):
            raise NotKnown("a cycle, or several entries")
        made = _through(op, [moments[q] for q in op.inputs if q in moments])
        moments.update(zip(op.outputs, made, strict=True))
    return moments


def _is_source(op: Operator) -> bool:
    return isinstance(op.function, Work) and op.function.pace is not None


def _through(op: Operator, inputs: list[Moments]) -> list[Moments]:
    match op.function:
        case Work() as work:
            return _fired(work, inputs)
        case Duplicate():
            return inputs * len(op.outputs)
        case RoundRobinSplit(weights):
            return _split(inputs[0], weights or (1,) * len(op.outputs))
        case RoundRobinJoin(weights, enqueued):
            if any(enqueued):
                raise NotKnown("items that are there from the beginning")
            return [_joined(inputs, weights or (1,) * len(inputs))]
        case _:
            raise NotKnown(op.function.name)


def _sequence(begins: Array, repeats: Array, step: int) -> Moments:
    """What repeats itself from the earliest place on from which it does."""
    if not len(repeats) or len(begins) + len(repeats) > _LONGEST:
        raise NotKnown("too few, or too many")
    rounds, places = np.divmod(np.arange(len(begins)) - len(begins), len(repeats))
    differs = np.flatnonzero(begins != repeats[places] + rounds * step)
    cut = int(differs[-1]) + 1 if len(differs) else 0
    rounds, places = np.divmod(np.arange(len(repeats)) + cut - len(begins), len(repeats))
    return Moments(begins[:cut], repeats[places] + rounds * step, step)


# --- filters ----------------------------------------------------------------------------


def _fired(work: Work, inputs: list[Moments]) -> list[Moments]:
    if work.changes or work.shared_count:
        raise NotKnown("rates that change, or messages")
    firings = _firings(work, inputs)
    made = []
    if work.given is not None:
        made.append(_pushed(firings, work.first or work.rates, work.rates))
    if work.prints:
        made.append(firings)
    return made


def _firings(work: Work, inputs: list[Moments]) -> Moments:
    """When a filter fires: with the last item it looks at."""
    if work.pace is not None:
        return Moments(np.zeros(0, np.int64), np.zeros(1, np.int64), 1)
    (taken,) = inputs
    first, rates = work.first or work.rates, work.rates
    size = len(taken.repeats)
    if work.first is None and size == 1 and not len(taken.begins):  # evenly, as most do
        seen = taken.repeats + (max(rates.peek, 1) - 1) * taken.step
        return Moments(taken.begins, seen, rates.pop * taken.step)
    rounds = size // math.gcd(size, rates.pop)
    # So many firings until all that are to come look at what repeats itself.
    early = 1 + -(-len(taken.begins) // rates.pop)
    if early + rounds > _LONGEST:
        raise NotKnown("too many")
    later = np.arange(early + rounds - 1) * rates.pop + first.pop + max(rates.peek, 1) - 1
    firsts = taken.at(np.concatenate(([max(first.peek, 1) - 1], later)))
    step = taken.step * (rounds * rates.pop // size)
    firings = _sequence(firsts[:early], firsts[early:], step)
    # Only the first firing may look further than the next one.
    return _risen(firings) if work.first else firings


def _pushed(firings: Moments, first: Rates, rates: Rates) -> Moments:
    if first.push == rates.push == 1:
        return firings
    begins = firings.begins
    if not len(begins):
        begins, firings = _one_more(firings)
    pushed = np.full(len(begins), rates.push)
    pushed[0] = first.push
    if pushed.sum() + len(firings.repeats) * rates.push > _LONGEST:
        raise NotKnown("too many")
    return _sequence(
        np.repeat(begins, pushed), np.repeat(firings.repeats, rates.push), firings.step
    )


def _one_more(moments: Moments) -> tuple[Array, Moments]:
    """The first of what repeats itself, and the same from the second on."""
    first, rest = moments.repeats[:1], moments.repeats[1:]
    return first, Moments(first, np.concatenate((rest, first + moments.step)), moments.step)


# --- splits and joins -------------------------------------------------------------------


def _split(moments: Moments, weights: tuple[int, ...]) -> list[Moments]:
    total, size = sum(weights), len(moments.repeats)
    turns = size // math.gcd(size, total)
    early = -(-len(moments.begins) // total)
    if (early + turns) * total > _LONGEST:
        raise NotKnown("too many")
    firsts = moments.first((early + turns) * total).reshape(-1, total)
    step = moments.step * (turns * total // size)
    ends = np.cumsum(weights).tolist()
    return [
        _sequence(
            firsts[:early, end - w : end].ravel(), firsts[early:, end - w : end].ravel(), step
        )
        for end, w in zip(ends, weights, strict=True)
    ]


def _joined(inputs: list[Moments], weights: tuple[int, ...]) -> Moments:
    pairs = list(zip(inputs, weights, strict=True))
    turns = math.lcm(*(len(m.repeats) // math.gcd(len(m.repeats), w) for m, w in pairs))
    early = max(-(-len(m.begins) // w) for m, w in pairs)
    if (early + turns) * sum(weights) > _LONGEST:
        raise NotKnown("too many")
    steps = {m.step * (turns * w // len(m.repeats)) for m, w in pairs}
    if len(steps) > 1:
        raise NotKnown("one side falls behind the other")
    firsts = np.concatenate([m.first((early + turns) * w).reshape(-1, w) for m, w in pairs], axis=1)
    return _risen(_sequence(firsts[:early].ravel(), firsts[early:].ravel(), steps.pop()))


def _risen(moments: Moments) -> Moments:
    """Nothing leaves before what stands before it."""
    begins = np.maximum.accumulate(moments.begins)
    last = begins[-1] if len(begins) else np.int64(-1)
    parts, round_ = [begins], moments.repeats
    for _ in range(_LONGEST // len(round_)):
        risen = np.maximum.accumulate(np.maximum(round_, last))
        round_ = round_ + moments.step
        if np.array_equal(np.maximum.accumulate(np.maximum(round_, risen[-1])),
                          risen + moments.step):  # fmt: skip
            return _sequence(np.concatenate(parts), risen, moments.step)
        parts.append(risen)
        last = risen[-1]
    raise NotKnown("too many before it repeats itself")
