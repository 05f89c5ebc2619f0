"""From cells of a version to groups: the members that are asked for, and what is kept of each."""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic

import numpy as np

from millstream.calculus.grains import Grain
from millstream.calculus.types import Kind
from millstream.errors import MillstreamError
from millstream.kernels.cube.cells import Measures
from millstream.kernels.cube.loops import Numbers
from millstream.kernels.cube.reading import Keys, find_keys, hash_keys, number_keys
from millstream.kernels.cube.stretches import Ranking, Stretch
from millstream.kernels.cube.tallies import Counted
from millstream.kernels.cube.telling import Naming, Side, gathered, named, sorted_words
from millstream.kernels.cube.versions import Members, Version
from millstream.kernels.runtime.hashing import frozen
from millstream.kernels.runtime.interning import IdTable
from millstream.olap.planning import Plan, Span, levels_of
from millstream.olap.question import Condition, Question
from millstream.plan.batch import Array, Vector, vector_of
from millstream.wildcards import like_pattern

#: Keys up to this are looked up in a table of their own; others are hashed.
_DENSE = 1 << 18
_MOST_KEYS = 1 << 62


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
class Place:
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
class Parts:
    """What partitions from the first on add to a key; with the shift it is the part of time."""

    first: int
    steps: Array
    shift: int

    @property
    def count(self) -> int:
        return int(self.steps.max(initial=0)) + 1


@dataclass(frozen=True)
class Piece:
    """Cells on their way into groups; without a product keys are parts of time alone."""

    layer: int
    stretch: Stretch
    places: list[Place]
    keys: Array
    product: int | None


@dataclass(frozen=True)
class Held:
    """What is kept of groups: numbers, and what was counted for each tally that is asked for."""

    numbers: Numbers
    counted: tuple[Counted, ...]


@dataclass(frozen=True)
class Told:
    """What is told of groups that are not looked into any more."""

    words: Array
    valid: Array


@dataclass(frozen=True)
class HeldRows:
    """The rows of groups, where there are no cells."""

    rows: list[list[int]]


#: What is known of groups.
Content = Held | HeldRows | Told


@dataclass(frozen=True)
class Groups:
    """Groups by codes, a column for each attribute and one for the part of time.

    `keys` are in the order of members, then of time, where they fit into words; they may be
    `in_order`.
    """

    codes: Array
    held: Content
    keys: Array | None = None
    is_in_order: bool = False

    def __len__(self) -> int:
        return len(self.codes)


