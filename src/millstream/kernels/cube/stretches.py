"""Cells of several partitions together, as questions read them: in order, each in one place.

The cells of the finest vertex stay in order while time goes on: those of partitions that are gone
are left out, and those of new ones are put between the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from threading import Lock

import numpy as np

from millstream.kernels.cube.cells import Measures, Packed, joined
from millstream.kernels.cube.reading import Given, ordered
from millstream.kernels.cube.stores import CellTable
from millstream.kernels.windows.sums import CELL
from millstream.plan.batch import Array

#: Keys must be one word.
_LONGEST = 62


def width_of(count: int) -> int:
    """The bits that so many places need."""
    return max(0, count - 1).bit_length()


@dataclass(frozen=True)
class Ranking:
    """The order of cells: for each column where members come, and how many bits that needs."""

    ranks: tuple[Array, ...]
    widths: tuple[int, ...]

    def keys(self, codes: Array) -> Array | None:
        """Cells by all their members, the first in the highest bits; None if that is too much."""
        shift = sum(self.widths)
        if shift > _LONGEST:
            return None
        keys = np.zeros(len(codes), np.int64)
        for column, (ranks, width) in enumerate(zip(self.ranks, self.widths, strict=True)):
            shift -= width
            keys |= ranks.take(codes[:, column]) << shift
        return keys

    def is_same(self, other: Ranking) -> bool:
        return self.widths == other.widths and all(
            a is b or np.array_equal(a, b) for a, b in zip(self.ranks, other.ranks, strict=True)
        )


@dataclass(frozen=True)
class Records:
    """Cells with all that is kept of each together in memory, so that one look reaches it.

    The words of a cell are as `Given` says, but for sums that have all their words.
    """

    words: Array
    width: int
    sums: int
    short: int
    extremes: int

    def __len__(self) -> int:
        return len(self.words)

    @property
    def is_short(self) -> bool:
        """Whether sums have no words but their floats, and perhaps their counts."""
        return self.short < CELL

    @property
    def _places(self) -> tuple[int, int, int]:
        """Where rows, sums and extremes begin."""
        rows = -(-self.width // 2)
        return rows, rows + 1, rows + 1 + self.sums * self.short

    @property
    def codes(self) -> Array:
        return self.words.view(np.int32)[:, : self.width]

    @property
    def rows(self) -> Array:
        return self.words[:, self._places[0]]

    def given(self) -> Given:
        """The cells as loops take them in."""
        rows, sums, extremes = self._places
        return Given(self.words, self.words.view(np.float64), rows, sums, self.short, extremes)

    def packed(self) -> Packed:
        """The same cells, apart from each other."""
        rows, sums, extremes = self._places
        words = self.words
        known = words[:, extremes + self.extremes :] != 0
        return Packed(
            self.codes.copy(), words[:, rows].copy(),
            words[:, sums:extremes].reshape(len(words), self.sums, self.short).copy(),
            words[:, extremes : extremes + self.extremes].copy(), known,
        )  # fmt: skip

    def take(self, places: Array) -> Records:
        return replace(self, words=self.words.take(places, axis=0))

    def beside(self, other: Records) -> tuple[Records, Records]:
        """Both, with sums of as many words."""
        if self.short == other.short:
            return self, other
        short = max(self.short, other.short)
        one, two = (records([r.packed()], short) for r in (self, other))
        return one, two


def records(parts: Sequence[Packed], least: int = 0) -> Records:
    """Cells of several partitions one after the other; sums have at least so many words."""
    whole = joined(parts, least)
    size, width = whole.codes.shape
    (sums, short), extremes = whole.sums.shape[1:], whole.extremes.shape[1]
    rows = -(-width // 2)
    last = rows + 1 + sums * short
    words = np.zeros((size, last + 2 * extremes), np.int64)
    words.view(np.int32)[:, :width] = whole.codes
    words[:, rows] = whole.rows
    words[:, rows + 1 : last] = whole.sums.reshape(size, sums * short)
    words[:, last : last + extremes] = whole.extremes
    words[:, last + extremes :] = whole.known
    return Records(words, width, sums, short, extremes)


@dataclass(frozen=True)
class Stretch:
    """Cells of several partitions, in which of them each lies, and their keys if in their order."""

    cells: Records
    index: Array
    keys: Array | None = None

    def __len__(self) -> int:
        return len(self.cells)

    def take(self, places: Array) -> Stretch:
        keys = None if self.keys is None else self.keys[places]
        return Stretch(self.cells.take(places), self.index[places], keys)


class Stretches:
    """Mutable: the cells of a vertex as they were put together last, since most ask for the same.

    Of a partition there is only ever one state here, so its number stands for its cells.
    """

    def __init__(self, measures: Measures, width: int, *, is_finest: bool) -> None:
        self._measures = measures
        self._width = width
        #: Cells of the finest vertex are hardly fewer when they are put together.
        self._is_finest = is_finest
        self._lock = Lock()
        self._last: dict[bool, tuple[tuple[int, ...], Ranking, Stretch]] = {}
        self._active: tuple[Sequence[Packed], Stretch] | None = None

    def get(
        self, parts: Mapping[int, Packed], first: int, last: int, ranking: Ranking, *,
        is_together: bool,
    ) -> Stretch:  # fmt: skip
        chosen = tuple(i for i in parts if first <= i <= last)
        is_together &= not self._is_finest and len(chosen) > 1
        with self._lock:
            known = self._last.get(is_together)
        made: Stretch | None = None
        if known is not None and known[1].is_same(ranking):
            if known[0] == chosen:
                return known[2]
            if not is_together:
                made = self._followed(known[2], known[0], parts, chosen, ranking)
        if made is None:
            made = self._made([parts[i] for i in chosen], chosen)
            if is_together and made.cells.is_short:
                made = self._together(made)
            made = _in_order(made, ranking)
        with self._lock:
            self._last[is_together] = chosen, ranking, made
        return made

    def active(self, runs: Sequence[Packed], index: int) -> Stretch:
        """The cells of the active partition, of which each version has runs of its own."""
        known = self._active
        if known is not None and known[0] is runs:
            return known[1]
        made = self._made(runs, (index,) * len(runs))
        self._active = runs, made
        return made

    def _made(self, parts: Sequence[Packed], chosen: tuple[int, ...]) -> Stretch:
        cells = records(parts or [self._measures.nothing(self._width)])
        return Stretch(cells, np.repeat(np.array(chosen, np.int64), list(map(len, parts))))

    def _followed(
        self, before: Stretch, known: tuple[int, ...], parts: Mapping[int, Packed],
        chosen: tuple[int, ...], ranking: Ranking,
    ) -> Stretch | None:  # fmt: skip
        """What was there before, without some partitions and with some after all others."""
        fresh = tuple(i for i in chosen if i > known[-1]) if known else chosen
        left = chosen[: len(chosen) - len(fresh)]
        start = known.index(left[0]) if left and left[0] in known else len(known)
        if before.keys is None or not left or known[start : start + len(left)] != left:
            return None
        more = _in_order(self._made([parts[i] for i in fresh], fresh), ranking)
        if more.keys is None:
            return None
        stays = np.flatnonzero((before.index >= left[0]) & (before.index <= left[-1]))
        # Cells of one key stay in the order of time: new ones come after those that are there.
        at = np.searchsorted(before.keys[stays], more.keys, side="right")
        places = np.insert(stays, at, np.arange(len(more)) + len(before))
        one, two = before.cells.beside(more.cells)
        both = replace(one, words=np.concatenate([one.words, two.words]))
        index = np.concatenate([before.index, more.index])
        return Stretch(both, index, np.concatenate([before.keys, more.keys])).take(places)

    def _together(self, stretch: Stretch) -> Stretch:
        """One cell for all partitions, as if it lay in the first of them."""
        apart = self._measures.apart(None)
        table = CellTable(self._width, apart)
        ids = table.ids(stretch.cells.codes.astype(np.int64))
        apart.merge_given(stretch.cells.given(), ids, table.numbers)
        cells = table.cells()
        if cells.has_wide_sums:
            return stretch  # these would need wide sums of their own
        return Stretch(records([apart.packed(cells)]), np.repeat(stretch.index[:1], len(cells)))


def _in_order(stretch: Stretch, ranking: Ranking) -> Stretch:
    """Cells by their keys, those of one key in the order of time."""
    keys = ranking.keys(stretch.cells.codes)
    if keys is None:
        return stretch
    return replace(stretch, keys=keys).take(ordered(keys))
