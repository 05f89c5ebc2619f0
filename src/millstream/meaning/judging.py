"""What a `Judge` means: three values of truth, and the words for what does not hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from millstream.calculus.judging import (
    ALLOWED,
    RESTRICTED,
    UNDECIDED,
    Judge,
    Requirement,
    Shown,
)
from millstream.calculus.terms import Call, Column, Term
from millstream.calculus.types import Kind, Value
from millstream.meaning.firing import Context, Result, State, fire
from millstream.meaning.items import Entry, Mark
from millstream.meaning.scalars import Names, evaluate
from millstream.values.core.plain_text import time_text


@fire.register
def _judge(function: Judge, entry: Entry, index: int, state: State, context: Context) -> Result:
    if isinstance(entry, Mark):
        return Result(((entry,),))
    names = context.names(index, entry)
    outcomes = [outcome(requirement, names) for requirement in function.requirements]
    failed = [n for n, met in enumerate(outcomes) if met is False]
    undecided = [n for n, met in enumerate(outcomes) if met is None]
    kept = tuple(names[name] for name in function.keep)
    row = (*kept, *verdict(function, names, failed, undecided))
    return Result(((replace(entry, row=row),),))


def outcome(requirement: Requirement, names: Names) -> Value:
    """True if met or not applicable, False if it fails, None if that is not known."""
    when = True if requirement.when is None else evaluate(requirement.when, names)
    if when is False:
        return True
    holds = evaluate(requirement.holds, names)
    return holds if when is True or holds is True else None


def verdict(
    judge: Judge, names: Names, failed: Sequence[int], undecided: Sequence[int]
) -> tuple[str, ...]:
    """The status of a row, the places of what fails, the reasons in words, and the severity."""
    ones = [judge.requirements[n] for n in failed]
    ranks = judge.ranks()
    severity = max((ranks[n] for n in failed), default=-1) if judge.levels else -1
    worst = (judge.levels[severity] if severity >= 0 else "",) if judge.levels else ()
    if failed:
        return RESTRICTED, ", ".join(one.place for one in ones), failures(ones, names), *worst
    if undecided:
        waiting = [judge.requirements[n] for n in undecided]
        return UNDECIDED, "", doubts(waiting, names), *worst
    return ALLOWED, "", "", *worst


def failures(ones: Sequence[Requirement], names: Names) -> str:
    """Requirements that fail, and the values that fail them."""
    return "; ".join(_failure(one, names) for one in ones)


def _failure(requirement: Requirement, names: Names) -> str:
    values = [f"{s.label} = {shown_value(s, names)}" for s in requirement.shown]
    return head_of(requirement) + (f", but {', '.join(values)}" if values else "")


def head_of(requirement: Requirement) -> str:
    return f"line {requirement.place}: {requirement.text}"


def doubts(ones: Sequence[Requirement], names: Names) -> str:
    """Which values are missing, and the places that wait for them."""
    waiting: dict[str, list[str]] = {}
    for one in ones:
        asked = (*one.asked, *one.shown)
        missing = [s for s in asked if evaluate(s.term, names) is None]
        # What is computed is missing because something that it is computed from is.
        plain = [s.label for s in missing if _is_plain(s.term)]
        for label in plain or [s.label for s in missing] or ["a value"]:
            waiting.setdefault(label, []).append(one.place)
    return "; ".join(f"{_lines(places)}: {label} is not known" for label, places in waiting.items())


def _lines(places: list[str]) -> str:
    return f"line{'s' if len(places) > 1 else ''} {', '.join(places)}"


def _is_plain(term: Term) -> bool:
    inner = term.args[0] if isinstance(term, Call) and term.function == "number" else term
    return isinstance(inner, Column)


def shown_value(shown: Shown, names: Names) -> str:
    value = evaluate(shown.term, names)
    if value is None:
        return "not known"
    if shown.term.type.kind is Kind.TIME and isinstance(value, int):
        return time_text(value) or str(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    # As many digits as comparisons look at: see `languages/rules/logic`.
    text = f"{value:.10g}" if isinstance(value, float) else str(value)
    return f"{text} {shown.unit}" if shown.unit else text
