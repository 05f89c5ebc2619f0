"""Join: pairs of rows with equal keys, kept up to date at every instant.

At one instant both sides may change. Let L and R be how often a row is present after it,
and l and r before: a pair changes by LR - lr.

Where pairs leave as they are, those of an instant that touches one key are told in the order in
which they will leave: what is gone first, by the rows of the leading side and then of the other.
What is told are columns at once: no pairs are noted and looked up again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from millstream.calculus.functions import Join
from millstream.calculus.types import Kind, QueueType, Schema
from millstream.kernels.relational import join_loop as loop
from millstream.kernels.relational import keyed_blocks
from millstream.kernels.relational.join_pairs import (
    CURSOR,
    IS_NET,
    NOW,
    SIZE,
    KeyWords,
    Pairs,
    SideChanges,
)
from millstream.kernels.relational.keyed_blocks import (
    HAS_NULLS,
    IS_STRICT,
    BlockStore,
    InOrder,
    KeyBlocks,
)
from millstream.kernels.relational.pieces import Piece, Piecewise
from millstream.kernels.relational.sides import JoinSide, release_keys, with_keys
from millstream.kernels.runtime.hashing import frozen
from millstream.kernels.runtime.interning import Interner
from millstream.kernels.runtime.interning_words import Codec
from millstream.kernels.runtime.kernel import Round
from millstream.plan.batch import Array, Batch, Vector, empty_batch
from millstream.plan.net import NO_ORDER, Leaving

#: So many rows are looked at to keep others in order before any pair has been told; after that,
#: as many as pairs.
_PATIENCE = 1 << 12
#: There is room for so many pairs, and some for each change; if that does not do, for many.
_LEAST_ROOM = 1 << 12
#: Columns that lie whole pages of words apart have a row in the same few places of the caches.
_PAGE, _APART = 512, 72


class WordsTold(NamedTuple):
    """Which words of an interner's rows are told, and as which columns.

    They are those of columns, each under its name, then those with the bits of nulls.
    """

    codec: Codec
    names: tuple[str, ...]
    words: Array
    columns: Array

    def vectors(self, words: Array) -> dict[str, Vector]:
        count = len(self.names)
        columns = list(zip(self.words.tolist(), self.columns.tolist(), strict=True))
        bits = {word: words[column] for word, column in columns[count:]}
        return {
            name: self.codec.vector(word, words[column], bits.get(self.codec.null_word(word)))
            for name, (word, column) in zip(self.names, columns, strict=False)
        }


def _words_told(
    interner: Interner, names: Sequence[str], wanted: Sequence[str], start: int, *, nulls: bool
) -> WordsTold:
    """How the wanted columns are told from a column on, of rows whose columns have these names."""
    codec = interner.codec
    words = [n for n, name in enumerate(names) if name in wanted]
    kept = tuple(names[n] for n in words)
    words += range(codec.columns, codec.width) if nulls else ()
    columns = np.arange(start, start + len(words))
    return WordsTold(codec, kept, np.array(words, np.int64), columns)


class BlockSide(JoinSide):
    """Mutable. The rows of a key lie side by side, in the order of the columns `first`."""

    def __init__(
        self,
        number: int,
        schema: Schema,
        keys: tuple[str, ...],
        *,
        nulls_match: bool,
        first: tuple[str, ...],
    ) -> None:
        super().__init__(
            number, schema, keys, nulls_match=nulls_match, first=first, extra=keyed_blocks.ROW_EXTRA
        )
        kinds = [schema[n].kind for n in first]
        self.is_text = np.array([kind is Kind.TEXT for kind in kinds], np.bool_)

    def words_told(self, names: Sequence[str], start: int, *, nulls: bool) -> WordsTold:
        """How those of the columns with these names are told that are not among the keys."""
        return _words_told(self.rows, ("", *self.rest), names, start, nulls=nulls)

    def side_changes(
        self, batch: Batch, rows: Array, notes: Array, shown: WordsTold
    ) -> SideChanges:
        """What the loop needs to know of changes that can have partners, and their rows."""
        codec = self.rows.codec
        assert batch.weight is not None
        return SideChanges(
            self.number,
            frozen(batch.time),
            rows,
            frozen(batch.weight),
            np.empty(len(batch), np.int64),
            np.empty(len(batch), np.int64),
            self.rows.table.records,
            codec.width,
            InOrder(self.is_text, codec.pool.texts, codec.columns),
            notes,
            shown.words,
            shown.columns,
        )


class JoinKernel(Piecewise):
    """Mutable: the rows of both sides by key. Conditions are put behind it by the plan."""

    rests = True

    def __init__(
        self,
        function: Join,
        input_types: tuple[QueueType, ...],
        output_count: int,
        leaves_by: Leaving = NO_ORDER,
    ) -> None:
        """Pairs will leave in the order of the columns `leaves_by`, if there are any."""
        assert function.where is None, function
        (self.type,) = function.output_types(input_types, output_count)
        left, right = (t.schema for t in input_types)
        self.keys = Interner([left[name] for name, _ in function.on], keyed_blocks.KEY_EXTRA)
        self.nulls_match = function.nulls_match
        ours, theirs = (tuple(pair[n] for pair in function.on) for n in (0, 1))
        left_first, right_first = (
            tuple(n for n in leaves_by.columns if n in schema.names and n not in keys)
            for schema, keys in ((left, ours), (right, theirs))
        )
        self.left = BlockSide(0, left, ours, nulls_match=self.nulls_match, first=left_first)
        self.right = BlockSide(1, right, theirs, nulls_match=self.nulls_match, first=right_first)
        by = [n for n in leaves_by.columns if n not in (*ours, *theirs)]
        leads = [0 if n in left_first else 1 for n in by]
        self.lead = leads[0] if leads else 0
        #: Whether pairs are in order where they leave, if both sides are: by one side, then the
        #: other, before anything else.
        self.leave_in_order = (
            bool(left_first)
            and bool(right_first)
            and leads == sorted(leads, reverse=self.lead == 1)
            and set(by) <= set(leaves_by.leading)
        )
        self.cursor = np.zeros(CURSOR, np.int64)
        self.kept = (left.names, function.right_kept(right))
        self.blocks = BlockStore(_PATIENCE)
        self.parts = {
            "keys": self.keys, "left": self.left.rows, "right": self.right.rows,
            "blocks": self.blocks,
        }  # fmt: skip

    def pieces(self, inputs: tuple[Batch, ...], round_: Round) -> Iterator[Piece]:
        if not any(len(b) for b in inputs):
            yield Piece(empty_batch(self.type), round_.mark)
            return
        sides, notes = (self.left, self.right), self.blocks.notes
        batches = [
            with_keys(batch, side.keys, nulls_match=self.nulls_match)
            for batch, side in zip(inputs, sides, strict=True)
        ]
        rows = [s.row_numbers(b, self.keys) for b, s in zip(batches, sides, strict=True)]
        for n, side in enumerate(sides):
            notes[n, HAS_NULLS] |= any(_has_nulls(batches[n].column(c)) for c in side.rest)
        shown = self._words_told()
        left, right = (
            side.side_changes(batches[n], rows[n], notes[n], shown[1 + n])
            for n, side in enumerate(sides)
        )
        for pairs, until in self._told(left, right, shown, round_.mark):
            batch = replace(self._batch(pairs, shown), is_net=self._is_net())
            if until == round_.mark:
                self._release(left, right)
            yield Piece(batch, until)

    def _words_told(self) -> tuple[WordsTold, ...]:
        """What is told of the keys, of the left rows and of the right ones."""
        keys = _words_told(self.keys, self.left.keys, self.kept[0], 0, nulls=self.nulls_match)
        nulls = self.blocks.notes[:, HAS_NULLS] != 0
        left = self.left.words_told(self.kept[0], len(keys.words), nulls=nulls[0])
        own = [n for n in self.kept[1] if n not in self.right.keys]
        start = len(keys.words) + len(left.words)
        return keys, left, self.right.words_told(own, start, nulls=nulls[1])

    def _told(
        self, left: SideChanges, right: SideChanges, shown: tuple[WordsTold, ...], mark: int
    ) -> Iterator[tuple[Pairs, int]]:
        cursor = self.cursor = np.zeros(CURSOR, np.int64)
        rows = len(left.time) + len(right.time)
        size = min(self.room(rows), 8 * rows + _LEAST_ROOM)
        width = sum(len(t.words) for t in shown)
        common = KeyWords(shown[0].words, shown[0].columns)
        why = loop.FULL
        while why != loop.DONE:
            room = _room(size, width)
            cursor[SIZE], cursor[IS_NET], why = 0, 1, loop.CROWDED
            while True:
                numbers, free = self.blocks.blocks
                keys = KeyBlocks(self.keys.table.records, self.keys.codec.width, numbers, free)
                why = loop.join_changes(left, right, keys, common, cursor, room, self.lead)
                if why != loop.CROWDED:
                    break
                self.blocks.grow()
            until = mark if why == loop.DONE else int(cursor[NOW]) - 1
            yield _filled(room, int(cursor[SIZE])), until
            size = self.room(rows)

    def _is_net(self) -> bool:
        """Whether the pairs that were told last need not be consolidated where they leave."""
        is_strict = self.blocks.notes[:, IS_STRICT].all()
        return bool(self.leave_in_order and is_strict and self.cursor[IS_NET])

    def _batch(self, pairs: Pairs, shown: tuple[WordsTold, ...]) -> Batch:
        keys, left, right = (words.vectors(pairs.words) for words in shown)
        ours = keys | left
        # Keys that have met are equal: those of the right side are those of the left.
        equal = {b: ours[a] for a, b in zip(self.left.keys, self.right.keys, strict=True)}
        theirs = equal | right
        columns = [ours[n] for n in self.kept[0]] + [theirs[n] for n in self.kept[1]]
        return Batch(self.type, pairs.time, tuple(columns), pairs.weight)

    def _release(self, left: SideChanges, right: SideChanges) -> None:
        used = np.concatenate([left.records[left.rows, 0], right.records[right.rows, 0]])
        self.left.release(left.rows)
        self.right.release(right.rows)
        release_keys(self.keys, used)


def _has_nulls(vector: Vector) -> bool:
    if vector.is_text and pa.types.is_dictionary(vector.values.type):
        return bool(vector.values.null_count or vector.values.dictionary.null_count)
    return vector.may_have_nulls


def _room(size: int, width: int) -> Pairs:
    """Room for so many pairs in one block of memory: large ones cost the system less."""
    if size > _PAGE:
        size += -size % _PAGE + _APART
    room = np.empty((width + 2, size), np.int64)
    return Pairs(room[0], room[1], room[2:])


def _filled(room: Pairs, size: int) -> Pairs:
    """What has been told; of a room that has more than that, it is copied out."""
    filled = Pairs(room.time[:size], room.weight[:size], room.words[:, :size])
    return filled if 8 * size > len(room.time) else Pairs(*(part.copy() for part in filled))