class Grouping:
    """Mutable: answers a question from the cells of a version, and counts what it reads."""

    def __init__(self, version: Version, question: Question, plan: Plan, limits: Limits) -> None:
        self.version = version
        self.plan = plan
        self.limits = limits
        self.measures: Measures = version.reading()
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
        #: Whether nothing is made of groups but what is told of each.
        self.is_told_at_once = not (
            self.tallies or question.share or question.has_totals or question.has_others
            or question.earlier is not None or (question.columns and question.order)
        )  # fmt: skip

    def places(self, attributes: tuple[str, ...], vertex: tuple[str, ...]) -> list[Place]:
        """Where attributes are among the codes of a vertex."""
        cube = self.version.function
        made = []
        column = {d: n for n, d in enumerate(
            d for d, level in enumerate(levels_of(cube, vertex)) if level is not None)}  # fmt: skip
        levels = levels_of(cube, vertex)
        for name in attributes:
            d = next(n for n, names in enumerate(cube.dimensions) if name in names)
            level = levels[d]
            assert level is not None
            wanted = cube.dimensions[d].index(name)
            made.append(Place(self.version.members[d], level, wanted, column[d]))
        return made

    def groups(self, span: Span, *, shifted: int = 0) -> Groups:
        """The groups of some partitions; with a shift, as if they were so much later."""
        kept = self.plan.answering
        if kept.count(span.first, span.last) > self.limits.read:
            raise TooMuch(f"more than {self.limits.read:,} cells would be read",
                          hint="ask for a shorter time")  # fmt: skip
        parts = self._parts(span, shifted)
        places = self.places(self.by, kept.vertex.attributes)
        how, product = _keys(
            places, _sizes(places), parts.count, self._tests(kept.vertex.attributes)
        )
        if self.is_told_at_once and product is not None:
            told = self._told_at_once(self._stretches(span, 0), places, parts, how, product)
            if told is not None:
                return told
        pieces = []
        for layer in (0, *(number for number, _ in self.tallies)):
            for one in self._stretches(span, layer):
                keys = self._found_keys(one, parts, how)
                pieces.append(Piece(layer, one, places, keys, product))
        return self._merged(pieces, parts)

    def _stretches(self, span: Span, layer: int) -> tuple[Stretch, Stretch]:
        kept = self.plan.answering
        own = self.places(kept.vertex.attributes, kept.vertex.attributes)
        ranking = Ranking(tuple(p.ranks for p in own), tuple(_sizes(own)))
        return kept.layers[layer].between(
            span.first, span.last, ranking, is_together=self.plan.grain is None,
            has_active=self.plan.has_active,
        )  # fmt: skip

    def _found_keys(self, one: Stretch, parts: Parts, how: Keys) -> Array:
        self.limits.check_time()
        self.read += len(one)
        whole = self.plan.answering.vertex.attributes
        if one.keys is not None and self.by == whole and not self.conditions and parts.count == 1:
            return one.keys  # they are in the order of just these members
        keys = np.empty(len(one), np.int64)
        find_keys(one.cells.words, one.index, parts.steps, parts.first, how, keys)
        return keys

    def _told_at_once(
        self,
        both: tuple[Stretch, Stretch],
        places: list[Place],
        parts: Parts,
        how: Keys,
        product: int,
    ) -> Groups | None:
        """Groups in the order of their keys; None if their cells or keys are too long for that."""
        bits = sum(map(len, both)).bit_length()
        is_short = all(one.cells.is_short for one in both)
        if not is_short or (product - 1).bit_length() + bits > 62:
            return None
        cells = both[0].cells.beside(both[1].cells)
        one, other = (
            Side(of.given(),
                 sorted_words(self._found_keys(stretch, parts, how), bits, product))
            for of, stretch in zip(cells, both, strict=True)
        )  # fmt: skip
        groups = gathered(one, other, bits, self.limits.groups + 1)
        self._check_size(len(groups.starts) - 1)
        naming = Naming(
            [p.column for p in places], [frozen(p.numbers) for p in places],
            [stretch.index for stretch in both], parts.steps, parts.first, parts.shift,
            self.plan.grain is not None,
        )  # fmt: skip
        told = Told(*self.measures.told_in_order(groups))
        return Groups(named(groups, naming), told, is_in_order=True)

    def _check_size(self, size: int) -> None:
        if size > self.limits.groups:
            raise TooMuch(f"this has more than {self.limits.groups:,} groups",
                          hint="ask for coarser levels, or for some members")  # fmt: skip

    def _merged(self, pieces: list[Piece], parts: Parts) -> Groups:
        """Groups of all pieces, by their codes."""
        own_keys: Array | None = None
        if pieces[0].product is None:
            codes, ids = _hashed(pieces, parts)
        else:
            keys = np.concatenate([p.keys for p in pieces])
            firsts, ids = _numbered(keys, pieces[0].product)
            codes, own_keys = _codes(pieces, firsts, parts), keys.take(firsts)
        self._check_size(len(codes))
        numbers = self.measures.numbers(len(codes))
        counted: dict[int, list[Counted]] = {layer: [] for layer, _ in self.tallies}
        start = 0
        for piece in pieces:
            self.limits.check_time()
            own = ids[start : start + len(piece.keys)]
            start += len(own)
            cells = piece.stretch.cells
            if piece.layer:
                counted[piece.layer].append(Counted(own, cells.codes[:, -1], cells.rows))
            elif cells.is_short:
                self.measures.merge_given(cells.given(), own, numbers)
            else:
                chosen = np.flatnonzero(own >= 0)
                given = self.measures.unpacked(cells.take(chosen).packed()).numbers
                self.measures.merge(given, own[chosen], numbers)
        together = (Counted(*map(np.concatenate, zip(*c, strict=True))) for c in counted.values())
        return Groups(codes, Held(numbers, tuple(together)), own_keys)

    def _parts(self, span: Span, shifted: int) -> Parts:
        """For each partition of a span its part of time at the grain."""
        grain = self.plan.grain
        size = max(0, span.last - span.first + 1)
        if grain is None or not size:
            return Parts(span.first, np.zeros(max(1, size), np.int64), 0)
        indexes = np.arange(span.first, span.last + 1) + shifted
        parts = np.asarray(grain.index(self.version.function.grain.start(indexes)), np.int64)
        return Parts(span.first, np.ascontiguousarray(parts - parts[0]), int(parts[0]))

    def _tests(self, vertex: tuple[str, ...]) -> list[tuple[Place, Array]]:
        places = self.places(tuple(c.attribute for c in self.conditions), vertex)
        return [
            (place, np.ascontiguousarray(holding(condition, place.values)[place.numbers]))
            for place, condition in zip(places, self.conditions, strict=True)
        ]

    def put_together(self, held: Content, ids: Array, count: int) -> Content:
        """Groups into coarser ones; those of group -1 are passed over."""
        assert isinstance(held, Held), "what is told is not put together"
        numbers, chosen = self.measures.numbers(count), np.flatnonzero(ids >= 0)
        given = held.numbers
        if len(chosen) < len(ids):
            given = Numbers(*(array[chosen] for array in given))
        self.measures.merge(given, np.ascontiguousarray(ids[chosen]), numbers)
        # Group -1 finds the last place, where there is always a -1, also if there are no groups.
        after = np.append(ids, -1)
        counted = tuple(c._replace(ids=after[c.ids]) for c in held.counted)
        return Held(numbers, counted)

    def numbered(self, codes: Array) -> tuple[Array, int]:
        """Rows of codes as dense numbers, and how many differ."""
        if codes.shape[1] == 0:
            return np.zeros(len(codes), np.int64), min(1, len(codes))
        table = IdTable(codes.shape[1])
        ids = table.ids(np.ascontiguousarray(codes))
        return ids, table.bound

    def told(self, held: Content, order: Array | None = None) -> tuple[Vector, ...]:
        """All measures of groups, in some order; of groups without rows they are null."""
        if isinstance(held, Told):
            return self._vectors(held.words, held.valid, order)
        assert isinstance(held, Held)
        numbers = held.numbers
        words, valid = self.measures.told(numbers, np.arange(len(numbers.rows)))
        for (_, tally), counted in zip(self.tallies, held.counted, strict=True):
            tally.tell_counted(counted, words, valid)
        valid &= (numbers.rows > 0)[:, None]
        return self._vectors(words, valid, order)

    def _vectors(self, words: Array, valid: Array, order: Array | None) -> tuple[Vector, ...]:
        vectors = self.measures.vectors(words, valid)
        return vectors if order is None else tuple(v.take(order) for v in vectors)


