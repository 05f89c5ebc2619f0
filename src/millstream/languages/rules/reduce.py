"""Rules reduce before they run: what need not be asked is dropped, with the reason.

A requirement is dropped if another one that applies wherever it does is at least as
strict. The outcome stays the same, also where values are not known: what is dropped fails
only where the other fails, and is undecided only where the other is undecided or fails.

Two kinds of rules are mistakes: requirements that can never both be met, and rules that
can never fire.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from millstream.calculus.judging import Requirement
from millstream.calculus.terms import columns_read
from millstream.errors import Fault
from millstream.languages.rules import logic
from millstream.languages.rules.resolve import Node, Rule


@dataclass(frozen=True, slots=True)
class Reduced:
    """The requirements that are left, and what was done, in words."""

    requirements: tuple[Requirement, ...]
    notes: tuple[str, ...]


def faults_of(rules: list[Rule]) -> list[Fault]:
    """Rules that can never fire, and those that contradict each other."""
    faults: list[Fault] = []
    sound: list[Rule] = []
    for rule in rules:
        fault = _never_fires(rule)
        if fault is None:
            sound.append(rule)
        elif fault not in faults:
            faults.append(fault)
    before = _Index()
    for rule in sound:
        for earlier in before.about(rule):
            if _are_contradictory(earlier, rule):
                faults.append(
                    Fault(
                        f"this contradicts line {earlier.place}: both can never be met",
                        rule.node.span,
                        f"line {earlier.place} says: {earlier.node.spoken}",
                    )
                )
                break
        before.add(rule)
    return faults


class _Index:
    """Mutable: rules by what their requirements are about, so that few need be compared."""

    def __init__(self, rules: Iterable[Rule] = ()) -> None:
        self.rules: dict[object, list[Rule]] = {}
        for rule in rules:
            self.add(rule)

    def add(self, rule: Rule) -> None:
        for subject in logic.subjects(rule.formula):
            self.rules.setdefault(subject, []).append(rule)

    def about(self, rule: Rule) -> list[Rule]:
        """The rules that share a subject with one, in their order."""
        sharing = {id(r): r for s in logic.subjects(rule.formula) for r in self.rules.get(s, ())}
        return list(sharing.values())


def _never_fires(rule: Rule) -> Fault | None:
    for n, node in enumerate(rule.above):
        before = rule.conditions[:n]
        if logic.is_impossible(logic.All((*before, node.condition.formula))):
            others = [a for a in rule.above[:n] if _clash(a, node)]
            hint = (
                f"it stands inside line {others[-1].place}: {others[-1].spoken}" if others else None
            )
            return Fault("this can never be true, so what is inside never applies", node.span, hint)
    if _is_constant(rule):
        # `require false` closes a place; without conditions it would close all of them.
        is_closed = rule.formula == logic.Always(False) and not rule.above
        return Fault("this requirement can never be met", rule.node.span) if is_closed else None
    if rule.conditions and logic.implies(logic.All(rule.conditions), rule.formula):
        return Fault(
            "this requirement can never fail, because its conditions already say so",
            rule.node.span,
            f"it stands inside line {rule.above[-1].place}: {rule.above[-1].spoken}",
        )
    if logic.is_impossible(rule.formula):
        return Fault("this requirement can never be met", rule.node.span)
    if isinstance(rule.formula, (logic.Always, logic.Bound)) and logic.is_impossible(
        logic.negated(rule.formula)
    ):
        return Fault("this requirement can never fail", rule.node.span)
    return None


def _is_constant(rule: Rule) -> bool:
    return not columns_read(rule.node.condition.term)


def idle(rules: Iterable[Rule]) -> list[Fault]:
    """Requirements that are true whatever comes: odd, but they do no harm."""
    return [
        Fault("this requirement can never fail", rule.node.span)
        for rule in rules
        if _is_constant(rule) and rule.formula == logic.Always(True)
    ]


def _clash(above: Node, node: Node) -> bool:
    return logic.excludes(above.condition.formula, node.condition.formula)


def _are_contradictory(one: Rule, other: Rule) -> bool:
    """Whether one applies wherever the other does, and they exclude each other."""
    if not logic.excludes(one.formula, other.formula):
        return False
    return _covers(one, other) or _covers(other, one)


def _covers(one: Rule, other: Rule) -> bool:
    """Whether the one applies wherever the other does."""
    wanted = logic.All(one.conditions)
    return not one.conditions or logic.implies(logic.All(other.conditions), wanted)


def reduced(rules: list[Rule]) -> Reduced:
    """The rules without those that others imply; conditions without those that do."""
    notes: list[str] = []
    kept: list[Rule] = []
    dropped: set[int] = set()
    index = _Index(rules)
    order = {id(rule): n for n, rule in enumerate(rules)}
    for rule in rules:
        others = (o for o in index.about(rule) if id(o) not in dropped)
        stronger = next(
            (
                o
                for o in others
                if _makes_needless(o, rule, is_first=order[id(o)] < order[id(rule)])
            ),
            None,
        )
        if stronger is None:
            kept.append(rule)
            continue
        dropped.add(id(rule))
        is_equal = stronger.formula == rule.formula
        why = "says the same" if is_equal else "is at least as strict"
        notes.append(
            f"dropped line {rule.place}, {rule.node.spoken}: "
            f"line {stronger.place}, {stronger.node.spoken}, {why} and applies wherever it does"
        )
    requirements: list[Requirement] = []
    for rule in kept:
        above, unasked = _needed(rule)
        notes += [
            f"line {rule.place} is not asked for line {d.place}, {d.spoken}: "
            "its other conditions imply it"
            for d in unasked
        ]
        requirements.append(rule.requirement(above))
    return Reduced(tuple(requirements), (*notes, *_shared(kept)))


def _makes_needless(one: Rule, other: Rule, *, is_first: bool) -> bool:
    if one is other or not logic.implies(one.formula, other.formula):
        return False
    if not _covers(one, other) or one.rank < other.rank:
        return False
    # Of two that imply each other the first one stays, or the more severe one.
    is_mutual = (
        one.rank == other.rank and logic.implies(other.formula, one.formula) and _covers(other, one)
    )
    return not is_mutual or is_first


def _needed(rule: Rule) -> tuple[tuple[Node, ...], list[Node]]:
    """The conditions of a rule without those that the others imply, and those."""
    kept = list(rule.above)
    dropped: list[Node] = []
    for node in rule.above:
        others = tuple(n.condition.formula for n in kept if n is not node)
        if others and logic.implies(logic.All(others), node.condition.formula):
            kept.remove(node)
            dropped.append(node)
    return tuple(kept), dropped


def _shared(rules: list[Rule]) -> list[str]:
    """Conditions that several requirements ask for, and that are evaluated once."""
    users: dict[logic.Formula, list[Rule]] = {}
    for rule in rules:
        for formula in dict.fromkeys(rule.conditions):
            users.setdefault(formula, []).append(rule)
    notes: list[str] = []
    for formula, ones in users.items():
        if len(ones) > 1:
            node = next(n for n in ones[0].above if n.condition.formula == formula)
            places = ", ".join(dict.fromkeys(r.place for r in ones))
            notes.append(f"{node.spoken} is evaluated once for lines {places}")
    return notes
