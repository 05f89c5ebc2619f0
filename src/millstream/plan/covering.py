"""Questions that each bucket can ask for its own rows, of a table that is copied everywhere.

    asked = Distinct(the keys of rows)
    total = Merge(table, Map(Filter(Lookup(asked, keys of the table))))
    pairs = Join(rows, total) on these keys

The answer has a row for every key that is asked for: that of the table, or one of nulls. Rows
with equal keys may lie in different buckets, and then no bucket has all that is asked.

Law: let each bucket have all of the table, and make `asked` of its own rows alone. For every key
k of a row in the bucket, the rows of `total` with key k are then those that it would have if
all of `asked` were in one place: k is asked here as it is there, whether the table has it is
known here as it is there, and no other key decides on it. The join looks at no other rows of
`total`. So the pairs of a bucket are the pairs of its rows, and no row need change places.

Guards: the rows that are joined are among those whose keys are asked, these columns unchanged;
the join compares all columns of `asked`; nothing else reads what is made on the way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from millstream.calculus.functions import Distinct, Duplicate, Filter, Join, Lookup, Map, Merge
from millstream.calculus.graph import Operator, Program
from millstream.calculus.lineage import carried
from millstream.calculus.types import QueueType

#: A queue, and for each column of `asked` the column of the queue that has its values.
_Trail = dict[str, dict[str, str]]


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked in one place or in each bucket, and the queues of the table it is about."""

    asked: str
    tables: tuple[str, ...]


def questions(program: Program) -> dict[str, Question]:
    """What may be asked by each bucket, by the operator that makes keys distinct."""
    walk = _Walk(program)
    asked = {}
    for op in program.operators:
        if isinstance(op.function, Distinct):
            question = walk.question(op)
            if question is not None:
                asked[op.id] = question
    return asked


class _Walk:
    """A program with its ways up and down."""

    def __init__(self, program: Program) -> None:
        self.types: Mapping[str, QueueType] = program.queue_types()
        self.producers = program.producers()
        self.consumers = program.consumers()
        self.outputs = frozenset(program.outputs)

    def question(self, distinct: Operator) -> Question | None:
        names = {name: name for name in self.types[distinct.inputs[0]].schema.names}
        asked = self._up(distinct.inputs[0], names, (Map, Duplicate))
        (queue,) = distinct.outputs
        columns, tables = dict(names), []
        while queue in self.consumers and queue not in self.outputs:
            op, index = self.consumers[queue]
            match op.function:
                case Lookup() if index == 0:
                    tables.append(op.inputs[1])
                case Filter():
                    pass
                case Map():
                    back = {old: new for new, old in carried(op, self._given(op), 0).items()}
                    if not set(columns.values()) <= back.keys():
                        return None
                    columns = {name: back[now] for name, now in columns.items()}
                case Merge() if len(op.inputs) == 2 and self.types[queue].is_relation:
                    tables.append(op.inputs[1 - index])
                case Join(on=on):
                    sides = [(pair[index], pair[1 - index]) for pair in on]
                    is_joined = self._is_asked(asked, columns, dict(sides), op.inputs[1 - index])
                    return Question(distinct.inputs[0], tuple(tables)) if is_joined else None
                case _:
                    return None
            (queue,) = op.outputs
        return None

    def _is_asked(
        self, asked: _Trail, columns: dict[str, str], on: dict[str, str], rows: str
    ) -> bool:
        """Whether the keys of all rows that are joined have been asked for."""
        if not set(columns.values()) <= on.keys():
            return False
        joined = {name: on[now] for name, now in columns.items()}
        trail = self._up(rows, joined, (Map, Duplicate, Filter))
        return any(asked.get(queue) == names for queue, names in trail.items())

    def _up(self, queue: str, columns: dict[str, str], ways: tuple[type, ...]) -> _Trail:
        """The queues whose rows these come from, as long as these columns are theirs."""
        trail = {queue: columns}
        while queue in self.producers and isinstance(self.producers[queue].function, ways):
            op = self.producers[queue]
            before = carried(op, self._given(op), 0)
            if not set(columns.values()) <= before.keys():
                break
            columns = {name: before[now] for name, now in columns.items()}
            (queue,) = op.inputs
            trail[queue] = columns
        return trail

    def _given(self, op: Operator) -> tuple[QueueType, ...]:
        return tuple(self.types[q] for q in op.inputs)