def _keys(
    places: list[Place], sizes: list[int], count: int, tests: list[tuple[Place, Array]]
) -> tuple[Keys, int | None]:
    """How keys are made of codes, and how many there can be; None if that is too many.

    Time weighs least, and what comes first most, by the order of its members: so keys are in the
    usual order of answers. Where there are too many the key is the part of time alone.
    """
    product = count
    weights: list[int] = []
    for size in reversed(sizes):
        weights.insert(0, product)
        product *= size
    fits = product < _MOST_KEYS
    shown = places if fits else []
    steps = [p.ranks * w for p, w in zip(shown, weights, strict=False)]
    values = [t for _, t in tests]
    how = Keys(
        _columns(shown), _starts(steps), _flat(steps, np.int64),
        _columns([p for p, _ in tests]), _starts(values), _flat(values, np.bool_),
    )  # fmt: skip
    return how, product if fits else None


def _sizes(places: list[Place]) -> list[int]:
    return [max(1, len(p.values)) for p in places]


def _columns(places: list[Place]) -> Array:
    return frozen(np.array([p.column for p in places], np.int64))


def _starts(arrays: list[Array]) -> Array:
    lengths = [0, *(len(a) for a in arrays)]
    return frozen(np.cumsum(lengths, dtype=np.int64)[:-1].copy())


def _flat(arrays: list[Array], dtype: type) -> Array:
    return frozen(np.concatenate([np.zeros(0, dtype), *arrays]))


def _numbered(keys: Array, product: int) -> tuple[Array, Array]:
    """Where each distinct key comes first, and the number of each key; -1 stays -1."""
    ids, firsts = np.empty(len(keys), np.int64), np.empty(len(keys), np.int64)
    if product <= max(_DENSE, 4 * len(keys)):
        size = number_keys(keys, np.full(product, -1, np.int64), ids, firsts)
    else:
        slots = np.zeros(1 << max(6, (2 * len(keys) - 1).bit_length()), np.int64)
        size = hash_keys(keys, slots, ids, firsts)
    return firsts[:size], ids


def _codes(pieces: list[Piece], firsts: Array, parts: Parts) -> Array:
    """The codes of groups, from the cell that each was first seen in, and the part of time."""
    width = len(pieces[0].places)
    codes = np.empty((len(firsts), width + 1), np.int64)
    start = 0
    for piece in pieces:
        stop = start + len(piece.keys)
        # They come in order, so those of a piece lie together.
        a, b = np.searchsorted(firsts, [start, stop])
        own = firsts[a:b] - start
        cells = piece.stretch.cells.codes
        for column, place in enumerate(piece.places):
            codes[a:b, column] = place.numbers.take(cells[:, place.column].take(own))
        codes[a:b, width] = parts.steps[piece.stretch.index[own] - parts.first] + parts.shift
        start = stop
    return codes


def _hashed(pieces: list[Piece], parts: Parts) -> tuple[Array, Array]:
    """Where keys would be too large for a word: the codes of groups as they are."""
    words, chosen = [], []
    for piece in pieces:
        own = np.flatnonzero(piece.keys >= 0)
        cells = piece.stretch.cells.codes
        columns = [p.numbers.take(cells[:, p.column].take(own)) for p in piece.places]
        words.append(np.stack([*columns, piece.keys[own] + parts.shift], axis=1))
        chosen.append(own)
    together = np.ascontiguousarray(np.concatenate(words))
    table = IdTable(together.shape[1])
    numbers = table.ids(together)
    ids = np.full(sum(len(p.keys) for p in pieces), -1, np.int64)
    offsets = np.cumsum([0, *(len(p.keys) for p in pieces)])
    ids[np.concatenate([c + o for c, o in zip(chosen, offsets, strict=False)])] = numbers
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
