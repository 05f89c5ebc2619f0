"""The texts of a compiled sheet: a number for each, and what loops look up by it.

Columns come in and leave as Arrow's, and the texts themselves lie in a pool of bytes: a sheet
with a hundred thousand keys, or with tweets, sees as many texts as rows, so that nothing here
may cost a step of Python for each. Only texts that are not plain ASCII are looked at one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.calculus.types import Type
from millstream.kernels.runtime.hashing import padded
from millstream.kernels.runtime.interning_text import TextPool
from millstream.kernels.runtime.kernel import State
from millstream.kernels.sheets.columns import KnownWords, Zeros, encoded
from millstream.kernels.sheets.operands import EMPTY, Texts
from millstream.kernels.sheets.tuples import used_codes
from millstream.plan.batch import Array, Vector
from millstream.values.excel.gather import looks_for_itself
from millstream.values.excel.values import folded


class TextNumbers:
    """Mutable: numbers stay what they are until `sweep` frees those no longer in use."""

    def __init__(self, named: Sequence[str] = ("",)) -> None:
        #: What the sheet itself names; the first is the empty text.
        self.texts = Texts(list(named), {text: n for n, text in enumerate(named)})
        self.pool = TextPool()
        self.known: dict[object, KnownWords] = {}
        self.needs_folded = self.needs_lengths = self.needs_plain = False
        self._forget()

    def _forget(self) -> None:
        #: Equal for texts that differ only in case. They are numbers of another pool, whose
        #: first is the empty text, as in this one.
        self.folded = np.zeros(0, np.int64)
        self.folds = TextPool()
        self.folds.codes(pa.array([""]))
        self.lengths = np.zeros(0, np.int64)
        #: Whether a text, as a criterion, looks for nothing but itself.
        self.plain = np.zeros(0, np.int64)
        self.is_looked_up = np.zeros(0, np.bool_)
        self.known.clear()
        #: Those that were asked for one by one.
        self.numbers: dict[str, int] = {}
        self.words: dict[int, str] = {}

    def __len__(self) -> int:
        return len(self.pool)

    def name_all(self, source: str) -> int:
        """The sheet names no more texts: theirs are the first numbers. How many there are."""
        codes = self._find(pa.array(self.texts.texts, pa.string()))
        assert codes.tolist() == list(range(len(codes)))
        self.needs_folded, self.needs_lengths = "folded[" in source, "lengths[" in source
        self.needs_plain = "plain[" in source
        self._look_up_all()
        return len(codes)

    # --- columns ---

    def column(self, place: object, vector: Vector, zeros: Zeros) -> list[Array]:
        """A code for each row, the numbers of texts by their codes, and statuses."""
        coded = self.known.setdefault(place, KnownWords()).of(encoded(vector), self._find)
        codes, numbers, nulls = coded
        statuses = zeros.first(len(codes))
        if len(nulls):
            statuses = np.where(nulls, np.int8(EMPTY), statuses)
        return [codes, numbers, statuses]

    def _find(self, words: Any) -> Array:
        codes = np.maximum(self.pool.codes(words), 0)  # a word may be null; it has no rows
        self._look_up(codes, words)
        return codes

    def vector(self, type_: Type, codes: Array, missing: Array | None) -> Vector:
        """A column of texts: with a dictionary of all, or if these are many of those in use."""
        top = self.pool.top
        if top <= len(codes):
            words = self.pool.everything()
        else:
            numbers = np.full(top, -1, np.int64)
            used = np.empty(len(codes), np.int64)
            words = self.pool.gathered(used[: used_codes(codes, numbers, used)])
        indices = pa.array(codes, mask=missing)
        return Vector(type_, pa.DictionaryArray.from_arrays(indices, words, safe=False))

    # --- one by one ---

    def number(self, text: str) -> int:
        """The number of a text, which may be new."""
        number = self.numbers.get(text)
        if number is None:
            number = self.numbers[text] = int(self._find(pa.array([text], pa.string()))[0])
        return number

    def text(self, number: int) -> str:
        text = self.words.get(number)
        if text is None:
            text = self.words[number] = self.pool.gathered(np.array([number])).to_pylist()[0]
        return text

    def words_of(self, numbers: Sequence[float]) -> tuple[str, ...]:
        """Texts by their numbers, most of which were asked for before."""
        words = self.words
        for number in set(numbers).difference(words):
            self.text(int(number))
        return tuple(map(words.__getitem__, numbers))  # type: ignore[arg-type]

    def gathered(self, numbers: Array) -> Callable[[Array | None], Any]:
        """Texts by their numbers, at some places or at all."""

        def at(places: Array | None) -> Any:
            wanted = numbers if places is None else numbers.take(places)
            return self.pool.gathered(wanted.astype(np.int64))

        return at

    def room(self) -> int:
        """How many numbers more what loops look up has room for."""
        if not self._needs_any:
            return 1 << 30
        return len(self.is_looked_up) - self.pool.top

    def make_room(self, count: int) -> None:
        if self.room() < count:
            self._pad(2 * (self.pool.top + count))

    # --- what loops look up ---

    def _pad(self, size: int) -> None:
        self.is_looked_up = padded(self.is_looked_up, size)
        self.folded, self.lengths = padded(self.folded, size), padded(self.lengths, size)
        self.plain = padded(self.plain, size)

    @property
    def _needs_any(self) -> bool:
        return self.needs_folded or self.needs_lengths or self.needs_plain

    def _look_up(self, codes: Array, words: Any) -> None:
        if not self._needs_any:
            return
        if self.pool.top > len(self.is_looked_up):
            self._pad(2 * self.pool.top)
        new = np.flatnonzero(~self.is_looked_up[codes])
        if not len(new):
            return
        words, codes = pc.fill_null(words.take(pa.array(new)), ""), codes[new]
        if self.needs_folded:
            self.folded[codes] = self.folds.codes(folded_texts(words))
        if self.needs_lengths:
            self.lengths[codes] = pc.utf8_length(words).to_numpy(zero_copy_only=False)
        if self.needs_plain:
            self.plain[codes] = [looks_for_itself(word) for word in words.to_pylist()]
        self.is_looked_up[codes] = True

    def _look_up_all(self) -> None:
        live = self.pool.live()
        self._look_up(live, self.pool.gathered(live))

    # --- state ---

    def sweep(self, is_live: Array) -> None:
        """Free the numbers whose mark is false."""
        self.pool.sweep(is_live)
        self._forget()
        self._look_up_all()

    def snapshot(self) -> State:
        return self.pool.snapshot()

    def restore(self, state: State) -> None:
        self.pool.restore(state)
        self._forget()
        self._look_up_all()


def folded_texts(words: Any) -> Any:
    """Texts without regard to case."""
    is_strange = pc.not_equal(pc.binary_length(words), pc.utf8_length(words))
    strange = words.filter(is_strange).to_pylist()
    lower = pc.ascii_lower(words)
    if not strange:
        return lower
    return pc.replace_with_mask(
        lower, is_strange, pa.array([folded(w) for w in strange], pa.string())
    )
