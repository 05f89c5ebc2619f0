"""Joins that only ask something of the other side become lookups.

Law: if the second input has one row at most for the keys of a join, a row of the first is
among the pairs that satisfy a condition exactly if it finds that row, and that row is one that
satisfies it. What is true of one row under `and` and `or` is true of each part by itself.

    before  (pairs) <- Join(readings, mean); (high) <- Filter[v > avg](pairs);
            (out) <- Map[k, v](high);
    after   (looked) <- Lookup[found; where v > avg](readings, mean);
            (high) <- Filter[found](looked); (out) <- Map[k, v](high);

A join tells all its pairs anew whenever a value changes. A lookup keeps rows in the order of
what is compared, and touches only those between the old value and the new one. If columns of
the second input are read behind, the join stays, but only rows that satisfy the condition
come to it. If nothing but Distinct looks at the rows they may have several partners, of which
one thing can be asked.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from millstream.calculus.functions import (
    Assign,
    Comparison,
    Distinct,
    Duplicate,
    Filter,
    Function,
    Join,
    Lookup,
    Map,
)
from millstream.calculus.graph import Operator, Program
from millstream.calculus.terms import Column, Term, all_of, columns_read, conjuncts, is_known
from millstream.calculus.text import render_term
from millstream.calculus.types import Schema
from millstream.calculus.unique import is_within, unique_keys
from millstream.optimiser.asking import Asking, Question
from millstream.optimiser.narrow_columns import columns_needed, mixes_ways


def look_up_joins(program: Program) -> Program:
    """Let the first join that can be a lookup be one; the same program if there is none."""
    joins = [op for op in program.operators if isinstance(op.function, Join)]
    if not joins or mixes_ways(program):
        return program
    known = _Known(program)
    for join in joins:
        for asked in (1, 0):
            pair = _Pair(known, join, asked)
            if pair.refusal() is None:
                return pair.looked_up()
    return program


def refusals(program: Program) -> Iterator[tuple[Operator, str]]:
    """The joins that stay, and the guard that keeps each from asking its second input."""
    joins = [op for op in program.operators if isinstance(op.function, Join)]
    is_mixed = bool(joins) and mixes_ways(program)
    known = None if is_mixed or not joins else _Known(program)
    for join in joins:
        why = None if known is None else _Pair(known, join, 1).refusal()
        yield join, why or "rows come round to where they were, or must look alike by several ways"


class _Known:
    """What is known of a program."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.types = program.queue_types()
        self.needed = columns_needed(program)
        self.carried = columns_needed(program, as_it_is=True)
        self.unique = unique_keys(program)
        self.readers = {queue: op for queue, (op, _) in program.consumers().items()}


