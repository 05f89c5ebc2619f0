"""Which vertex answers a question: of those that are kept and fine enough, the smallest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from millstream.calculus.cube import Cubify, Vertex
from millstream.calculus.grains import Grain
from millstream.calculus.lattice import Lattice, Levels, is_as_fine
from millstream.kernels.cube.versions import KeptCells, Version
from millstream.olap.question import Question, QuestionError


@dataclass(frozen=True)
class Span:
    """The partitions from the first to the last; they are empty if it lies before the first."""

    first: int
    last: int

    def earlier(self, count: int) -> Span:
        return Span(self.first - count, self.last - count)


@dataclass(frozen=True)
class Plan:
    """What a question asks for, who answers it, and from which partitions."""

    asked: Levels
    grain: Grain | None
    answering: KeptCells
    span: Span
    #: Whether rows that are on their way into the active partition count.
    has_active: bool
    as_of: int | None
    before: Span | None = None


def lattice_of(cube: Cubify) -> Lattice:
    return Lattice(tuple(len(levels) for levels in cube.dimensions))


def levels_of(cube: Cubify, attributes: Iterable[str]) -> Levels:
    """The finest level of each dimension that some attributes need."""
    return _levels(cube.dimensions, tuple(attributes))


@lru_cache(1 << 12)
def _levels(dimensions: tuple[tuple[str, ...], ...], attributes: tuple[str, ...]) -> Levels:
    chosen = set(attributes)
    return tuple(
        next((n for n, a in enumerate(levels) if a in chosen), None) for levels in dimensions
    )


@lru_cache(1 << 12)
def _number(heights: tuple[int, ...], levels: Levels) -> int:
    return Lattice(heights).number(levels)


def keyed(cube: Cubify, attributes: Iterable[str]) -> tuple[str, ...]:
    """Attributes that cells have: of those that move, the keys."""
    keys = {f.name: one.key for one in cube.moving for f in one.levels}
    return tuple(keys.get(name, name) for name in attributes)


def attributes_of(cube: Cubify, levels: Levels) -> tuple[str, ...]:
    pairs = zip(cube.dimensions, levels, strict=True)
    return tuple(d[level] for d, level in pairs if level is not None)


def nearest(version: Version, asked: Levels, span: Span) -> KeptCells:
    """Of the vertices that are kept and answer, the one with fewest cells, then lowest number."""
    able = [kept for kept in version.kept if is_as_fine(kept.levels, asked)]
    return min(able, key=lambda kept: (kept.count(span.first, span.last), kept.number))


def plan(version: Version, question: Question) -> Plan:
    """How a question is answered from a version."""
    cube = version.function
    asked = levels_of(cube, question.attributes)
    now = version.partition
    if now is None:
        nothing = Span(0, -1)
        return Plan(asked, question.grain, version.kept[0], nothing, False, None)
    as_of = question.as_of
    step = now if as_of is None else _step(version, as_of, now)
    last = step if as_of is None else step - 1
    span = _chosen(question, Span(step - cube.window, last))
    before = None
    if question.earlier is not None:
        before = span.earlier(question.earlier)
        oldest = now - cube.window - cube.history
        if before.first < oldest <= before.last or before.last < oldest:
            raise QuestionError(
                f"the earlier period begins {oldest - before.first:,} partitions before what is "
                "kept",
                place="compare.earlier",
                hint=f"ask for less with time, or keep more with History = N ({cube.grain})",
            )
    known_until = version.mark if as_of is None else int(cube.grain.start(step))
    answering = nearest(version, levels_of(cube, keyed(cube, question.attributes)), span)
    return Plan(asked, question.grain, answering, span, as_of is None, known_until, before)


def _step(version: Version, as_of: int, now: int) -> int:
    """The partition that has just begun at a past instant."""
    cube = version.function
    step = int(cube.grain.index(as_of))
    if step > now:
        raise QuestionError("this lies in the future", place="as_of",
                            hint="leave as_of out for the newest")  # fmt: skip
    if step < now - cube.history:
        kept = f"History = {cube.history}" if cube.history else "there is no History"
        raise QuestionError(
            f"this lies {now - step:,} steps back", place="as_of",
            hint=f"{kept} in the configuration of this cube; add more",
        )  # fmt: skip
    return step


def _chosen(question: Question, window: Span) -> Span:
    """The part of the window that is asked for."""
    first, last = window.first, window.last
    if question.last is not None:
        first = max(first, last - question.last + 1)
    if question.first is not None:
        if question.first < window.first:
            raise QuestionError("this lies before the window", place="time.from",
                                hint="ask for as_of within History, or for less")  # fmt: skip
        first = question.first
    if question.end is not None:
        last = min(last, question.end - 1)
    return Span(first, last)


def steps_up(cube: Cubify, levels: Levels) -> Iterator[Levels]:
    """The vertices that are one step coarser: a level up, or the dimension gone."""
    for d, level in enumerate(levels):
        if level is not None:
            coarser = level + 1 if level + 1 < len(cube.dimensions[d]) else None
            yield (*levels[:d], coarser, *levels[d + 1 :])


def steps_down(cube: Cubify, levels: Levels) -> Iterator[Levels]:
    """The vertices that are one step finer."""
    for d, level in enumerate(levels):
        finer = len(cube.dimensions[d]) - 1 if level is None else level - 1
        if finer >= 0:
            yield (*levels[:d], finer, *levels[d + 1 :])


def vertex_record(cube: Cubify, levels: Levels, grain: Grain | None) -> dict[str, object]:
    """A vertex for people and programs."""
    return {
        "number": _number(tuple(map(len, cube.dimensions)), levels),
        "attributes": list(attributes_of(cube, levels)),
        "grain": None if grain is None else str(grain),
    }


def kept_vertex(kept: KeptCells, cube: Cubify) -> dict[str, object]:
    return vertex_record(cube, levels_of(cube, kept.vertex.attributes), kept.vertex.grain)


def is_kept(version: Version, levels: Levels) -> bool:
    attributes = attributes_of(version.function, levels)
    return any(k.vertex == Vertex(attributes, k.vertex.grain) for k in version.kept)
