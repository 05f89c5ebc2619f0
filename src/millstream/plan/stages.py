"""Stages: runs of steps that work on the same buckets.

Buckets of a stage never talk to each other, so a stage can run on many workers; where the key
changes, rows change places. A step joins the stages of its inputs if it can run where they are,
or where they can be made to be (see `placing`); otherwise its inputs enter a stage of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from graphlib import TopologicalSorter

from millstream.calculus.each import PerKey
from millstream.calculus.functions import Join, Lookup
from millstream.calculus.graph import Operator
from millstream.plan.keys import EVERYWHERE, Key
from millstream.plan.order import lost_by
from millstream.plan.placing import How, RowsPlace, Rules, entered
from millstream.plan.steps import Plan, Step

#: How much there is of some inputs of a program.
SizeOf = Callable[[frozenset[str]], float]


@dataclass(frozen=True, slots=True)
class Stage:
    """Steps that run on the same buckets, and the key of each queue that enters."""

    keys: tuple[tuple[str, Key], ...]
    steps: tuple[Step, ...]

    @property
    def inputs(self) -> tuple[str, ...]:
        return tuple(queue for queue, _ in self.keys)


@dataclass(frozen=True, slots=True)
class Spread:
    """A plan and its stages, in the order in which they can run."""

    plan: Plan
    stages: tuple[Stage, ...]
    #: The inputs of the program that every bucket has all of.
    copied: frozenset[str] = frozenset()
    #: The queues that every bucket has all of: one bucket speaks for all.
    everywhere: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Copying:
    """What may be copied to every bucket: inputs of which there is little beside others.

    `at_most` is how much, as a share of those whose rows stay where they are.
    """

    at_most: float = 0.0
    size_of: SizeOf = len

    def is_worth_it(self, some: frozenset[str], others: frozenset[str]) -> bool:
        return self.at_most > 0 and self.size_of(some) <= self.at_most * self.size_of(others)


NOTHING = Copying()
#: The rules by which stages are made; a checkpoint goes on by those that it was begun by. By the
#: first ones rows never came to others that stay, `Rstream` had equal rows in one bucket, and the
#: first step that asked for a key of an input had it, whatever others could do with.
NEWEST_RULES = 1


def stages_of(plan: Plan) -> tuple[Stage, ...]:
    """The stages of a plan in which nothing is copied."""
    return spread(plan).stages


def spread(
    plan: Plan,
    copying: Copying = NOTHING,
    copied: frozenset[str] = frozenset(),
    generation: int = NEWEST_RULES,
) -> Spread:
    """The stages of a plan, with some inputs copied, and those that had better be.

    Items of one instant can be put back into their order by rank, or by their values where they
    come from a relation. Whatever else leaves its place for one where its order is seen is made
    in one place, and ranked there: the plan says what that is.

    A step that comes early asks for what it would like best. Once it is known what later ones have
    inputs by, that may do for it as well: then less changes its place.
    """
    first = _spread(plan, copying, copied, generation, {})
    wanted = {q: key for stage in first.stages for q, key in stage.keys if isinstance(key, tuple)}
    known = {name: wanted[name] for name in plan.program.input_names if wanted.get(name)}
    if generation == 0 or not known or not _moved(first):
        return first
    second = _spread(plan, copying, copied, generation, known)
    return min(first, second, key=lambda one: (_moved(one), len(one.stages)))


def _moved(one: Spread) -> int:
    """How many queues change their place that are made here."""
    inputs = one.plan.program.input_names
    return sum(q not in inputs for stage in one.stages for q in stage.inputs)


def _spread(
    plan: Plan,
    copying: Copying,
    copied: frozenset[str],
    generation: int,
    known: Mapping[str, Key],
) -> Spread:
    """The stages where some inputs have keys that are known before anybody asks for one."""
    placed: frozenset[str] = frozenset()
    refused: frozenset[str] = frozenset()
    can_ask = True
    while True:
        rules = Rules(plan, placed, copied, can_ask=can_ask, is_first=generation == 0)
        drafting = _Drafting(plan, rules, copied, refused, copying)
        drafting.keys.update(known)
        drafting.place_all()
        if drafting.is_stuck:
            can_ask = False
            continue
        if drafting.refused > refused:
            refused, copied = drafting.refused, copied - drafting.refused
            continue
        if drafting.wanted:
            copied |= drafting.wanted
            continue
        stages = drafting.stages()
        more = lost_by(plan.program, _leaving(plan, stages), placed) - placed
        if not more:
            everywhere = drafting.everywhere()
            return Spread(replace(plan, placed=placed), stages, copied, everywhere)
        placed |= more


def _leaving(plan: Plan, stages: tuple[Stage, ...]) -> set[str]:
    """The queues that one stage writes and another reads, and the outputs."""
    leaving = set(plan.program.outputs)
    for stage in stages:
        leaving |= {q for q in stage.inputs if q not in plan.program.input_names}
    return leaving


@dataclass
class _Draft:
    """A stage in the making."""

    entering: list[str]
    #: By their numbers in the plan.
    steps: dict[int, Step] = field(default_factory=dict)
    #: The drafts whose rows enter this one.
    needs: set[int] = field(default_factory=set)


class _Drafting:
    """Mutable: places of queues and drafts of stages, until all steps have found theirs."""

    def __init__(
        self,
        plan: Plan,
        rules: Rules,
        copied: frozenset[str],
        refused: frozenset[str],
        copying: Copying,
    ) -> None:
        self.plan = plan
        self.rules = rules
        #: Whether what a bucket has asked for would have to leave it.
        self.is_stuck = False
        self.copied = copied
        self.copying = copying
        self.inputs = frozenset(plan.program.input_names)
        self.shared_variables = plan.program.shared_variables()
        self.drafts: list[_Draft] = []
        #: What a draft has become part of.
        self.joined: dict[int, int] = {}
        #: The draft in which everything is that is made of copies.
        self.ground: int | None = None
        self.keys: dict[str, Key] = {}
        self.places: dict[str, RowsPlace] = {}
        #: Inputs that had better be copied, and those that cannot be.
        self.wanted: frozenset[str] = frozenset()
        self.refused = refused

    def place_all(self) -> None:
        for number, step in enumerate(self.plan.steps):
            if self._stays(number, step):
                continue
            if self._wants_copies(step):
                return
            if not self._draws(number, step) and not self._enters_anew(number, step):
                return

    def stages(self) -> tuple[Stage, ...]:
        """The stages, producers before consumers."""
        return tuple(
            Stage(
                tuple((q, self.keys[q]) for q in draft.entering),
                tuple(step for _, step in sorted(draft.steps.items())),
            )
            for draft in map(self.drafts.__getitem__, self._in_order())
            if draft.steps
        )

    def everywhere(self) -> frozenset[str]:
        entering = {q for q, key in self.keys.items() if key is EVERYWHERE}
        return frozenset(entering | {q for q, p in self.places.items() if p.how is How.EVERYWHERE})

    def _in_order(self) -> list[int]:
        graph = {
            number: sorted(map(self._home, draft.needs))
            for number, draft in enumerate(self.drafts)
            if number not in self.joined
        }
        return list(TopologicalSorter(graph).static_order())

    # --- where inputs are ---

    def _stays(self, number: int, step: Step) -> bool:
        """Let a step run where its inputs are, if it can."""
        given = {q: self._place(q) for q in step.inputs}
        homes = {p.draft for p in given.values() if p.draft >= 0 and p.how is not How.EVERYWHERE}
        if not self._can_join(homes) or (len(given) > 1 and self._shares_variables(step)):
            return False
        keys = {e: self.keys.get(e) for place in given.values() for e in place.behind}
        if _is_much_work(step) and () in keys.values():
            return False  # what is in one place leaves it again
        made = self.rules.placed_by(step, given, keys)
        if made is None:
            return False
        is_ground = all(p.how is How.EVERYWHERE for p in made.values())
        if is_ground or any(p.how is How.EVERYWHERE for p in given.values()):
            homes |= self._ground_for(homes)
        target = self._join(homes)
        if is_ground:
            self.ground = target
        for queue in step.inputs:
            self._enter(queue, target, given[queue], keys.get(queue))
        for entering, key in keys.items():
            self.keys[entering] = key
        self._put(number, step, target, made)
        return True

    def _place(self, queue: str) -> RowsPlace:
        """Where a queue is; an input of the program is nowhere yet."""
        if queue in self.places:
            place = self.places[queue]
            return replace(place, draft=self._home(place.draft))
        if queue in self.copied:
            return RowsPlace(How.EVERYWHERE)
        return entered(queue, self.rules.types[queue])

    def _ground_for(self, homes: set[int]) -> set[int]:
        """The ground, if drafts can become part of it: those that read but inputs."""
        if self.ground is None or any(self.drafts[home].needs for home in homes):
            return set()
        return {self.ground}

    def _enter(self, queue: str, target: int, place: RowsPlace, key: Key) -> None:
        """A queue that is not in a draft enters it."""
        if self._home(place.draft) == target:
            return
        draft = self.drafts[target]
        draft.entering.append(queue)
        self.keys[queue] = EVERYWHERE if place.how is How.EVERYWHERE else key
        if place.draft >= 0:
            draft.needs.add(place.draft)

    def _put(self, number: int, step: Step, target: int, made: dict[str, RowsPlace]) -> None:
        self.drafts[target].steps[number] = step
        for queue, place in made.items():
            self.places[queue] = replace(place, draft=target)

    def _home(self, draft: int) -> int:
        while draft in self.joined:
            draft = self.joined[draft]
        return draft

    def _can_join(self, homes: set[int]) -> bool:
        """Whether no row of one draft reaches another one of them."""
        if len(homes) < 2:
            return True
        if self.ground in homes and any(self.drafts[home].needs for home in homes):
            return False  # what is made of copies waits for nobody
        seen: set[int] = set()
        waiting = [need for home in homes for need in self.drafts[home].needs]
        while waiting:
            draft = self._home(waiting.pop())
            if draft not in seen:
                seen.add(draft)
                waiting += self.drafts[draft].needs
        return seen.isdisjoint(homes)

    def _join(self, homes: set[int]) -> int:
        """Several drafts as one; a new one if there are none."""
        if not homes:
            self.drafts.append(_Draft([]))
            return len(self.drafts) - 1
        first, *others = sorted(homes)
        for number in others:
            other = self.drafts[number]
            self.drafts[first].entering += other.entering
            self.drafts[first].steps |= other.steps
            self.drafts[first].needs |= other.needs
            self.joined[number] = first
        if self.ground in homes:
            self.ground = first
        return first

    def _shares_variables(self, step: Step) -> bool:
        """Whether operators on different inputs use the same state: their keys must agree."""
        return any(not self.shared_variables.isdisjoint(op.variables) for op in step.operators)

    # --- where they are not ---

    def _draws(self, number: int, step: Step) -> bool:
        """Let a step run where some of its inputs are, and the others come to them by a key.

        They come from earlier stages, so that nobody waits longer.
        """
        places = {q: self._place(q) for q in step.inputs}
        if (
            self.rules.is_first
            or any(place.how is not How.SHARED for place in places.values())
            or self._shares_variables(step)
        ):
            return False
        levels = {place.draft: self._level(place.draft) for place in places.values()}
        target = max(levels, key=lambda draft: levels[draft])
        if target < 0 or len(levels) < 2 or list(levels.values()).count(levels[target]) > 1:
            return False
        coming = [q for q in step.inputs if places[q].draft != target]
        given = places | {q: entered(q, self.rules.types[q]) for q in coming}
        keys = {e: self.keys.get(e) for q in given.keys() - coming for e in places[q].behind}
        keys |= dict.fromkeys(coming)
        made = self.rules.placed_by(step, given, keys)
        if made is None or (_is_much_work(step) and () in keys.values()):
            return False
        for queue in coming:
            self._enter(queue, target, places[queue], keys[queue])
        self.keys |= keys
        self._put(number, step, target, made)
        return True

    def _level(self, draft: int) -> int:
        """How many drafts one after the other there are before this one; inputs are before all."""
        if draft < 0:
            return -1
        needs = self.drafts[draft].needs
        return 1 + max((self._level(self._home(need)) for need in needs), default=-1)

    def _enters_anew(self, number: int, step: Step) -> bool:
        """Let the inputs of a step come together in a stage of its own, if they can leave."""
        raw = frozenset(step.inputs) & self.copied
        if raw:
            # What comes from outside comes once: it cannot be copied here and cut there.
            self.refused |= raw
            return False
        places = {q: self._place(q) for q in step.inputs}
        if any(place.how is How.COVERING for place in places.values()):
            # What each bucket has asked for is no relation of which every bucket has a part.
            self.is_stuck = True
            return False
        given = {q: entered(q, self.rules.types[q]) for q in step.inputs}
        keys: dict[str, Key] = dict.fromkeys(step.inputs)
        made = self.rules.placed_by(step, given, keys)
        widths = {len(key) for key in keys.values() if isinstance(key, tuple)}
        if made is None or (len(widths) > 1 and self._shares_variables(step)):
            keys = dict.fromkeys(step.inputs, ())
            made = self.rules.placed_by(step, given, keys)
            assert made is not None, step
        target = self._join(set())
        for queue in step.inputs:
            self._enter(queue, target, places[queue], keys[queue])
            self.keys[queue] = keys[queue]
        self._put(number, step, target, made)
        return True

    def _wants_copies(self, step: Step) -> bool:
        """Whether a step could run where some of its inputs are if the others were copied."""
        if self.rules.is_undivided(step):
            return False
        sides = [
            (some - self.copied, others - self.copied)
            for op in step.operators
            for some, others in self._sides(op)
        ]
        fits = [
            some
            for some, others in sides
            if some and others and some.isdisjoint(others | self.refused)
            and self.copying.is_worth_it(some, others)
        ]  # fmt: skip
        self.wanted = min(fits, key=self.copying.size_of, default=frozenset())
        return bool(self.wanted)

    def _sides(self, op: Operator) -> list[tuple[frozenset[str], frozenset[str]]]:
        """Which inputs of the program could be copied for an operator, and to rows of which."""
        behind = self.rules.inputs_behind
        if op.id in self.rules.questions:
            question = self.rules.questions[op.id]
            tables: frozenset[str] = frozenset()
            return [(tables.union(*(behind[q] for q in question.tables)), behind[question.asked])]
        if isinstance(op.function, (Join, Lookup)):
            one, other = (behind[q] for q in op.inputs)
            return [(other, one)] + ([(one, other)] if isinstance(op.function, Join) else [])
        return []


def _is_much_work(step: Step) -> bool:
    """Whether a step runs a program for each key, which had better be on many buckets."""
    return step.fallback is None and any(isinstance(op.function, PerKey) for op in step.operators)


def side_by_side(stages: tuple[Stage, ...], plan: Plan) -> tuple[Stage, ...]:
    """Stages that do not need each other as one, for engines that run stages in a row.

    Each queue keeps the key of its own stage.
    """
    levels: list[int] = []
    made: dict[str, int] = {}
    for stage in stages:
        levels.append(max((made[q] + 1 for q in stage.inputs if q in made), default=0))
        made.update({q: levels[-1] for step in stage.steps for q in step.outputs})
    order = {step: number for number, step in enumerate(plan.steps)}
    merged = []
    for level in range(max(levels, default=-1) + 1):
        together = [s for s, own in zip(stages, levels, strict=True) if own == level]
        steps = sorted((step for s in together for step in s.steps), key=order.__getitem__)
        merged.append(Stage(tuple(k for s in together for k in s.keys), tuple(steps)))
    return tuple(merged)


def all_together(stages: tuple[Stage, ...], plan: Plan) -> Stage:
    """All stages as one that sees all rows in one place."""
    made = {q for stage in stages for step in stage.steps for q in step.outputs}
    entering = [q for stage in stages for q in stage.inputs if q not in made]
    order = {step: number for number, step in enumerate(plan.steps)}
    steps = sorted((step for s in stages for step in s.steps), key=order.__getitem__)
    return Stage(tuple((q, ()) for q in dict.fromkeys(entering)), tuple(steps))
