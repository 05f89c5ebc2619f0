"""A join in turns that meets a split in the same turns is left out with it.

Law: who takes so many items of each way in turns, and hands so many to each way in turns, hands to
each what it took of it. That is so at every moment only if the ways come in step: if what comes of
one turn of an earlier split is one turn of the join. Else the join makes those who are ahead wait.

    before  (a, b, $s) <- RoundRobinSplit[2, 2](in, $s);
            (c) <- Work[pop 2 peek 2 push 3](a); (d) <- Work[pop 2 peek 2 push 3](b);
            (q, $c, $d, $j) <- RoundRobinJoin[3, 3](c, d, $c, $d, $j);
            (e, f, $t) <- RoundRobinSplit[3, 3](q, $t);
    after   (a, b, $s) <- RoundRobinSplit[2, 2](in, $s);
            (e) <- Work[pop 2 peek 2 push 3](a); (f) <- Work[pop 2 peek 2 push 3](b);

This is how filters that were split one by one come to stand side by side as pipelines.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from millstream.calculus.functions import Map, RoundRobinJoin, RoundRobinSplit
from millstream.calculus.graph import Operator, Program
from millstream.calculus.work import Work


def join_then_split(program: Program) -> Program:
    """Leave out all joins that meet an equal split; the same program if there are none."""
    met = [pair for pair in _meetings(program) if _refusal(program, *pair) is None]
    if not met:
        return program
    gone = {id(op) for pair in met for op in pair}
    new = {old: q for join, split in met for old, q in zip(join.inputs, split.outputs, strict=True)}

    def last(queue: str) -> str:
        while queue in new:  # what a split gives may go to a join that is left out too
            queue = new[queue]
        return queue

    return replace(program, operators=tuple(
        replace(op, outputs=tuple(map(last, op.outputs)))
        for op in program.operators if id(op) not in gone
    ))  # fmt: skip


def refusals(program: Program) -> Iterator[tuple[Operator, str]]:
    """The joins that stay before a split, and the guard of each."""
    for join, split in _meetings(program):
        why = _refusal(program, join, split)
        if why is not None:
            yield join, why


def _meetings(program: Program) -> Iterator[tuple[Operator, Operator]]:
    """The joins whose items are split at once."""
    producers = program.producers()
    for split in program.operators:
        if isinstance(split.function, RoundRobinSplit):
            join = producers.get(split.inputs[0])
            if join is not None and isinstance(join.function, RoundRobinJoin):
                yield join, split


def _refusal(program: Program, join: Operator, split: Operator) -> str | None:
    """Why a join and a split stay; None if they can be left out."""
    assert isinstance(join.function, RoundRobinJoin)
    if any(join.function.enqueued):
        return "items that were there from the beginning would be missing"
    turns = weights_of(join)
    if turns != weights_of(split):
        return "its turns are others than those of the split behind it"
    producers = program.producers()
    ways = [_way(queue, producers) for queue in join.inputs]
    splits = {id(way[0]) for way in ways if way is not None}
    known = [way for way in ways if way is not None]
    if len(known) < len(ways) or len(splits) > 1:
        return "the ways before it do not come from one split, so some wait for others"
    earlier = known[0][0]
    if tuple(number for _, number, _ in known) != tuple(range(len(earlier.outputs))):
        return "it takes the ways of the split before it in another order, or not all of them"
    if tuple(items for _, _, items in known) != turns:
        return "a turn of the split before it is not a turn of the join"
    return None


def weights_of(op: Operator) -> tuple[int, ...]:
    assert isinstance(op.function, (RoundRobinJoin, RoundRobinSplit))
    ways = op.inputs if isinstance(op.function, RoundRobinJoin) else op.outputs
    return op.function.weights or (1,) * len(ways)


def _way(queue: str, producers: Mapping[str, Operator]) -> tuple[Operator, int, int] | None:
    """The split that a queue comes from by whole firings, which of its ways, items of a turn."""
    path: list[Operator] = []
    while (op := producers.get(queue)) is not None and not isinstance(op.function, RoundRobinSplit):
        if len(op.inputs) != 1 or op in path:
            return None
        path.append(op)
        queue = op.inputs[0]
    if op is None:
        return None
    number = op.outputs.index(queue)
    items = weights_of(op)[number]
    for one in reversed(path):
        made = _made(one, items)
        if made is None:
            return None
        items = made
    return op, number, items


def _made(op: Operator, items: int) -> int | None:
    """How many items come of so many; None if some wait for more, or if nobody knows."""
    match op.function:
        case Map():
            return items
        case Work(rates=rates, first=None, pace=None) as work if not work.changes:
            talks = work.tells or work.hears or len(op.outputs) != 1
            if talks or rates.peek > rates.pop or items % rates.pop:
                return None
            return items // rates.pop * rates.push
        case _:
            return None
