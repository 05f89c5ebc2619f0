"""A cube over some stream: what a configuration says, made a function of the calculus."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from millstream.calculus.aggregation import AGGREGATIONS, SKETCHES, Aggregation
from millstream.calculus.base import FunctionFault
from millstream.calculus.cube import TIME_OF_CELL, Cubify, Vertex
from millstream.calculus.functions import Istream, Rows
from millstream.calculus.grains import GRAINS, Grain
from millstream.calculus.graph import Operator, Program
from millstream.calculus.lattice import Lattice, Levels
from millstream.calculus.library.columns import unlike
from millstream.calculus.library.cube_changing import (
    COMBINED,
    Changing,
    Cube,
    by_keys,
    facts_with_numbers,
    facts_with_versions,
    moved,
    with_versions_at_hand,
)
from millstream.calculus.library.cube_choice import (
    BUDGETS,
    MOST_VERTICES,
    Choosing,
    choose,
    sizes_of_levels,
)
from millstream.calculus.library.cube_file import (
    Configuration,
    Word,
    WrittenChanging,
    WrittenMeasure,
    WrittenVertex,
    grain_of,
    read_configuration,
)
from millstream.calculus.sketches import WHOLE
from millstream.calculus.terms import Column
from millstream.calculus.types import INTEGER, NUMBER, TEXT, Field, Kind, Schema
from millstream.calculus.wiring import Queue, Wiring
from millstream.errors import Fault, listing, suggest
from millstream.source import Source, Span

#: All that can be measured.
MEASURES = (*AGGREGATIONS, *SKETCHES, "median")
#: What is measured of every number that is in no dimension, unless the file says otherwise.
_USUAL = ("sum", "count", "min", "max")
_NUMBERS = (Kind.NUMBER, Kind.INTEGER)
#: Times are microseconds in a word, and some are added to others.
_LONGEST = 1 << 60


def cube_of(source: Source, schema: Schema, faults: list[Fault]) -> Cubify | None:
    """The cube that a configuration makes of a stream, or None and more faults."""
    made = written_cube(source, schema, {}, faults)
    return None if made is None else made.function


def written_cube(
    source: Source, schema: Schema, sources: Mapping[str, Schema], faults: list[Fault]
) -> Cube | None:
    """A cube, and the dimensions of it that change, by versions that come from sources."""
    own: list[Fault] = []
    making = _Making(read_configuration(source, own), schema, sources)
    making.versions()
    made = making.cube()
    if made is not None:
        making.check_moving(made)
    faults += sorted(own, key=lambda fault: fault.span.start if fault.span else 0)
    if own or made is None:
        return None
    levels = [name for one in making.changing for name in one.levels]
    types = tuple(f for f in making.schema if f.name in levels)
    return Cube(made, tuple(making.changing), types, tuple(making.numbers.items()))


def sources_of(source: Source) -> tuple[str, ...]:
    """The names of what a configuration takes versions of members from."""
    read = read_configuration(source, [])
    return tuple(dict.fromkeys(one.source.text for one in read.changing))


def outputs_of(cube: Cubify, name: str) -> list[str]:
    """What the outputs of a cube are called: its name, with attributes where there are several."""
    if len(cube.outputs) == 1:
        return [name]
    coarser = [v for v in cube.outputs if v.grain != cube.grain]
    return [
        "_".join([name, *(v.attributes or ("all",)), *([_word(v.grain)] if v in coarser else ())])
        for v in cube.outputs
    ]


def _word(grain: Grain) -> str:
    return str(grain).replace(" ", "")


def add_cube(
    wiring: Wiring, given: Queue, cube: Cube, name: str, origin: Span | None,
    versions: Mapping[str, Queue] | None = None,
) -> dict[str, Queue]:  # fmt: skip
    """The outputs of a cube over a stream, by name."""
    names = outputs_of(cube.function, name)
    sources = versions or {}
    facts = facts_with_numbers(wiring, given, cube, origin)
    facts = facts_with_versions(wiring, facts, sources, cube, origin)
    facts = with_versions_at_hand(wiring, facts, sources, cube, origin)
    named = replace(by_keys(cube), called=name)
    made = wiring.add_several(named, facts, [f"{n}_cells" for n in names], origin)
    outputs = zip(names, made, cube.function.outputs, strict=True)
    return {n: moved(wiring, q, v, sources, cube, n, origin) for n, q, v in outputs}


def cube_warnings(program: Program) -> tuple[Fault, ...]:
    """What is odd about the streams that cubes are made of."""
    producers = program.producers()
    warnings: list[Fault] = []
    for op in program.operators:
        if isinstance(op.function, Cubify):
            behind = list(_behind(op, producers))
            coming = [o for o in behind if isinstance(o.function, Istream)]
            rows = {o.id for c in coming for o in _behind(c, producers) if _counts_rows(o)}
            if rows:
                message = "this cube misses rows that are equal to one that leaves as they come"
                hint = (
                    "Istream of [Rows n] tells the difference of an instant, in which equal rows "
                    "that leave and come cancel out; leave the window out, or make rows differ"
                )
                warnings.append(Fault(message, op.origin, hint))
    return tuple(warnings)


def _behind(op: Operator, producers: Mapping[str, Operator]) -> Iterator[Operator]:
    """The operators that one hears from."""
    for queue in op.inputs:
        if queue in producers:
            yield producers[queue]
            yield from _behind(producers[queue], producers)


def _counts_rows(op: Operator) -> bool:
    return isinstance(op.function, Rows) and not op.function.by


def _vertex(levels: Levels, dimensions: tuple[tuple[str, ...], ...], grain: Grain) -> Vertex:
    pairs = zip(dimensions, levels, strict=True)
    return Vertex(tuple(d[level] for d, level in pairs if level is not None), grain)


@dataclass
class _Making:
    """Mutable: a configuration that is held against the columns of a stream."""

    file: Configuration
    schema: Schema
    sources: Mapping[str, Schema] = field(default_factory=dict)
    changing: list[Changing] = field(default_factory=list)
    #: The dimension of each attribute, and its level.
    levels: dict[str, tuple[int, int]] = field(default_factory=dict)
    #: Columns of numbers that are made of integers, since some measures are of numbers alone.
    numbers: dict[str, str] = field(default_factory=dict)

    def cube(self) -> Cubify | None:
        self.attributes()
        grain = self.file.grain or Grain(1)
        outputs = self.vertices(self.file.outputs, grain)
        chosen = self.vertices(self.file.kept, grain)
        measures = self.measures()
        if self.file.faults or self.file.grain is None or self.file.window is None:
            return None
        self.check_lengths(grain, self.file.window)
        dimensions = tuple(tuple(w.text for w in levels) for levels in self.file.dimensions)
        finest = Vertex(tuple(levels[0] for levels in dimensions), grain)
        if self.file.choosing.mode != "Custom":
            chosen = self.chosen(dimensions, grain)
        kept = tuple(dict.fromkeys((finest, *chosen)))
        if self.file.faults:
            return None
        return Cubify(
            dimensions, measures, grain, self.file.window, kept, outputs, self.file.is_live,
            self.file.history, self.memory(),
        )  # fmt: skip

    def memory(self) -> int:
        """What a server may go on choosing with: not where others have chosen by a rule."""
        choosing = self.file.choosing
        is_measured = choosing.mode == "Optimized" and choosing.method == "Measured"
        return choosing.memory or 0 if is_measured or choosing.mode == "Custom" else 0

    def fail(self, message: str, span: Span | None, hint: str | None = None) -> None:
        self.file.fail(message, span, hint)

    def unknown(self, what: str, word: Word, known: list[str]) -> None:
        hint = f"there are: {listing(known)}. {suggest(word.text, known) or ''}".strip()
        self.fail(f'unknown {what} "{word.text}"', word.span, hint)

    def attributes(self) -> None:
        places: dict[str, Word] = {}
        for dimension, words in enumerate(self.file.dimensions):
            for level, word in enumerate(words):
                if word.text in places:
                    message = f'"{word.text}" is in two dimensions'
                    is_same = self.levels[word.text][0] == dimension
                    message = f'"{word.text}" is twice in a dimension' if is_same else message
                    self.fail(message, word.span, f"first at {places[word.text].span.place}")
                    continue
                if word.text not in self.schema:
                    self.unknown("attribute", word, list(self.schema.names))
                elif word.text == TIME_OF_CELL:
                    hint = "every cell has a column of that name; give the attribute another one"
                    self.fail(f'"{TIME_OF_CELL}" cannot be an attribute', word.span, hint)
                places[word.text] = word
                self.levels[word.text] = (dimension, level)

    # --- dimensions that change ---

    def versions(self) -> None:
        """Levels that come from elsewhere are columns of the facts from now on."""
        for written in self.file.changing:
            source = self.sources.get(written.source.text)
            if source is None:
                self.unknown("source of versions", written.source, list(self.sources))
                continue
            of_key = [d for d in self.file.dimensions if d and d[0].text == written.key.text]
            if not of_key:
                finest = [d[0].text for d in self.file.dimensions if d]
                self.unknown("finest level", written.key, finest)
            elif written.key.text not in source or written.key.text not in self.schema:
                names = source.names if written.key.text in self.schema else self.schema.names
                self.unknown("key", written.key, list(names))
            else:
                self.add_levels(written, of_key[0], source)

    def add_levels(
        self, written: WrittenChanging, dimension: tuple[Word, ...], source: Schema
    ) -> None:
        levels = tuple(w.text for w in dimension[1:] if w.text not in self.schema)
        for word in dimension[1:]:
            if word.text in self.schema and word.text in source:
                hint = f'"{written.source.text}" has it too; take it out of the stream'
                self.fail(f'the facts have a "{word.text}" of their own', word.span, hint)
            elif word.text not in self.schema and word.text not in source:
                self.unknown("attribute", word, [*self.schema.names, *source.names])
        there = [n for n in levels if n in source]
        self.schema = Schema((*self.schema.fields, *(Field(n, source[n]) for n in there)))
        changing = Changing(
            written.source.text, written.key.text, levels, written.keeps_versions, written.span
        )
        self.changing.append(changing)

    def check_moving(self, made: Cubify) -> None:
        """Cells move to other members only if their measures can be put together."""
        places = {m.name: w for m, w in zip(made.measures, self.file.measures or (), strict=False)}
        moving = [c for c in self.changing if not c.keeps_versions]
        for measure in made.measures:
            if moving and measure.function not in COMBINED:
                place = places[measure.name].span if measure.name in places else moving[0].span
                hint = f"with type 1 measures are: {listing(COMBINED)}; with type 2 they are all"
                self.fail(f"{measure.function} cannot move to other members", place, hint)

    # --- vertices ---

    def vertices(self, written: tuple[WrittenVertex, ...], grain: Grain) -> tuple[Vertex, ...]:
        made: dict[Vertex, WrittenVertex] = {}
        for one in written:
            vertex = self.vertex(one, grain)
            if vertex is not None:
                made.setdefault(vertex, one)
        return tuple(made)

    def vertex(self, written: WrittenVertex, finest: Grain) -> Vertex | None:
        """A vertex with its attributes in the order of the dimensions."""
        *words, last = written.words
        grain = None if last.text in self.levels else grain_of(last.text)
        if grain is None:
            words.append(last)
        else:
            self.check_grain(grain, finest, last.span)
        if words and words[0].text == "all" and not any(w.text in self.levels for w in words):
            words = words[1:]
        chosen: dict[int, str] = {}
        is_known = True
        for word in words:
            if word.text not in self.levels:
                can_be_grain = word is last
                known = [*self.levels, *(GRAINS if can_be_grain else ())]
                self.unknown("attribute or grain" if can_be_grain else "attribute", word, known)
                is_known = False
                continue
            dimension, _ = self.levels[word.text]
            if dimension in chosen:
                message = f'"{chosen[dimension]}" and "{word.text}" are levels of one dimension'
                self.fail(message, word.span, "a vertex takes one level of a dimension, or none")
                is_known = False
            chosen[dimension] = word.text
        return (
            Vertex(tuple(chosen[d] for d in sorted(chosen)), grain or finest) if is_known else None
        )

    def check_lengths(self, grain: Grain, window: int) -> None:
        """What is longer than times can be told apart would never end."""
        for key, count in (("CWindow", window), ("History", self.file.history)):
            if count * grain.longest >= _LONGEST:
                hint = f"write at most {_LONGEST // grain.longest:,}"
                self.fail(f"{key} is longer than times go", self.file.place(key), hint)

    def check_grain(self, grain: Grain, finest: Grain, span: Span) -> None:
        if self.file.grain is None or self.file.window is None:
            return
        if not finest.is_within(grain):
            message = f"a grain of {grain} is finer than TimeGrain, or not a multiple of it"
            self.fail(message, span, f"TimeGrain is {finest}")
        elif grain.longest > self.file.window * finest.longest:
            message = f"a grain of {grain} is longer than the c-window"
            self.fail(message, span, f"CWindow is {self.file.window} times {finest}")

    def chosen(self, dimensions: tuple[tuple[str, ...], ...], grain: Grain) -> tuple[Vertex, ...]:
        """The vertices that are kept because it costs least, or as a mode says."""
        choosing, place = self.file.choosing, self.file.place("MMode")
        lattice = Lattice(tuple(len(levels) for levels in dimensions))
        needs: tuple[str, ...] = ("MVerticesNum", "MaxStorageNumTuples")
        if choosing.mode == "Optimized":
            is_said = "OptMethod" in self.file.places
            needs = tuple(k for k, m in BUDGETS.items() if not is_said or m == choosing.method)
        if all(key not in self.file.places for key in needs):
            message = f"{choosing.mode} needs a budget"
            self.fail(message, place, f"write {' or '.join(f'{key} = ...' for key in needs)}")
        elif len(lattice) > MOST_VERTICES:
            message = f"this lattice has {len(lattice):,} vertices, too many to choose from"
            self.fail(message, place, "name some: MMode = Custom, MVertices = ...")
        elif choosing.asked == "Custom" and len(choosing.frequencies) != len(lattice) - 1:
            message = (
                f"here are {len(choosing.frequencies)} frequencies for {len(lattice) - 1} vertices"
            )
            self.fail(message, self.file.place("RefFrequencies"), "all but `all` have one")
        else:
            sizes = sizes_of_levels(lattice.heights, self.file.sizes)
            vertices = choose(lattice, sizes, self.limited(choosing))
            if not vertices and choosing.method != "Measured":
                message = "no vertex fits this budget"
                hint = "it is for vertices beside the finest one, which is always kept"
                self.fail(message, self.file.place("MaxStorageNumTuples"), hint)
            return tuple(_vertex(v, dimensions, grain) for v in vertices)
        return ()

    def limited(self, choosing: Choosing) -> Choosing:
        """An optimised choice has the one budget of its method."""
        if choosing.mode != "Optimized":
            return choosing
        if choosing.method == "NumVertices":
            return replace(choosing, cells=None)
        return replace(choosing, number=None)

    # --- measures ---

    def measures(self) -> tuple[Aggregation, ...]:
        if self.file.measures is None:
            return self.usual_measures()
        made = [self.measure(measure) for measure in self.file.measures]
        names: set[str] = {TIME_OF_CELL, *self.levels}
        for one, written in zip(made, self.file.measures, strict=True):
            name = written.name.text if written.name else one.name if one else ""
            if name in names:
                hint = "give it another name: other: sum(x)"
                self.fail(f'there are two columns "{name}"', written.span, hint)
            names |= {name} if name else set()
        return tuple(one for one in made if one is not None)

    def usual_measures(self) -> tuple[Aggregation, ...]:
        numbers = [f for f in self.schema if f.type.kind in _NUMBERS and f.name not in self.levels]
        if not numbers:
            return (Aggregation("count", "count"),)
        return tuple(
            Aggregation(f"{function}_{f.name}", function, Column(f.name, f.type))
            for f in numbers
            for function in _USUAL
        )

    def measure(self, written: WrittenMeasure) -> Aggregation | None:
        function, column = written.function.text.lower(), written.column
        if function not in MEASURES:
            self.unknown("measure", written.function, list(MEASURES))
            return None
        if column is not None and column.text not in self.schema:
            self.unknown("column", column, list(self.schema.names))
            return None
        faults = len(self.file.faults)
        at = self.quantile(written)
        if len(self.file.faults) > faults:
            return None
        term = Column(column.text, self.schema[column.text]) if column else None
        kind = "quantile" if function == "median" else function
        if term is not None and kind in ("variance", "var_pop") and term.type == INTEGER:
            term = Column(self.number_of(term.name), NUMBER)
        made = Aggregation(_name_of(written, at), kind, term, at)
        try:
            made.result_type()
        except FunctionFault as fault:
            hint = "measures are of numbers; count and distinct are of anything"
            self.fail(str(fault), written.span, hint)
            return None
        if function in ("min", "max") and term is not None and term.type == TEXT:
            self.fail(f"{function} cannot aggregate a text", written.span)
            return None
        return made

    def number_of(self, column: str) -> str:
        """A column with the integers of another one as numbers."""
        made = unlike(f"{column}_as_number", self.schema)
        self.numbers[made] = column
        return made

    def quantile(self, written: WrittenMeasure) -> int | None:
        """At how many millionths a quantile is; of other measures None."""
        function, at = written.function.text.lower(), written.at
        if function == "quantile" and at is not None:
            if re.fullmatch(r"0?\.\d{1,6}|0|1|1\.0+", at.text):
                return round(float(at.text) * WHOLE)
            self.fail("expected a part of the whole", at.span, "write 0.95, with up to six digits")
        elif function == "quantile":
            self.fail("which quantile?", written.span, "write quantile(x, 0.95)")
        elif at is not None:
            self.fail(f"{function} is of one column", at.span)
        return WHOLE // 2 if function in ("median", "quantile") else None


def _name_of(written: WrittenMeasure, at: int | None) -> str:
    """The name that is written, or one of the function and the column."""
    if written.name is not None:
        return written.name.text
    function = written.function.text.lower()
    if function == "quantile" and at is not None:
        function = f"p{at / 10_000:g}".replace(".", "_")
    return f"{function}_{written.column.text}" if written.column else function
