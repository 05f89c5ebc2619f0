"""Which steps can run on the same buckets, and by what rows come to them.

Rows *enter* a draft of a stage by a key, all to one place, or as copies to every bucket. Inside
of it nothing moves, so what a step asks for must hold where its rows are already:

- *shared*: each row is in one bucket, which the key of what entered decides on; the columns that
  still are columns of that key say who is together (see `lineage`);
- *everywhere*: each bucket has all rows, and what is made of such rows alone is everywhere too;
- *covering*: each bucket has what its own rows ask for (see `covering`).

A pair of a join is made where its shared row is, if the other side is everywhere. Who enters
without a key is given one by the first step that asks for it.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from millstream.calculus.functions import (
    Aggregate,
    Distinct,
    Duplicate,
    Filter,
    FlatMap,
    Istream,
    Join,
    Lookup,
    Map,
    Merge,
    Range,
    Rstream,
    Top,
)
from millstream.calculus.graph import Operator
from millstream.calculus.lineage import carried
from millstream.calculus.types import QueueType
from millstream.plan.covering import questions
from millstream.plan.first_parts import partial_firsts
from millstream.plan.instants import folds_by_instants
from millstream.plan.keys import Key
from millstream.plan.partial import partial_totals
from millstream.plan.steps import Plan, Step

#: The columns of a queue, each with the columns of what entered that it is.
Origins = Mapping[str, frozenset[tuple[str, str]]]


class How(enum.Enum):
    """Where the rows of a queue are."""

    SHARED = "each row in one bucket"
    EVERYWHERE = "all rows in each bucket"
    COVERING = "in each bucket what its rows ask for"


@dataclass(frozen=True, slots=True)
class RowsPlace:
    """Where the rows of a queue are, and what entered that decides on it."""

    how: How
    behind: frozenset[str] = frozenset()
    origins: Origins = field(default_factory=dict)
    draft: int = -1


def entered(queue: str, type_: QueueType) -> RowsPlace:
    """The place of a queue that enters by a key, be it one that is not known yet."""
    origins = {name: frozenset(((queue, name),)) for name in type_.schema.names}
    return RowsPlace(How.SHARED, frozenset((queue,)), origins)


class Rules:
    """What steps of a plan ask of the places of their inputs."""

    def __init__(
        self,
        plan: Plan,
        placed: frozenset[str],
        copied: frozenset[str],
        *,
        can_ask: bool,
        is_first: bool = False,
    ) -> None:
        #: Whether they are those of the first generation.
        self.is_first = is_first
        self.types = plan.program.queue_types()
        self.placed = placed
        self.inputs_behind = inputs_of_queues(plan)
        self.questions = questions(plan.program)
        #: The operators that make keys distinct in each bucket.
        self.answered = {
            name
            for name, question in self.questions.items()
            if can_ask and all(self.inputs_behind[table] <= copied for table in question.tables)
        }
        self.growing = _growing(plan)
        self.by_instants = folds_by_instants(plan.program)
        self.partial = partial_totals(plan.program)
        self.firsts = partial_firsts(plan.program)
        self.inputs = frozenset(plan.program.input_names)
        # The rows of a constant have an order, which they keep only if they stay together.
        self.constant = {one.name for one in plan.program.inputs if one.values is not None}

    def is_undivided(self, step: Step) -> bool:
        """Whether a step must see all its rows in one order."""
        if step.fallback is not None or step.is_net:
            return True
        is_ordered = step.makes(self.placed) or not self.constant.isdisjoint(step.inputs)
        return is_ordered or any(map(self._blurs_order, step.operators))

    def _blurs_order(self, op: Operator) -> bool:
        several = isinstance(op.function, FlatMap) and len(op.function.branches) > 1
        is_relation = self.types[op.inputs[0]].is_relation
        return not is_relation and (several or isinstance(op.function, Merge))

    def placed_by(
        self, step: Step, given: Mapping[str, RowsPlace], keys: dict[str, Key]
    ) -> dict[str, RowsPlace] | None:
        """Where what a step makes is, if it can run where its inputs are.

        `keys` is how queues enter, and is told what the step wants of those that may choose.
        """
        if all(place.how is How.EVERYWHERE for place in given.values()):
            return dict.fromkeys(step.outputs, RowsPlace(How.EVERYWHERE))
        behind = frozenset().union(*(place.behind for place in given.values()))
        is_shared = all(place.how is How.SHARED for place in given.values())
        is_in_one_place = is_shared and all(keys[e] == () for e in behind)
        if self.is_undivided(step):
            made = RowsPlace(How.SHARED, behind)
            return dict.fromkeys(step.outputs, made) if is_in_one_place else None
        places = dict(given)
        for op in step.operators:
            of_op = self._made(op, [places[q] for q in op.inputs], keys)
            if of_op is None:
                return None
            places.update(dict.fromkeys(op.outputs, of_op))
        return {q: places[q] for q in step.outputs}

    def _made(self, op: Operator, given: list[RowsPlace], keys: dict[str, Key]) -> RowsPlace | None:
        """Where what an operator makes is, or None if it cannot work where its inputs are."""
        hows = [place.how for place in given]
        behind = frozenset().union(*(place.behind for place in given))
        if all(how is How.EVERYWHERE for how in hows):
            return RowsPlace(How.EVERYWHERE)
        match op.function, hows:
            case Aggregate(), [How.SHARED] if self._adds_up_anywhere(op, given[0]):
                # It leaves: the few rows that are totalled again must not draw all others.
                return RowsPlace(How.SHARED, behind)
            case Aggregate() | Top(), [How.SHARED] if self._is_first_of_parts(op, given[0], keys):
                return RowsPlace(How.SHARED, behind)
            case Rstream(), [How.SHARED] if not self.is_first and self._returns(given[0], keys):
                # Each bucket tells its own part of the bag; together they are all of it.
                return RowsPlace(How.SHARED, behind, self._origins(op, given))
            case Distinct(), [How.SHARED] if op.id in self.answered:
                return RowsPlace(How.COVERING, behind)
            case (
                (Filter() | Map(), [How.COVERING])
                | (Lookup(), [How.COVERING, How.EVERYWHERE])
                | (Merge(), [How.COVERING, How.EVERYWHERE] | [How.EVERYWHERE, How.COVERING])
            ):
                return RowsPlace(How.COVERING, behind)
            case (Join() | Lookup(), [How.SHARED, How.EVERYWHERE | How.COVERING]) | (
                Join(),
                [How.EVERYWHERE | How.COVERING, How.SHARED],
            ):
                return RowsPlace(How.SHARED, behind, self._origins(op, given))
            case _:
                is_shared = all(how is How.SHARED for how in hows)
                meets = is_shared and self._meet(op, given, keys)
                return RowsPlace(How.SHARED, behind, self._origins(op, given)) if meets else None

    def _adds_up_anywhere(self, op: Operator, place: RowsPlace) -> bool:
        """Whether each bucket can total its own rows, and nobody can enter by the groups.

        Rows cannot enter by a column that is worked out behind.
        """
        assert isinstance(op.function, Aggregate)
        return op.id in self.partial and not place.origins.keys() >= set(op.function.by)

    def _is_first_of_parts(self, op: Operator, place: RowsPlace, keys: Mapping[str, Key]) -> bool:
        """Whether each bucket can tell what is first of its own rows."""
        return op.id in self.firsts and self._returns(place, keys)

    def _returns(self, place: RowsPlace, keys: Mapping[str, Key]) -> bool:
        """Whether what goes is where it came: it enters by a key, or from outside."""
        return all(keys[e] is not None or e in self.inputs for e in place.behind)

    def _meet(self, op: Operator, given: list[RowsPlace], keys: dict[str, Key]) -> bool:
        """Whether the rows that must be together are, or will be by keys that are still open."""
        types = tuple(self.types[q] for q in op.inputs)
        asked = [
            (key, place)
            for index, place in enumerate(given)
            if (key := self._wanted(op, types, index)) is not None
        ]
        if not asked:
            return True
        behind = {e for _, place in asked for e in place.behind}
        if all(keys[e] == () for e in behind):
            return True
        if any(keys[e] == () for e in behind) or any(key == () for key, _ in asked):
            return False
        return _settled(asked, behind, keys)

    def _wanted(
        self, op: Operator, types: tuple[QueueType, ...], index: int
    ) -> tuple[str, ...] | None:
        # What is only added to is a stream already: nothing must meet to cancel out.
        if isinstance(op.function, Istream) and op.inputs[index] in self.growing:
            return None
        if op.id in self.by_instants:
            return (self.by_instants[op.id],)
        return op.function.facts(types, index).key

    def _origins(self, op: Operator, given: list[RowsPlace]) -> Origins:
        """Where the columns of what an operator makes come from."""
        types = tuple(self.types[q] for q in op.inputs)
        sides = [
            {name: place.origins[old]
             for name, old in carried(op, types, index).items() if old in place.origins}
            for index, place in enumerate(given)
        ]  # fmt: skip
        if isinstance(op.function, (Join, Lookup)):
            together = sides[-1] | sides[0]
            # What is equal to a column of the key decides on the bucket as well.
            for one, other in op.function.on if isinstance(op.function, Join) else ():
                for name, old, place in ((other, one, given[0]), (one, other, given[1])):
                    if old in place.origins:
                        together.setdefault(name, place.origins[old])
            return together
        first, *others = sides
        return {
            name: frozenset(origins.union(*(other[name] for other in others)))
            for name, origins in first.items()
            if all(name in other for other in others)
        }


def _settled(
    asked: Sequence[tuple[tuple[str, ...], RowsPlace]], behind: set[str], keys: dict[str, Key]
) -> bool:
    """Whether rows with equal columns are in the same bucket, however they have entered.

    The columns that are asked for correspond to each other by their numbers. The key of what
    has one must be found among them; the others get the corresponding columns as theirs.
    """
    known = [key for e in sorted(behind) if isinstance(key := keys[e], tuple)]
    if len({len(key) for key in known}) > 1:
        return False
    numbers = range(len(asked[0][0]))
    chosen: list[dict[str, str]] = []
    for position in range(len(known[0])) if known else numbers:
        wanted = numbers if known else (position,)
        columns = (_columns_of(asked, number) for number in wanted)
        fits = (c for c in columns if c is not None and _agree(c, keys, position))
        fitting = next(fits, None)
        if fitting is None:
            return False
        chosen.append(fitting)
    for e in behind:
        if keys[e] is None:
            if not chosen or any(e not in columns for columns in chosen):
                return False
            keys[e] = tuple(columns[e] for columns in chosen)
    return True


def _columns_of(
    asked: Sequence[tuple[tuple[str, ...], RowsPlace]], number: int
) -> dict[str, str] | None:
    """What a column is in all that entered; None if it is not one column in each."""
    columns: dict[str, str] = {}
    for key, place in asked:
        if key[number] not in place.origins:
            return None
        for entering, column in place.origins[key[number]]:
            if columns.setdefault(entering, column) != column:
                return None
    return columns


def _agree(columns: dict[str, str], keys: Mapping[str, Key], position: int) -> bool:
    return all(
        not isinstance(key := keys[entering], tuple) or key[position] == column
        for entering, column in columns.items()
    )


def _growing(plan: Plan) -> frozenset[str]:
    """Relations that rows are only ever added to."""
    growing = {one.name for one in plan.program.inputs if one.is_read_once}
    for op in (op for step in plan.steps for op in step.operators):
        never_lets_go = isinstance(op.function, Range) and op.function.length is None
        hands_on = isinstance(op.function, (Map, Filter, Duplicate, Merge, Join))
        if never_lets_go or (hands_on and growing.issuperset(op.inputs)):
            growing.update(op.outputs)
    return frozenset(growing)


def inputs_of_queues(plan: Plan) -> dict[str, frozenset[str]]:
    """For every queue, the inputs of the program that it is made of."""
    behind = {name: frozenset((name,)) for name in plan.program.input_names}
    for step in plan.steps:
        of_step = frozenset().union(*(behind[q] for q in step.inputs))
        for op in step.operators:
            # In a cycle, what comes round is made of all that the step is given.
            of_op = frozenset().union(*(behind.get(q, of_step) for q in op.inputs))
            behind.update(dict.fromkeys(op.outputs, of_op))
    return behind
