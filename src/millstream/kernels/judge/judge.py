"""Judge: which requirements each row does not meet, and the words for those that it does not.

The machine of `loops_judge` finds the few pairs of a row and a requirement that is not met.
Only for these rows are values looked at one by one and put into words.
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
from millstream.kernels.judge.machine import BLOCK, FALSE, judge_rows
from millstream.kernels.judge.words import Speech
from millstream.kernels.relational.merge import Stateless
from millstream.kernels.runtime.consolidate import consolidate
from millstream.kernels.runtime.kernel import Round
from millstream.plan.batch import Array, Batch, Vector, empty_batch

_STATUSES = (ALLOWED, RESTRICTED, UNDECIDED)


class JudgeKernel(Stateless):
    """Mutable only in what it remembers having said."""

    def __init__(
        self, function: Judge, input_types: tuple[QueueType, ...], output_count: int
    ) -> None:
        (self.type,) = function.output_types(input_types, output_count)
        self.judge = function
        made = code_of(function)
        self.numbers, self.truths, self.texts = made.numbers, made.truths, made.texts
        self.crossed = frozenset(made.crossed)
        self.known = pa.array(list(made.texts), pa.string())
        self.code, self.registers, self.bank = allocated(with_skips(made.instructions))
        self.sorted_by = made.most_compared()
        self.speech = Speech(function, input_types[0].schema)

    def process(self, inputs: tuple[Batch, ...], round_: Round) -> tuple[Batch, ...]:
        (batch,) = inputs
        kept = tuple(batch.column(n) for n in self.judge.keep)
        if not len(batch):
            nothing = empty_batch(self.type)
            return (Batch(self.type, nothing.time, nothing.columns, nothing.weight, batch.rank),)
        columns = self._columns(batch)
        row, requirement, outcome = judge_rows(
            self.code, *columns, self._order(columns[0]), self.registers, self.bank
        )
        words = self._words(batch, row, requirement, outcome)
        made = Batch(self.type, batch.time, (*kept, *words), batch.weight, batch.rank)
        # Most rows that change are judged as before: nobody need hear of them.
        return (consolidate(made) if made.rank is None and made.weight is not None else made,)

    # --- into the machine ---

    def _columns(self, batch: Batch) -> tuple[Array, Array, Array]:
        """Numbers with masks, and truth, each a matrix with a row per column."""
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

    def _words(
        self, batch: Batch, row: Array, requirement: Array, outcome: Array
    ) -> tuple[Vector, ...]:
        status: Array = np.zeros(len(batch), np.int32)
        spoken: Array = np.zeros(len(batch), np.int32)
        texts: dict[tuple[str, str], int] = {("", ""): 0}
        order = np.lexsort((requirement, row))
        row, requirement, outcome = row[order], requirement[order], outcome[order]
        rows, starts = np.unique(row, return_index=True)
        ends = np.append(starts, len(row))[1:].tolist()
        # What fails leaves what is undecided unsaid.
        is_restricted = np.zeros(len(batch), np.bool_)
        is_restricted[row[outcome == FALSE]] = True
        status[rows] = np.where(is_restricted[rows], 1, 2)
        # Conditions are looked at only where it is not known whether they hold.
        wanted = None if (status[rows] == 2).any() else self.speech.shown_columns
        values = [
            batch.column(name).take(rows).to_list() if wanted is None or n in wanted else ()
            for n, name in enumerate(self.speech.read)
        ]
        numbers, outcomes = requirement.tolist(), outcome.tolist()
        for n, (place, start, end) in enumerate(zip(rows.tolist(), starts.tolist(), ends,
                                                    strict=True)):  # fmt: skip
            unmet = numbers[start:end]
            if status[place] == 1:
                failed = [r for r, o in zip(unmet, outcomes[start:end], strict=True) if o == FALSE]
                said = self.speech.failures(failed, values, n)
            else:
                said = self.speech.doubts(unmet, values, n)
            spoken[place] = texts.setdefault(said, len(texts))
        return (
            _encoded(status, list(_STATUSES)),
            _encoded(spoken, [t[0] for t in texts]),
            _encoded(spoken, [t[1] for t in texts]),
        )


def _encoded(codes: Array, texts: list[str]) -> Vector:
    return Vector(TEXT, pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(texts)))


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
        found = pc.index_in(values.dictionary, value_set=known).fill_null(-1)
        numbers = found.to_numpy(zero_copy_only=False)
    else:
        texts = values.dictionary.to_pylist()
        numbers = np.array([learnt.setdefault(t, len(learnt)) for t in texts], np.int64)
    lookup = np.append(numbers, -1).astype(np.float64)
    codes = values.indices.fill_null(len(numbers)).to_numpy(zero_copy_only=False)
    return lookup[codes], vector.mask()
