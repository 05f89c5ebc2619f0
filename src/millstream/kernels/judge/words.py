"""The words of a judge: reasons are written by a loop, what is not known once for each case.

Numbers and truths that are shown are computed by the judge's machine; all else that is shown
becomes texts of the pool in which the reasons are written.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.calculus.judging import Judge, Requirement, Shown
from millstream.calculus.terms import Column, Term
from millstream.calculus.types import BOOLEAN, Kind
from millstream.kernels.judge.code import JudgeCode
from millstream.kernels.runtime.hashing import frozen
from millstream.kernels.runtime.interning import IdTable
from millstream.kernels.runtime.interning_text import TextPool
from millstream.kernels.runtime.utf8 import SPARE
from millstream.kernels.windows.numerals import LONGEST, UNSURE
from millstream.kernels.windows.words import ShownValues, Unmet, Wording, say_failures
from millstream.meaning.judging import doubts, failures, head_of, shown_value
from millstream.meaning.scalars import evaluate
from millstream.plan.batch import Array, Batch

_TRUTHS = ("false", None, "true")

#: What is shown without a unit.
_PLAIN = (Kind.TIME, Kind.BOOLEAN)


class Letters:
    """Mutable: literal texts laid end to end, each known by its beginning and end."""

    def __init__(self) -> None:
        self.data = bytearray()

    def add(self, text: str) -> tuple[int, int]:
        start = len(self.data)
        self.data += text.encode()
        return start, len(self.data)


@dataclass(frozen=True, slots=True)
class Spoken:
    """All values that requirements show or ask for: those that the machine stores, and others."""

    stored: tuple[Term, ...]
    others: tuple[Term, ...]

    @staticmethod
    def of(shown: list[Shown], code: JudgeCode) -> Spoken:
        terms = list(dict.fromkeys(s.term for s in shown))
        stored = tuple(t for t in terms if code.can_store(t))
        return Spoken(stored, tuple(t for t in terms if t not in stored))

    def is_number(self, term: Term) -> bool:
        return term in self.stored and term.type.kind is Kind.NUMBER

    def place(self, term: Term) -> int:
        """Among the numbers, or among the texts: truths first, then all others."""
        if self.is_number(term):
            return self.stored.index(term)
        truths = [t for t in self.stored if t.type == BOOLEAN]
        return [*truths, *self.others].index(term)


class Speech:
    """What a judge can say of rows that do not meet requirements."""

    def __init__(self, judge: Judge, code: JudgeCode) -> None:
        self.requirements = judge.requirements
        shown = [s for requirement in judge.requirements for s in requirement.shown]
        asked = [s for one in judge.requirements for s in one.asked]
        #: Conditions are looked at only where it is not known whether they hold.
        self.shown, self.all = Spoken.of(shown, code), Spoken.of([*shown, *asked], code)
        self.wording = self._wording()

    def _wording(self) -> Wording:
        letters = Letters()
        heads = [letters.add(head_of(requirement)) for requirement in self.requirements]
        places = [letters.add(one.place) for one in self.requirements]
        between = [letters.add(text) for text in ("; ", ", ", "not known")]
        pieces = [self._pieces(one, letters) for one in self.requirements]
        flat = [piece for some in pieces for piece in some]
        words = [
            [head, place, *(p[2:4] for p in some), *(p[4:6] for p in some)]
            for head, place, some in zip(heads, places, pieces, strict=True)
        ]
        most = [2 + sum(end - start for start, end in some) for some in words]
        return Wording(
            np.frombuffer(bytes(letters.data) + bytes(SPARE), np.uint8), _table(heads, 2),
            _table(places, 2),
            np.cumsum([0, *map(len, pieces)]), _table(flat, 6), np.array(most, np.int64),
            _table(between, 2),
        )  # fmt: skip

    def _pieces(self, requirement: Requirement, letters: Letters) -> list[tuple[int, ...]]:
        return [
            (self.shown.is_number(s.term), self.shown.place(s.term),
             *letters.add(f"{', ' if n else ', but '}{s.label} = "),
             *letters.add(f" {s.unit}" if s.unit and s.term.type.kind not in _PLAIN else ""))
            for n, s in enumerate(requirement.shown)
        ]  # fmt: skip

    # --- what fails ---

    def failures(
        self, batch: Batch, stored: tuple[Array, Array], unmet: Unmet, pool: TextPool
    ) -> tuple[Array, Array]:
        """The codes of the places that fail rows, and of the reasons."""
        numbers, known = stored
        codes = [
            _truth_codes(numbers[n], pool)
            for n, term in enumerate(self.shown.stored)
            if term.type == BOOLEAN
        ]
        codes += [_text_codes(term, batch, pool) for term in self.shown.others]
        values = ShownValues(numbers, known, _table(codes, len(batch)))
        failed, reasons = np.empty(len(batch), np.int64), np.empty(len(batch), np.int64)
        longest = max(int(pool.texts.places[:, 1].max()), LONGEST)
        most = self.wording.most + np.diff(self.wording.first) * longest
        pool.make_room(int(most[unmet.requirements].sum()) + SPARE, 2 * len(batch))
        say_failures(self.wording, unmet, values, (failed, reasons), pool.texts)
        for row in np.flatnonzero(reasons == UNSURE).tolist():
            ones = [self.requirements[n] for n in _of_row(unmet, row)]
            reasons[row] = _code(failures(ones, _names(batch, row)), pool)
        return failed, reasons

    # --- what is not known ---

    def doubts(
        self, batch: Batch, known: Array, unmet: Unmet, pool: TextPool
    ) -> tuple[Array, Array]:
        """The codes of no places, and of what is not known: once for each different case."""
        waiting = np.zeros((len(batch), len(self.requirements)), np.bool_)
        waiting[np.repeat(np.arange(len(batch)), np.diff(unmet.first)), unmet.requirements] = True
        others = [_is_known(term, batch) for term in self.all.others]
        bits = np.packbits(np.column_stack([waiting, known.T, *others]), axis=1)
        words = np.zeros((len(batch), -(-bits.shape[1] // 8)), np.int64)
        words.view(np.uint8)[:, : bits.shape[1]] = bits
        cases = IdTable(words.shape[1]).ids(words)
        _, first = np.unique(cases, return_index=True)
        said = [
            _code(doubts([self.requirements[n] for n in _of_row(unmet, row)], _names(batch, row)),
                  pool)
            for row in first.tolist()
        ]  # fmt: skip
        return np.full(len(batch), _code("", pool)), np.array(said, np.int64)[cases]


def _table(rows: list[Any], width: int) -> Array:
    return np.array(rows, np.int64).reshape(-1, width)


def _of_row(unmet: Unmet, row: int) -> list[int]:
    requirements: list[int] = unmet.requirements[unmet.first[row] : unmet.first[row + 1]].tolist()
    return requirements


def _names(batch: Batch, row: int) -> dict[str, Any]:
    return dict(zip(batch.schema.names, batch.slice(row, row + 1).rows()[0], strict=True))


def _code(text: str, pool: TextPool) -> int:
    return int(pool.codes(pa.array([text], pa.string()))[0])


def _truth_codes(truths: Array, pool: TextPool) -> Array:
    return pool.codes(pa.array(_TRUTHS, pa.string()))[truths.astype(np.int64)]


def _text_codes(term: Term, batch: Batch, pool: TextPool) -> Array:
    """The codes of a value as it is shown, without its unit; -1 where it is not known."""
    if isinstance(term, Column) and term.type.kind is Kind.TEXT:
        return pool.codes(batch.column(term.name).values)
    if isinstance(term, Column) and term.type.kind is Kind.INTEGER:
        return pool.codes(batch.column(term.name).to_arrow().cast(pa.string()))
    shown, names = Shown("", "", term), batch.schema.names
    if isinstance(term, Column):
        vector = batch.column(term.name)
        values, places = np.unique(vector.values, return_inverse=True)
        texts = [shown_value(shown, {term.name: v}) for v in values.tolist()]
        codes = pool.codes(pa.array(texts, pa.string()))[places]
        return np.where(vector.mask(), codes, -1)
    rows = [dict(zip(names, row, strict=True)) for row in batch.rows()]
    said = [None if evaluate(term, row) is None else shown_value(shown, row) for row in rows]
    return pool.codes(pa.array(said, pa.string()))


def _is_known(term: Term, batch: Batch) -> Array:
    if isinstance(term, Column):
        return batch.column(term.name).mask()
    rows = [dict(zip(batch.schema.names, row, strict=True)) for row in batch.rows()]
    return np.array([evaluate(term, row) is not None for row in rows], np.bool_)


def unmet_of(first: Array, requirements: Array, rows: Array) -> Unmet:
    """The requirements that some rows do not meet, of all rows that there are."""
    counts = np.diff(first)[rows]
    starts = np.concatenate([[0], np.cumsum(counts)])
    places = np.repeat(first[rows] - starts[:-1], counts) + np.arange(starts[-1])
    return Unmet(frozen(starts), frozen(requirements[places]))