class _Pair:
    """A join and the selection behind it, if there is one; input `asked` may be asked."""

    def __init__(self, known: _Known, op: Operator, asked: int) -> None:
        assert isinstance(op.function, Join)
        self.known, self.op, self.join, self.asked = known, op, op.function, asked
        reader = known.readers.get(op.outputs[0])
        self.select = reader if reader and isinstance(reader.function, Filter) else None
        (self.out,) = op.outputs if self.select is None else self.select.outputs
        self.outer, self.inner = (
            known.types[op.inputs[side]].schema for side in (1 - asked, asked)
        )
        self._sort()

    def _sort(self) -> None:
        """Sort the conditions: of the row that asks, answered by questions, and the rest."""
        asking = Asking(frozenset(self.outer.names), frozenset(self.inner.names))
        conditions = conjuncts(self.join.where)
        if self.select is not None:
            assert isinstance(self.select.function, Filter)
            conditions += conjuncts(self.select.function.condition)
        self.own = [c for c in conditions if asking.is_own(c)]
        given = tuple(c for c in conditions if asking.is_theirs(c))
        others = [c for c in conditions if c not in self.own and c not in given]
        answers = [(c, asking.answer(c, given)) for c in others]
        #: What is worked out of both rows, and so is no question to one of them.
        self.of_both = [c for c, answer in answers if answer is None]
        self.rest = list(self.of_both)
        self.answers = [answer for _, answer in answers if answer is not None]
        wanted = self.known.needed[self.out]
        self.is_asked_only = not self.rest and wanted <= frozenset(self.outer.names)
        if not self.is_asked_only:
            self.rest += given
        elif not any(a.needs_partner for a in self.answers):
            self.answers.append(asking.ask(Question(given)))
        read = frozenset().union(*(columns_read(a.term) for a in self.answers))
        self.questions = {q: name for q, name in asking.questions.items() if name in read}

    def refusal(self) -> str | None:
        """Why a lookup would not do, or not pay; None if it does."""
        if self.known.carried[self.out] != self.known.needed[self.out]:
            return "columns that nobody needs are still read behind it"
        compares = any(q.order is not None for q in self.questions)
        asked = self.op.inputs[self.asked]
        is_single = is_within(
            self.known.unique.get(asked), [pair[self.asked] for pair in self.join.on]
        )
        if not self.is_asked_only and not is_single:
            return f"columns of {asked} are read behind it, and several of its rows may match"
        if not is_single and not (len(self.questions) == 1 and self._is_seen_once()):
            return f"several rows of {asked} may match, and how many is seen behind it"
        if not self.is_asked_only and self.join.on:
            return f"columns of {asked} are read behind it, and keys find its row as well"
        if not compares and self.of_both:
            return f"{render_term(self.of_both[0])} takes a row of both sides to work out"
        if not compares and (self.join.on or not self.is_asked_only):
            return f"nothing is compared with {asked}" + " but keys" * bool(self.join.on)
        return None

    def _is_seen_once(self) -> bool:
        """Whether Distinct is all that sees how many rows there are."""
        reader = self.known.readers.get(self.out)
        while reader is not None and isinstance(reader.function, (Map, Filter)):
            reader = self.known.readers.get(reader.outputs[0])
        return reader is not None and isinstance(reader.function, Distinct)

    # --- the change ---

    def looked_up(self) -> Program:
        draft = _Draft(self.known.program, self.op)
        sources = [self.op.inputs[self.asked]]
        if len(self.questions) > 1 or not self.is_asked_only:
            count = len(self.questions) + (not self.is_asked_only)
            sources = draft.copies(sources[0], count)
        queue = draft.selected(self.op.inputs[1 - self.asked], self.own)
        columns, computed = _with_columns(self.outer, [q.ours for q in self.questions])
        queue = draft.mapped(queue, columns)
        for (question, name), source in zip(self.questions.items(), sources, strict=False):
            queue = self._lookup(draft, queue, source, (question, name, computed))
        queue = draft.selected(queue, [a.term for a in self.answers])
        if self.is_asked_only:
            wanted = self.known.needed[self.out]
            kept = [f for f in self.outer if f.name in wanted] or list(self.outer.fields[:1])
            draft.add(Map(_plain(Schema(tuple(kept)))), queue, out=self.out)
        else:
            queue = draft.add(Map(_plain(self.outer)), queue)
            inputs = (queue, sources[-1]) if self.asked else (sources[-1], queue)
            draft.add(replace(self.join, where=all_of(self.rest)), *inputs, out=self.out)
        return draft.program(gone=self.select)

    def _lookup(
        self, draft: _Draft, queue: str, source: str, asked: tuple[Question, str, dict[Term, str]]
    ) -> str:
        question, name, computed = asked
        on = tuple((a, b) if self.asked else (b, a) for a, b in self.join.on)
        nulls_match = self.join.nulls_match and bool(on)
        given, where = list(question.given), None
        if question.order is not None:
            assert question.ours is not None and question.theirs is not None
            columns, theirs = _with_columns(self.inner, [question.theirs])
            ours, value = computed[question.ours], theirs[question.theirs]
            if question.order == "==":
                on = (*on, (ours, value))
                # Nulls that match are nulls of keys.
                given += [is_known(question.theirs)] if nulls_match else []
            else:
                where = Comparison(ours, question.order, value)
            source = draft.mapped(draft.selected(source, given), columns)
        else:
            source = draft.selected(source, given)
        return draft.add(Lookup(name, on, nulls_match, where), queue, source)


def _plain(schema: Schema) -> tuple[Assign, ...]:
    return tuple(Assign(f.name, Column(f.name, f.type)) for f in schema)


def _with_columns(
    schema: Schema, terms: list[Term | None]
) -> tuple[tuple[Assign, ...], dict[Term, str]]:
    """Columns that are to be added so that every term is one, and what each is called."""
    names: dict[Term, str] = {}
    added: list[Assign] = []
    for term in dict.fromkeys(t for t in terms if t is not None):
        if isinstance(term, Column):
            names[term] = term.name
            continue
        taken = {*schema.names, *names.values()}
        names[term] = next(n for k in range(len(taken) + 1) if (n := f"value.{k}") not in taken)
        added.append(Assign(names[term], term))
    return (*_plain(schema), *added) if added else (), names


@dataclass
class _Draft:
    """Mutable: what is put in the place of an operator."""

    before: Program
    replaced: Operator
    operators: list[Operator] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.taken = {*self.before.queue_types(), *self.before.accessors()}

    def fresh(self, wanted: str) -> str:
        name = next(n for k in range(len(self.taken) + 1)
                    if (n := f"{wanted}{k or ''}") not in self.taken)  # fmt: skip
        self.taken.add(name)
        return name

    def add(self, function: Function, *inputs: str, out: str | None = None) -> str:
        name = out or self.fresh(f"{self.replaced.outputs[0]}.{function.name.lower()}")
        state = tuple(self.fresh(f"{name}.state") for _ in range(function.state_count(len(inputs))))
        made = Operator(function, inputs, (name,), state, state, self.replaced.origin)
        self.operators.append(made)
        return name

    def copies(self, queue: str, count: int) -> list[str]:
        names = tuple(self.fresh(f"{queue}.copy") for _ in range(count))
        made = Operator(Duplicate(), (queue,), names, origin=self.replaced.origin)
        self.operators.append(made)
        return list(names)

    def selected(self, queue: str, conditions: list[Term]) -> str:
        condition = all_of(conditions)
        return queue if condition is None else self.add(Filter(condition), queue)

    def mapped(self, queue: str, columns: tuple[Assign, ...]) -> str:
        return self.add(Map(columns), queue) if columns else queue

    def program(self, gone: Operator | None) -> Program:
        operators: list[Operator] = []
        for op in self.before.operators:
            if op is self.replaced:
                operators += self.operators
            elif op is not gone:
                operators.append(op)
        return replace(self.before, operators=tuple(operators))
