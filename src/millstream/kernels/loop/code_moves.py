"""How many items a body takes and gives, as far as that is known before it runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from millstream.calculus.procedures import (
    Body,
    Choose,
    Code,
    Invoke,
    Leave,
    Pop,
    Push,
    Repeat,
    Return,
    Scope,
    Statement,
    statements_in,
)
from millstream.kernels.loop.code_ranges import routine_of
from millstream.kernels.loop.ir import ZERO, Value
from millstream.kernels.loop.numbers import ONE, plus, times


@dataclass(frozen=True, slots=True)
class Count:
    """The fewest and the most."""

    least: Value = ZERO
    most: Value = ZERO

    def plus(self, other: Count) -> Count:
        return Count(plus(self.least, other.least), plus(self.most, other.most))

    def times(self, rounds: Value) -> Count:
        return Count(times(rounds, self.least), times(rounds, self.most))

    def spread(self, others: Count) -> Count:
        """From what it is at the beginning to what all rounds but the last one add."""
        return Count(self.least, plus(self.most, others.most))


ONCE = Count(ONE, ONE)


@dataclass(frozen=True, slots=True)
class Moves:
    """What was taken and given so far; what is not known has to be looked at."""

    popped: Count = Count()
    pushed: Count = Count()

    def plus(self, other: Moves) -> Moves:
        return Moves(self.popped.plus(other.popped), self.pushed.plus(other.pushed))

    def times(self, rounds: Value) -> Moves:
        return Moves(self.popped.times(rounds), self.pushed.times(rounds))


NONE = Moves()
#: How often a loop goes round, given the statement before it; None if that is not known.
Rounds = Callable[[Repeat, Statement | None], Value | None]


def moves_items(body: Body, code: Code) -> bool:
    """Whether statements take or give any item."""
    for statement in statements_in(body):
        if isinstance(statement, Pop) or (isinstance(statement, Push) and statement.output == 0):
            return True
        if isinstance(statement, Invoke):
            if moves_items(routine_of(code, statement.routine).body, code):
                return True
    return False


def moves_of(body: Body, code: Code, rounds: Rounds) -> Moves | None:
    """What a body takes and gives, if it always does the same."""
    if any(isinstance(s, (Leave, Return)) for s in statements_in(body)):
        return None
    total = NONE
    before: Statement | None = None
    for statement in body:
        some = _of_statement(statement, before, code, rounds)
        if some is None:
            return None
        total = total.plus(some)
        before = statement
    return total


def _of_statement(
    statement: Statement, before: Statement | None, code: Code, rounds: Rounds
) -> Moves | None:
    match statement:
        case Pop():
            return Moves(popped=ONCE)
        case Push(_, 0):
            return Moves(pushed=ONCE)
        case Choose(_, then, otherwise):
            one, other = moves_of(then, code, rounds), moves_of(otherwise, code, rounds)
            return one if one == other else None
        case Scope(inner):
            return moves_of(inner, code, rounds)
        case Invoke(name):
            body = routine_of(code, name).body
            if body and isinstance(body[-1], Return):
                body = body[:-1]
            return NONE if not moves_items(body, code) else moves_of(body, code, rounds)
        case Repeat(_, inner, after):
            if not moves_items((statement,), code):
                return NONE
            each, often = moves_of(inner + after, code, rounds), rounds(statement, before)
            return None if each is None or often is None else each.times(often)
        case _:
            return NONE
