"""From cells of a version to groups: the members that are asked for, and what is kept of each."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from time import monotonic

import numpy as np

from millstream.calculus.grains import Grain
from millstream.calculus.types import Kind
from millstream.errors import MillstreamError
from millstream.kernels.cube.cells import Measures
from millstream.kernels.cube.loops import Numbers
from millstream.kernels.cube.reading import CellKeys, find_keys, move_bits
from millstream.kernels.cube.stretches import Ranking, Stretch, width_of
from millstream.kernels.cube.telling import LONGEST, Side, name_groups, numbered
from millstream.kernels.cube.versions import Members, Version
from millstream.kernels.relational.hidden_keys import CountedKeys
from millstream.kernels.runtime.hashing import frozen
from millstream.kernels.runtime.interning import IdTable
from millstream.olap.planning import Plan, Span, levels_of
from millstream.olap.question import Condition, Question
from millstream.plan.batch import Array, Vector, vector_of
from millstream.wildcards import like_pattern

#: So many groups are remembered of any vertex until there is another version.
_FEW = 1_000


class TooMuch(MillstreamError):
    """An answer, or what is needed for it, is larger than allowed."""


class TooLong(MillstreamError):
    """A question takes more time than allowed."""


@dataclass(frozen=True)
class Limits:
    """What a question may cost; the deadline is of the clock that never goes back."""

    groups: int = 1_000_000
    cells: int = 100_000
    read: int = 100_000_000
    seconds: float = 10.0
    deadline: float | None = None

    def begun(self) -> Limits:
        return Limits(self.groups, self.cells, self.read, self.seconds, monotonic() + self.seconds)

    def check_time(self) -> None:
        if self.deadline is not None and monotonic() > self.deadline:
            message = f"this takes longer than {self.seconds:g} seconds"
            raise TooLong(message, hint="ask for fewer members, or a shorter time")


@dataclass(frozen=True)
class PlacedAttribute:
    """An attribute in a vertex: its members, the level, and the column of codes."""

    members: Members
    level: int
    wanted: int
    column: int

    @property
    def numbers(self) -> Array:
        """What each member is at the level that is wanted."""
        return self.members.numbers(self.level, self.wanted)

    @property
    def ranks(self) -> Array:
        """Where each member comes in the order of the level that is wanted."""
        return self.members.places(self.level, self.wanted)

    @property
    def values(self) -> Vector:
        return self.members.values[self.wanted]


@dataclass(frozen=True)
class KeyParts:
    """What partitions from the first on add to a key; with the shift it is the part of time."""

    first: int
    steps: Array
    shift: int
    #: How many parts of time there are at most.
    count: int = 1


@dataclass(frozen=True)
class Packing:
    """How many bits of a key each attribute has, the first the highest, and the part of time.

    Attributes are in keys by the order of their members: so keys are in the usual order of answers.
    """

    widths: tuple[int, ...]
    time: int

    @property
    def width(self) -> int:
        return sum(self.widths) + self.time

    @property
    def shifts(self) -> list[int]:
        """Above which bits each attribute lies."""
        return [self.width - sum(self.widths[: n + 1]) for n in range(len(self.widths))]


@dataclass(frozen=True)
class Piece:
    """Cells on their way into groups."""

    layer: int
    stretch: Stretch
    keys: Array


@dataclass(frozen=True)
class KeptGroups:
    """What is kept of groups: numbers, and what was counted for each tally that is asked for."""

    numbers: Numbers
    counted: tuple[CountedKeys, ...]


@dataclass(frozen=True)
class ToldMeasures:
    """What is told of groups that are not looked into any more."""

    words: Array
    valid: Array


@dataclass(frozen=True)
class HeldRows:
    """The rows of groups, where there are no cells."""

    rows: list[list[int]]


#: What is known of groups.
Content = KeptGroups | HeldRows | ToldMeasures


@dataclass(frozen=True)
class Groups:
    """Groups by codes, a column for each attribute and one for the part of time.

    They may be in the order of members, then of time.
    """

    codes: Array
    held: Content
    is_in_order: bool = False
    _numbers: dict[int, Array] = field(default_factory=dict, compare=False)

    def numbers(self, column: int) -> Array:
        """The codes of an attribute as columns of texts have them; made once."""
        if column not in self._numbers:
            self._numbers[column] = self.codes[:, column].astype(np.int32)
        return self._numbers[column]

    def __len__(self) -> int:
        return len(self.codes)


class Grouping:
    """Mutable: answers a question from the cells of a version, and counts what it reads."""

    def __init__(self, version: Version, question: Question, plan: Plan, limits: Limits) -> None:
        self.version = version
        self.plan = plan
        self.limits = limits
        self.read = 0
        self.by = (*question.rows, *question.columns)
        self.conditions = question.where
        names = [m.name for m in version.function.measures]
        shown = {*question.measures, *(one.name for one in question.order)}
        #: The layers that are needed beside the first, and their tallies.
        self.tallies = [
            (layer, tally) for layer, tally in enumerate(version.tallies, 1)
            if any(names[place] in shown for place, _ in tally.wanted)
        ]  # fmt: skip
        #: Which measures are told of groups.
        self.wanted = tuple(n for n, name in enumerate(names) if name in shown | {*question.share})
        #: Whether nothing is made of groups but what is told of each.
        self.is_told_at_once = not (
            self.tallies or question.share or question.has_totals or question.has_others
            or question.earlier is not None or (question.columns and question.order)
        )  # fmt: skip

    @cached_property
    def measures(self) -> Measures:
        return self.version.reading()

    def places(self, attributes: tuple[str, ...], vertex: tuple[str, ...]) -> list[PlacedAttribute]:
        """Where attributes are among the codes of a vertex."""
        if not attributes:
            return []
        cube = self.version.function
        made = []
        levels = levels_of(cube, vertex)
        there = [d for d, level in enumerate(levels) if level is not None]
        column = {d: n for n, d in enumerate(there)}
        for name in attributes:
            d = next(n for n, names in enumerate(cube.dimensions) if name in names)
            level = levels[d]
            assert level is not None
            wanted = cube.dimensions[d].index(name)
            made.append(PlacedAttribute(self.version.members[d], level, wanted, column[d]))
        return made

    def groups(self, span: Span, *, shifted: int = 0) -> Groups:
        """The groups of some partitions; with a shift, as if they were so much later."""
        kept = self.plan.answering
        if kept.count(span.first, span.last) > self.limits.read:
            raise TooMuch(f"more than {self.limits.read:,} cells would be read",
                          hint="ask for a shorter time")  # fmt: skip
        if self.conditions or self.plan.grain is not None or not self.is_told_at_once:
            return self._made(span, shifted)
        # The whole of a vertex that is kept, or has few groups, is told once.
        version, what = self.version, (self.by, self.wanted, span, self.plan.has_active)
        known: tuple[Groups, int] | None = version.remembered.get(version, what)
        if known is None:
            before = self.read
            known = (groups := self._made(span, shifted)), self.read - before
            most = self.limits.cells if self.by == kept.vertex.attributes else _FEW
            if len(groups) <= most:
                version.remembered.put(version, what, known)
        else:
            self.read += known[1]
        return known[0]

    def _made(self, span: Span, shifted: int) -> Groups:
        """Groups of the cells of two stretches, and those of the tallies that go with them."""
        parts = self._parts(span, shifted)
        both = self._stretches(span, 0)
        self.read += sum(map(len, both))
        vertex = self.plan.answering.vertex.attributes
        places = self.places(self.by, vertex)
        stretches = [(0, one) for one in both]
        for layer, _ in self.tallies:
            counted = self._stretches(span, layer)
            self.read += sum(map(len, counted))
            stretches += [(layer, one) for one in counted]
        packing = _packing(places, parts.count, sum(len(one) for _, one in stretches))
        how = _keys(places, packing, self._tests(vertex))
        pieces = [
            Piece(n, one, self._found_keys(one, parts, places, packing, how))
            for n, one in stretches
        ]
        if packing is None:
            codes, ids = _hashed(pieces, places, parts)
            self._check_size(len(codes))
        else:
            keys, ids = numbered([p.keys for p in pieces], packing.width)
            self._check_size(len(keys))
            codes = _named(keys, places, packing, parts)
        held = self._held(pieces, ids, len(codes))
        return Groups(codes, held, is_in_order=packing is not None)

    def _stretches(self, span: Span, layer: int) -> tuple[Stretch, Stretch]:
        kept = self.plan.answering
        own = self.places(kept.vertex.attributes, kept.vertex.attributes)
        ranking = Ranking(tuple(p.ranks for p in own), tuple(width_of(len(p.values)) for p in own))
        return kept.layers[layer].between(
            span.first, span.last, ranking, is_together=self.plan.grain is None,
            has_active=self.plan.has_active,
        )  # fmt: skip

    def _found_keys(
        self,
        stretch: Stretch,
        parts: KeyParts,
        places: list[PlacedAttribute],
        packing: Packing | None,
        how: CellKeys,
    ) -> Array:
        self.limits.check_time()
        vertex = self.plan.answering.vertex.attributes
        is_moved = packing is not None and not self.conditions and parts.count == 1
        if stretch.keys is None or not is_moved or any(p.level != p.wanted for p in places):
            keys = np.empty(len(stretch), np.int64)
            find_keys(stretch.cells.words, stretch.index, parts.steps, parts.first, how, keys)
            return keys
        # Cells that are in order have the same members in keys of their own.
        assert packing is not None
        if self.by == vertex:
            return stretch.keys
        own = Packing(tuple(width_of(len(p.values)) for p in self.places(vertex, vertex)), 0)
        keys = np.zeros(len(stretch), np.int64)
        for place, width, to in zip(places, packing.widths, packing.shifts, strict=True):
            move_bits(stretch.keys, own.shifts[place.column], width, to, keys)
        return keys

    def _check_size(self, size: int) -> None:
        if size > self.limits.groups:
            raise TooMuch(f"this has more than {self.limits.groups:,} groups",
                          hint="ask for coarser levels, or for some members")  # fmt: skip

    def _held(self, pieces: list[Piece], ids: list[Array], size: int) -> Content:
        """What is known of groups, of the cells of all pieces."""
        if self.is_told_at_once and all(p.stretch.cells.is_short for p in pieces):
            sides = [Side(p.stretch.cells.given(), own) for p, own in zip(pieces, ids, strict=True)]
            return ToldMeasures(*self.measures.told_in_order(sides, size, self.wanted))
        numbers = self.measures.numbers(size)
        counted: dict[int, list[CountedKeys]] = {layer: [] for layer, _ in self.tallies}
        for piece, own in zip(pieces, ids, strict=True):
            self.limits.check_time()
            cells = piece.stretch.cells
            if piece.layer:
                counted[piece.layer].append(CountedKeys(own, cells.codes[:, -1], cells.rows))
            elif cells.is_short:
                self.measures.merge_given(cells.given(), own, numbers)
            else:
                chosen = np.flatnonzero(own >= 0)
                given = self.measures.unpacked(cells.take(chosen).packed()).numbers
                self.measures.merge(given, own[chosen], numbers)
        if self.is_told_at_once:
            return ToldMeasures(*self.measures.told(numbers, np.arange(size)))
        together = (
            CountedKeys(*map(np.concatenate, zip(*c, strict=True))) for c in counted.values()
        )
        return KeptGroups(numbers, tuple(together))

    def _parts(self, span: Span, shifted: int) -> KeyParts:
        """For each partition of a span its part of time at the grain."""
        grain = self.plan.grain
        size = max(0, span.last - span.first + 1)
        if grain is None or not size:
            return KeyParts(span.first, np.zeros(max(1, size), np.int64), 0)
        indexes = np.arange(span.first, span.last + 1) + shifted
        parts = np.asarray(grain.index(self.version.function.grain.start(indexes)), np.int64)
        steps = np.ascontiguousarray(parts - parts[0])
        return KeyParts(span.first, steps, int(parts[0]), int(steps.max()) + 1)

    def _tests(self, vertex: tuple[str, ...]) -> list[tuple[PlacedAttribute, Array]]:
        places = self.places(tuple(c.attribute for c in self.conditions), vertex)
        return [
            (place, np.ascontiguousarray(holding(condition, place.values)[place.numbers]))
            for place, condition in zip(places, self.conditions, strict=True)
        ]

    def put_together(self, held: Content, ids: Array, count: int) -> Content:
        """Groups into coarser ones; those of group -1 are passed over."""
        assert isinstance(held, KeptGroups), "what is told is not put together"
        numbers, chosen = self.measures.numbers(count), np.flatnonzero(ids >= 0)
        given = held.numbers
        if len(chosen) < len(ids):
            given = Numbers(*(array[chosen] for array in given))
        self.measures.merge(given, np.ascontiguousarray(ids[chosen]), numbers)
        # Group -1 finds the last place, where there is always a -1, also if there are no groups.
        after = np.append(ids, -1)
        counted = tuple(c._replace(ids=after[c.ids]) for c in held.counted)
        return KeptGroups(numbers, counted)

    def numbered(self, codes: Array) -> tuple[Array, int]:
        """Rows of codes as dense numbers, and how many differ."""
        if codes.shape[1] == 0:
            return np.zeros(len(codes), np.int64), min(1, len(codes))
        table = IdTable(codes.shape[1])
        ids = table.ids(np.ascontiguousarray(codes))
        return ids, table.bound

    def told(self, held: Content, order: Array | None = None) -> tuple[Vector, ...]:
        """All measures of groups, in some order; of groups without rows they are null."""
        if isinstance(held, ToldMeasures):
            return self._vectors(held.words, held.valid, order)
        assert isinstance(held, KeptGroups)
        numbers = held.numbers
        words, valid = self.measures.told(numbers, np.arange(len(numbers.rows)))
        for (_, tally), counted in zip(self.tallies, held.counted, strict=True):
            tally.tell(counted, words, valid)
        valid &= (numbers.rows > 0)[:, None]
        return self._vectors(words, valid, order)

    def _vectors(self, words: Array, valid: Array, order: Array | None) -> tuple[Vector, ...]:
        vectors = self.measures.vectors(words, valid)
        return vectors if order is None else tuple(v.take(order) for v in vectors)


def _packing(places: list[PlacedAttribute], count: int, cells: int) -> Packing | None:
    """How keys are made; None if with the places of so many cells they are too long for a word."""
    packing = Packing(tuple(width_of(len(p.values)) for p in places), width_of(count))
    return packing if packing.width + cells.bit_length() <= LONGEST else None


def _keys(
    places: list[PlacedAttribute],
    packing: Packing | None,
    tests: list[tuple[PlacedAttribute, Array]],
) -> CellKeys:
    """How keys are made of codes. Without a packing the key is the part of time alone."""
    shown, shifts = ([], []) if packing is None else (places, packing.shifts)
    steps = [p.ranks << shift for p, shift in zip(shown, shifts, strict=True)]
    values = [t for _, t in tests]
    return CellKeys(
        _columns(shown), _starts(steps), _flat(steps, np.int64),
        _columns([p for p, _ in tests]), _starts(values), _flat(values, np.bool_),
    )  # fmt: skip


def _columns(places: list[PlacedAttribute]) -> Array:
    return frozen(np.array([p.column for p in places], np.int64))


def _starts(arrays: list[Array]) -> Array:
    starts = accumulate((len(a) for a in arrays), initial=0)
    return frozen(np.array(list(starts)[:-1], np.int64))


def _flat(arrays: list[Array], dtype: type) -> Array:
    return frozen(np.concatenate(arrays) if arrays else np.zeros(0, dtype))


def _named(keys: Array, places: list[PlacedAttribute], packing: Packing, parts: KeyParts) -> Array:
    """The codes of groups, from their keys: a column for each attribute, one for the part of time.

    Each column lies together.
    """
    codes = np.empty((len(places) + 1, len(keys)), np.int64)
    pairs = zip(places, packing.shifts, packing.widths, strict=True)
    for column, (place, shift, width) in enumerate(pairs):
        name_groups(keys, shift, width, place.members.order(place.wanted), codes[column])
    codes[-1] = parts.shift
    if packing.time:
        codes[-1] += keys & ((1 << packing.time) - 1)
    return codes.T


def _hashed(
    pieces: list[Piece], places: list[PlacedAttribute], parts: KeyParts
) -> tuple[Array, list[Array]]:
    """Where keys would be too large for a word: the codes of groups as they are."""
    words, chosen = [], []
    for piece in pieces:
        own = np.flatnonzero(piece.keys >= 0)
        cells = piece.stretch.cells.codes
        columns = [p.numbers.take(cells[:, p.column].take(own)) for p in places]
        words.append(np.stack([*columns, piece.keys[own] + parts.shift], axis=1))
        chosen.append(own)
    together = np.ascontiguousarray(np.concatenate(words))
    table = IdTable(together.shape[1])
    numbers = np.split(table.ids(together), np.cumsum([len(c) for c in chosen])[:-1])
    ids = [np.full(len(p.keys), -1, np.int64) for p in pieces]
    for own, there, some in zip(ids, chosen, numbers, strict=True):
        own[there] = some
    return table.records[: table.bound, : together.shape[1]].copy(), ids


def holding(condition: Condition, values: Vector) -> Array:
    """For which values a condition holds; null is a member like any other."""
    if condition.values is not None:
        chosen = _among(values, condition.values)
        return ~chosen if condition.is_not else chosen
    if condition.like is not None:
        pattern = like_pattern(condition.like)
        texts = values.to_list()
        return np.array([isinstance(t, str) and pattern.matches(t) for t in texts], np.bool_)
    chosen = values.mask().copy()
    for end, is_low in ((condition.low, True), (condition.high, False)):
        if end is not None:
            chosen &= _beyond(values, end, is_low=is_low)
    return chosen


def _among(values: Vector, wanted: tuple[object, ...]) -> Array:
    import pyarrow.compute as pc

    given = vector_of(values.type, list(wanted)).to_arrow()  # type: ignore[arg-type]
    chosen = pc.is_in(values.to_arrow(), value_set=given)
    return np.array(chosen.to_numpy(zero_copy_only=False), np.bool_)


def _beyond(values: Vector, end: object, *, is_low: bool) -> Array:
    if values.type.kind is Kind.TEXT:
        texts = values.to_list()
        compare = [isinstance(t, str) and (t >= end if is_low else t <= end) for t in texts]  # type: ignore[operator]
        return np.array(compare, np.bool_)
    numbers = np.asarray(values.values)
    return np.asarray(numbers >= end if is_low else numbers <= end, np.bool_)


def parts_as_times(parts: Array, grain: Grain) -> Array:
    """When parts of time begin."""
    return np.asarray(grain.start(parts), np.int64)
