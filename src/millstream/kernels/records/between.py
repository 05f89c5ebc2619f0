"""From columns to values of Python, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from millstream.kernels.records.column import Column, NotOnColumns, Objects, Pieces, TupleColumn
from millstream.kernels.records.sawing import PiecesAt
from millstream.kernels.records.slices import Slices
from millstream.plan.batch import Array
from millstream.values.records.types import (
    BOOL,
    BYTES,
    FINGERPRINT,
    FLOAT,
    INT,
    STRING,
    TIME,
    UINT,
    ArrayOf,
    RecordType,
    TupleOf,
    resolved,
)

#: Types whose values are numbers of one width.
DTYPES: dict[RecordType, Any] = {
    INT: np.int64, TIME: np.int64, FLOAT: np.float64, BOOL: np.bool_, UINT: np.uint64,
    FINGERPRINT: np.uint64,
}  # fmt: skip
TEXTS = (STRING, BYTES)
_TEXT_ARRAYS = (ArrayOf(STRING), ArrayOf(BYTES))


def has_columns(type_: RecordType) -> bool:
    """Whether values of a type are columns that can be worked on."""
    kind = resolved(type_)
    if isinstance(kind, TupleOf):
        return not kind.is_proto and all(has_columns(f.type) for f in kind.fields)
    return kind in DTYPES or kind in TEXTS or kind in _TEXT_ARRAYS


def taken(column: Column, rows: Array) -> Column:
    """Some rows of a column."""
    bad = None if column.bad is None else column.bad[rows]
    match column.plain().values:
        case Slices() as texts:
            return Column(texts.take(rows), bad)
        case Pieces(most, PiecesAt() as cut):
            chosen = cut.take(rows)
            return Column(Pieces(most, chosen, chosen.counts), bad)
        case Pieces(most, cut, count):
            return Column(Pieces(most, lambda n: cut(n).take(rows), count[rows]), bad)
        case TupleColumn(columns):
            return Column(TupleColumn(tuple(taken(c, rows) for c in columns)), bad)
        case Objects(values):
            return Column(Objects(values[rows]), bad)
        case values:
            assert isinstance(values, np.ndarray)
            return Column(values[rows], bad)


def mixed(chosen: Array, new: Column, old: Column) -> Column:
    """New values in some rows, and the old ones in all others."""
    bad: Array | None = None
    if new.bad is not None or old.bad is not None:
        none = np.zeros(len(chosen), np.bool_)
        bad = np.where(chosen, none if new.bad is None else new.bad,
                       none if old.bad is None else old.bad)  # fmt: skip
    match new.plain().values, old.plain().values:
        case np.ndarray() as a, np.ndarray() as b:
            return Column(np.where(chosen, a, b), bad)
        case Slices() as a, Slices() as b:
            return Column(_both(chosen, a, b), bad)
        case TupleColumn(a), TupleColumn(b):
            pairs = zip(a, b, strict=True)
            return Column(TupleColumn(tuple(mixed(chosen, x, y) for x, y in pairs)), bad)
        case Objects(a), Objects(b):
            return Column(Objects(np.where(chosen, a, b)), bad)
    raise NotOnColumns("an array that is assigned in some records only")


def _both(chosen: Array, a: Slices, b: Slices) -> Slices:
    """Slices of two arrays of bytes, as slices of both of them together."""
    shift = 0 if a.data is b.data else len(a.data)
    data = a.data if a.data is b.data else np.concatenate([a.data, b.data])
    return Slices(
        data, np.where(chosen, a.starts, b.starts + shift), np.where(chosen, a.ends, b.ends + shift)
    )


class BatchValues:
    """Mutable: columns of one batch as lists; bytes are decoded once."""

    def __init__(self) -> None:
        self._decoded: dict[tuple[int, bool], tuple[Array, str | bytes]] = {}

    def of(self, column: Column, type_: RecordType, rows: Array) -> list[Any]:
        """The values of some rows."""
        kind = resolved(type_)
        match column.plain().values:
            case Slices() as texts:
                return self._texts(texts, rows, is_bytes=kind == BYTES)
            case Pieces() as pieces:
                return self._arrays(pieces, rows, is_bytes=kind == ArrayOf(BYTES))
            case TupleColumn(columns):
                assert isinstance(kind, TupleOf)
                pairs = zip(columns, kind.fields, strict=True)
                if not columns:
                    return [()] * len(rows)
                return list(zip(*(self.of(c, f.type, rows) for c, f in pairs), strict=True))
            case Objects(values):
                return list(values[rows])
            case values:
                assert isinstance(values, np.ndarray)
                plain: list[Any] = values[rows].tolist()
                return plain

    def _texts(self, texts: Slices, rows: Array, *, is_bytes: bool) -> list[Any]:
        whole = self._whole(texts.data, is_bytes=is_bytes)
        pairs = zip(texts.starts[rows].tolist(), texts.ends[rows].tolist(), strict=True)
        return [whole[start:end] for start, end in pairs]

    def _whole(self, data: Array, *, is_bytes: bool) -> str | bytes:
        known = self._decoded.get((id(data), is_bytes))
        if known is None or known[0] is not data:
            raw = data.tobytes()
            # One character for every byte, so that places stay what they are.
            known = (data, raw if is_bytes else raw.decode("latin-1"))
            self._decoded[id(data), is_bytes] = known
        return known[1]

    def _cut(self, cut: PiecesAt, rows: Array, *, is_bytes: bool) -> list[tuple[Any, ...]]:
        """All texts of all rows at once."""
        cut, counts = cut.settled(), cut.counts[rows]
        spans = cut.spans[_numbers_from(cut.begun[rows], counts)]
        whole = self._whole(cut.data, is_bytes=is_bytes)
        pairs = zip(spans[:, 0].tolist(), spans[:, 1].tolist(), strict=True)
        texts = [whole[start:end] for start, end in pairs]
        ends = np.cumsum(counts).tolist()
        return [tuple(texts[a:b]) for a, b in zip([0, *ends], ends, strict=False)]

    def _arrays(self, pieces: Pieces, rows: Array, *, is_bytes: bool) -> list[tuple[Any, ...]]:
        if isinstance(pieces.cut, PiecesAt):
            return self._cut(pieces.cut, rows, is_bytes=is_bytes)
        counts = pieces.count[rows]
        lists: list[list[Any]] = [[] for _ in range(len(rows))]
        for number in range(int(counts.max()) if len(counts) else 0):
            which = np.flatnonzero(counts > number)
            texts = self._texts(pieces.cut(number), rows[which], is_bytes=is_bytes)
            for place, text in zip(which.tolist(), texts, strict=True):
                lists[place].append(text)
        return list(map(tuple, lists))


def _numbers_from(starts: Array, counts: Array) -> Array:
    """So many numbers from each start on."""
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    numbers: Array = np.arange(total) + np.repeat(starts - ends + counts, counts)
    return numbers


def column_of(
    values: Sequence[Any], type_: RecordType, where: Array, count: int
) -> tuple[Column, Array | None]:
    """A column of so many rows, each with the value `where` says; -1 is none.

    Then the rows whose values are not plain.
    """
    kind = resolved(type_)
    if kind in DTYPES:
        given = np.array([*values, 0], DTYPES[kind])
        return Column(given[where]), None
    if kind in TEXTS:
        texts, odd = _slices(values, is_bytes=kind == BYTES)
        starts, ends = (np.append(a, 0)[where] for a in (texts.starts, texts.ends))
        return Column(Slices(texts.data, starts, ends)), _at(odd, where)
    if kind in _TEXT_ARRAYS:
        return _arrays(values, where, is_bytes=kind == ArrayOf(BYTES))
    if isinstance(kind, TupleOf) and has_columns(kind):
        fields = [
            column_of([v[n] for v in values], f.type, where, count)
            for n, f in enumerate(kind.fields)
        ]
        odds = [odd for _, odd in fields if odd is not None]
        return (
            Column(TupleColumn(tuple(column for column, _ in fields))),
            np.logical_or.reduce(odds) if odds else None,
        )
    objects = np.fromiter([*values, None], object, len(values) + 1)
    return Column(Objects(objects[where])), None


def _at(odd: Array | None, where: Array) -> Array | None:
    return None if odd is None else np.append(odd, False)[where]


def _slices(values: Sequence[Any], *, is_bytes: bool) -> tuple[Slices, Array | None]:
    """Texts end to end, and which of them are not plain; these are left out."""
    raw, odd = _raw(values, is_bytes=is_bytes), None
    if raw is None:
        flags = [_raw((v,), is_bytes=is_bytes) is None for v in values]
        nothing = b"" if is_bytes else ""
        values = [nothing if flag else v for v, flag in zip(values, flags, strict=True)]
        raw, odd = _raw(values, is_bytes=is_bytes), np.array(flags)
    assert raw is not None
    ends = np.cumsum(np.fromiter(map(len, values), np.int64, len(values)))
    starts = np.append(0, ends[:-1]) if len(ends) else ends
    return Slices(np.frombuffer(raw or b"\0", np.uint8), starts, ends), odd


def _raw(values: Sequence[Any], *, is_bytes: bool) -> bytes | None:
    """All texts together, if columns can hold them."""
    joined: Any = (b"" if is_bytes else "").join(values)
    if not joined.isascii():
        return None
    raw: bytes = joined if is_bytes else joined.encode()
    return None if b"\0" in raw else raw


def _arrays(values: Sequence[Any], where: Array, *, is_bytes: bool) -> tuple[Column, Array | None]:
    counts = np.fromiter(map(len, values), np.int64, len(values))
    texts, odd = _slices([text for array in values for text in array], is_bytes=is_bytes)
    begun = np.append(np.cumsum(counts) - counts, 0)
    counts_at = np.append(counts, 0)[where]
    spans = np.stack([texts.starts, texts.ends], axis=1)
    whose = None
    if odd is not None:
        arrays = np.zeros(len(values) + 1, np.bool_)
        arrays[np.repeat(np.arange(len(values)), counts)[odd]] = True
        whose = arrays[where]
    piece = PiecesAt(texts.data, spans, begun[where], counts_at)
    return Column(Pieces(int(counts.max()) if len(counts) else 0, piece, counts_at)), whose
