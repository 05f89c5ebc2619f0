"""Judge: which requirements each row does not meet, and the words for those that it does not.

The machine of `loops_judge` finds the few pairs of a row and a requirement that is not met.
Only for these rows are values looked at, and put into words by `judge_words`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.calculus.judging import ALLOWED, RESTRICTED, UNDECIDED, Judge
from millstream.calculus.terms import Call, Column, Term
from millstream.calculus.types import TEXT, Kind, QueueType
from millstream.kernels.judge.code import allocated, code_of, with_skips
from millstream.kernels.judge.machine import BLOCK, Code, Found, Stored, by_row, judge_rows
from millstream.kernels.judge.words import Speech, unmet_of
from millstream.kernels.runtime.consolidate import net_of_columns
from millstream.kernels.runtime.hashing import frozen
from millstream.kernels.runtime.interning_text import TextPool
from millstream.kernels.runtime.kernel import Round, Termless
from millstream.plan.batch import Array, Batch, Vector, empty_batch

#: Columns of numbers with masks, and of truth, each a matrix with a row per column.
Given = tuple[Array, Array, Array]

_NOTHING = Stored(np.empty((0, 0)), np.empty((0, 0), np.bool_))


class JudgeKernel(Termless):
    """Which requirements each row does not meet, and the words for that."""

    def __init__(
        self, function: Judge, input_types: tuple[QueueType, ...], output_count: int
    ) -> None:
        (self.type,) = function.output_types(input_types, output_count)
        self.judge = function
        made = code_of(function)
        self.code = allocated(with_skips(made.instructions))
        self.sorted_by = made.most_compared()
        self.speech = Speech(function, made)
        self.shown, self.asked = (
            allocated(made.stored(spoken.stored).instructions)
            for spoken in (self.speech.shown, self.speech.all)
        )
        self.numbers, self.truths, self.texts = made.numbers, made.truths, made.texts
        self.crossed = frozenset(made.crossed)
        self.known = pa.array(list(made.texts), pa.string())
        self.ranks = np.array(function.ranks(), np.int64)

    def process(self, inputs: tuple[Batch, ...], round_: Round) -> tuple[Batch, ...]:
        (batch,) = inputs
        if not len(batch):
            nothing = empty_batch(self.type)
            return (Batch(self.type, nothing.time, nothing.columns, nothing.weight, batch.rank),)
        given = self._columns(batch)
        unmet = self._run(self.code, given, self._order(given[0]), _NOTHING)
        pool = TextPool()
        texts = self._texts(batch, given, by_row(unmet, len(batch)), pool)
        return (self._judged(batch, texts, pool),)

    def _run(
        self, code: tuple[Code, tuple[int, int]], given: Given, rows: Array, stored: Stored
    ) -> Found:
        return judge_rows(code[0], given, frozen(rows), code[1], stored)

    def _stored(
        self, code: tuple[Code, tuple[int, int]], count: int, given: Given, rows: Array
    ) -> Stored:
        stored = Stored(np.empty((count, len(rows))), np.empty((count, len(rows)), np.bool_))
        self._run(code, given, rows, stored)
        return stored

    def _judged(self, batch: Batch, texts: tuple[Array, ...], pool: TextPool) -> Batch:
        """The verdicts; most rows that change are judged as before: nobody need hear of them."""
        kept = [batch.column(n) for n in self.judge.keep]
        time, weight = batch.time, batch.weight
        if batch.rank is None and weight is not None:
            picked = net_of_columns(time, weight, [*kept, *texts], pool)
            if picked is not None:
                rows, weight = picked
                time, kept = time[rows], [c.take(rows) for c in kept]
                texts = tuple(codes[rows] for codes in texts)
        said = (Vector(TEXT, pool.encoded(codes)) for codes in texts)
        return Batch(self.type, time, (*kept, *said), weight, batch.rank)

    # --- into the machine ---

    def _columns(self, batch: Batch) -> Given:
        rows = len(batch)
        numbers = np.zeros((len(self.numbers), rows), np.float64)
        there = np.ones((len(self.numbers), rows), np.bool_)
        truths = np.zeros((max(len(self.truths), 1), rows), np.uint8)
        learnt = dict(self.texts)
        for n, term in enumerate(self.numbers):
            values, valid = self._number(term, batch, learnt)
            numbers[n] = values
            if valid is not None:
                there[n] = valid
        for n, column in enumerate(self.truths):
            vector = batch.column(column.name)
            truths[n] = 2 * vector.values
            if vector.valid is not None:
                truths[n][~vector.valid] = 1
        return numbers, there, truths

    def _number(
        self, term: Term, batch: Batch, learnt: dict[str, int]
    ) -> tuple[Array, Array | None]:
        match term:
            case Column(name, type_) if type_.kind is Kind.TEXT:
                others = learnt if name in self.crossed else None
                return _text_numbers(batch.column(name), self.known, others)
            case Column(name) | Call("number", (Column(name),)):
                vector = batch.column(name)
                return vector.values, vector.valid
            case Call("seconds", (Call("-", (Column(left), Column(right))),)):
                one, other = batch.column(left), batch.column(right)
                difference, fits = _difference(one.values, other.values)
                return difference / 1e6, one.mask() & other.mask() & fits
            case _:
                raise AssertionError(term)

    def _order(self, numbers: Array) -> Array:
        """Rows of one place together: then most blocks have nothing to do with most places."""
        rows = numbers.shape[1]
        if self.sorted_by is None or rows <= BLOCK:
            return np.arange(rows)
        order: Array = np.argsort(numbers[self.sorted_by], kind="stable")
        return order

    # --- out of it ---

    def _texts(
        self, batch: Batch, given: Given, unmet: tuple[Array, Array, Array], pool: TextPool
    ) -> tuple[Array, ...]:
        """The codes of the texts of each row."""
        first, requirements, fails = unmet
        is_unmet = np.diff(first) > 0
        statuses = pool.codes(pa.array((ALLOWED, RESTRICTED, UNDECIDED)))
        status = statuses[np.where(fails, 1, np.where(is_unmet, 2, 0))]
        failed, reasons = (np.full(len(batch), pool.codes(pa.array([""]))[0]) for _ in range(2))
        severity = np.full(len(batch), len(self.judge.levels))
        rows = np.flatnonzero(fails)
        if len(rows):
            stored = self._stored(self.shown, len(self.speech.shown.stored), given, rows)
            said = unmet_of(first, requirements, rows)
            if self.judge.levels:
                severity[rows] = np.maximum.reduceat(self.ranks[said.requirements], said.first[:-1])
            failed[rows], reasons[rows] = self.speech.failures(batch.take(rows), stored, said, pool)
        rows = np.flatnonzero(is_unmet & ~fails)
        if len(rows):
            stored = self._stored(self.asked, len(self.speech.all.stored), given, rows)
            said = unmet_of(first, requirements, rows)
            failed[rows], reasons[rows] = self.speech.doubts(
                batch.take(rows), stored.known, said, pool
            )
        if not self.judge.levels:
            return status, failed, reasons
        levels = pool.codes(pa.array([*self.judge.levels, ""], pa.string()))
        return status, failed, reasons, levels[severity]


def _difference(one: Array, other: Array) -> tuple[Array, Array]:
    """The difference of times, and where it fits 64 bits."""
    difference = one - other
    return difference, ((one ^ other) & (one ^ difference)) >= 0


def _text_numbers(vector: Vector, known: Any, learnt: dict[str, int] | None) -> tuple[Array, Array]:
    """Equal texts as equal numbers: those of the rules, and others where that matters."""
    values = vector.values
    if not pa.types.is_dictionary(values.type):
        values = values.dictionary_encode()
    if learnt is None:
        indices = pc.index_in(values.dictionary, value_set=known).fill_null(-1)
        numbers = indices.to_numpy(zero_copy_only=False)
    else:
        texts = values.dictionary.to_pylist()
        numbers = np.array([learnt.setdefault(t, len(learnt)) for t in texts], np.int64)
    lookup = np.append(numbers, -1).astype(np.float64)
    codes = values.indices.fill_null(len(numbers)).to_numpy(zero_copy_only=False)
    return lookup[codes], vector.mask()
