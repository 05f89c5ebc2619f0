"""What a condition on a pair of rows asks of the second, as questions that can be looked up.

A condition is taken apart at `and` and `or`. Whether it is true (neither false nor null)
depends on nothing but whether its parts are true. A part that reads one of the rows only is
a condition on that row; a comparison of the two is a question.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from millstream.calculus.matching import ORDERS
from millstream.calculus.terms import Call, Column, Term, all_of, columns_read, conjuncts, is_known
from millstream.calculus.types import BOOLEAN, TIME_COLUMN

_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(frozen=True, slots=True)
class Question:
    """Is there a row that satisfies all of `given`, and how does it compare?

    `order` is how `ours`, of the row that asks, must compare with `theirs`.
    """

    given: tuple[Term, ...] = ()
    order: str | None = None
    ours: Term | None = None
    theirs: Term | None = None


class Answer(NamedTuple):
    """A condition on the row that asks and on answers; can it be true without any of these?"""

    term: Term
    needs_partner: bool


@dataclass
class Asking:
    """Mutable: the questions asked so far, each with the name of its answer.

    A row reads the columns `mine` of its own, and `theirs` of the one it asks.
    """

    mine: frozenset[str]
    theirs: frozenset[str]
    questions: dict[Question, str] = field(default_factory=dict)

    def is_own(self, term: Term) -> bool:
        return columns_read(term) <= self.mine - {TIME_COLUMN}

    def is_theirs(self, term: Term) -> bool:
        return columns_read(term) <= self.theirs - {TIME_COLUMN} and not self.is_own(term)

    def ask(self, question: Question) -> Answer:
        name = self.questions.get(question)
        if name is None:
            taken = self.mine | set(self.questions.values())
            numbers = range(len(taken) + 1)
            name = next(n for k in numbers if (n := f"found.{k + 1}") not in taken)
            self.questions[question] = name
        return Answer(Column(name, BOOLEAN), needs_partner=True)

    def answer(self, term: Term, given: tuple[Term, ...]) -> Answer | None:
        """A condition by questions about a row of which something is given, if it can be."""
        if self.is_own(term):
            return Answer(term, needs_partner=False)
        if self.is_theirs(term):
            return self.ask(Question((*given, term)))
        match term:
            case Call("and"):
                return self._all(conjuncts(term), given)
            case Call("or", args):
                return self._any([self.answer(a, given) for a in args])
            case Call(order, (one, other)) if order in (*ORDERS, "==", "!="):
                if self.is_theirs(one):
                    one, other, order = other, one, _TURNED.get(order, order)
                if self.is_own(one) and self.is_theirs(other):
                    return self._compared(order, one, other, given)
        return None

    def _all(self, terms: Sequence[Term], given: tuple[Term, ...]) -> Answer | None:
        values = [t for t in terms if self.is_theirs(t)]
        given = (*given, *values)
        answers = [self.answer(t, given) for t in terms if t not in values]
        known = [a for a in answers if a is not None]
        if len(known) < len(answers):
            return None
        if values and not any(a.needs_partner for a in known):
            known.append(self.ask(Question(given)))
        term = all_of(a.term for a in known)
        assert term is not None
        return Answer(term, any(a.needs_partner for a in known))

    def _any(self, answers: Sequence[Answer | None]) -> Answer | None:
        known = [a for a in answers if a is not None]
        if len(known) < len(answers):
            return None
        term = known[0].term
        for one in known[1:]:
            term = Call("or", (term, one.term), BOOLEAN)
        return Answer(term, all(a.needs_partner for a in known))

    def _compared(
        self, order: str, ours: Term, theirs: Term, given: tuple[Term, ...]
    ) -> Answer | None:
        if order in (*ORDERS, "=="):
            return self.ask(Question(given, order, ours, theirs))
        same = self.ask(Question(given, "==", ours, theirs))
        there = self.ask(Question((*given, is_known(theirs))))
        term = all_of([Call("not", (same.term,), BOOLEAN), there.term, is_known(ours)])
        assert term is not None
        return Answer(term, needs_partner=True)
