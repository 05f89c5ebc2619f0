"""From a project's folder to one program with its sources and sinks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from millstream.calculus.graph import Program
from millstream.calculus.types import QueueType
from millstream.connectors.location import Format, Location, parse_location, seen_from
from millstream.connectors.settings import settings_of
from millstream.errors import Fault, MillstreamError, ProgramError, UsageError, listing, suggest
from millstream.languages import languages, require_taker
from millstream.languages.language import (
    NO_NAMES,
    Expected,
    Leftovers,
    Rounds,
    Translation,
    Want,
    Written,
    read_source,
)
from millstream.project.file import (
    NodeTable,
    ProjectFile,
    SinkTable,
    StreamTable,
    parse_project,
)
from millstream.project.link import link
from millstream.project.told import with_told_columns


@dataclass(frozen=True, slots=True)
class Project:
    """The linked program, where its inputs and outputs are, and what its nodes say of it."""

    program: Program
    sources: dict[str, Location]
    sinks: dict[str, Location]
    notes: tuple[str, ...]
    warnings: tuple[Fault, ...]
    expected: tuple[Expected, ...]
    rounds: Rounds | None
    leftovers: Leftovers
    types: tuple[str, ...] = ()
    aside: tuple[str, ...] = ()
    spark: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def load_project(
    folder: Path, shown: str, names: Mapping[str, str] = NO_NAMES, asked: Collection[str] = ()
) -> Project:
    """All programs of a folder as one; what is `asked` for leaves, though other nodes read it."""
    file = folder / "millstream.toml"
    if not file.exists():
        raise UsageError(f'the folder "{shown}" has no millstream.toml')
    project = parse_project(read_source(file, str(file)))
    written, faults = _written(project, folder, names)
    wanted = {
        node.name: {node.inputs.get(w.stream, w.stream) for w in written[node.name].wants}
        for node in project.nodes
        if node.name in written
    }
    project, told_faults, untold = with_told_columns(
        project, set().union(*wanted.values()), lambda stream: _source(stream, folder)
    )
    # What follows from a source that tells nothing is not told again.
    written = {name: one for name, one in written.items() if wanted[name].isdisjoint(untold)}
    translations = _translations(project, written, [*faults, *untold.values()])
    project = _with_places(project, translations)
    linked = link(project, {name: t.program for name, t in translations.items()}, asked)
    sources = {s.name: _source(s, folder) for s in linked.streams}
    sinks = {}
    for sink in project.sinks:
        queue = f"{sink.name}.out" if f"{sink.name}.out" in linked.program.outputs else sink.name
        sinks[queue] = _sink(sink, folder)
    said = [(node, translations[node.name]) for node in project.nodes]
    return Project(
        linked.program,
        sources,
        sinks,
        tuple(f"{node.name}: {note}" for node, translation in said for note in translation.notes),
        (*told_faults, *(fault for _, translation in said for fault in translation.warnings)),
        tuple(
            e for node, translation in said for e in _expected(node, translation, linked.program)
        ),
        _rounds(translations, {s.name: s.source for s in project.streams}),
        _leftovers(said),
        tuple(line for _, translation in said for line in translation.types),
        tuple(node.outputs.get(n, n) for node, translation in said for n in translation.aside),
        {**project.spark, **_jars(project.spark.get("jars", ()), folder)},
    )


def _jars(jars: Sequence[str], folder: Path) -> dict[str, tuple[str, ...]]:
    """Files are meant from the folder of the project."""
    return {"jars": tuple(j if "://" in j else str(folder / j) for j in jars)} if jars else {}


def _leftovers(said: Sequence[tuple[NodeTable, Translation]]) -> Leftovers:
    """Those of all nodes, of inputs that are the project's own."""

    def told(counts: Mapping[str, int]) -> tuple[Fault, ...]:
        faults: list[Fault] = []
        for node, translation in said:
            names = {input_.name: node.inputs.get(input_.name, input_.name)
                     for input_ in translation.program.inputs}  # fmt: skip
            own = {inner: counts[name] for inner, name in names.items() if name in counts}
            faults += () if translation.leftovers is None else translation.leftovers(own)
        return tuple(faults)

    return told


def _rounds(translations: Mapping[str, Translation], sources: Mapping[str, str]) -> Rounds | None:
    """Where inputs are for so many rounds of all programs that go round by themselves.

    An input that the project itself gives is left as it is.
    """
    turning = [t.rounds for t in translations.values() if t.rounds is not None]
    own = {n: text for t in translations.values() for n, text in t.sources.items()}

    def places(count: int | None) -> dict[str, str]:
        made = {name: text for rounds in turning for name, text in rounds(count).items()}
        return {name: text for name, text in made.items() if sources.get(name) == own[name]}

    return places if turning else None


def _expected(node: NodeTable, translation: Translation, program: Program) -> list[Expected]:
    """What a node expects of inputs of the project; what other nodes give is not known yet."""
    columns = {(input_.name, f.name) for input_ in program.inputs for f in input_.type.schema}
    renamed = [
        replace(one, columns=tuple((node.inputs.get(i, i), column) for i, column in one.columns))
        for one in translation.expected
    ]
    return [one for one in renamed if columns.issuperset(one.columns)]


def _written(
    project: ProjectFile, folder: Path, names: Mapping[str, str]
) -> tuple[dict[str, Written], list[Fault]]:
    """The files of all nodes that can be read, and the faults of the others."""
    require_taker(names, [languages()[node.language] for node in project.nodes])
    faults: list[Fault] = []
    written: dict[str, Written] = {}
    for node in project.nodes:
        path = folder / node.path
        try:
            language = languages()[node.language]
            written[node.name] = language.written(path, str(path), node.settings, names)
        except MillstreamError as error:
            faults += error.faults
    return written, faults


def _translations(
    project: ProjectFile, written: dict[str, Written], faults: list[Fault]
) -> dict[str, Translation]:
    """The program of every node; the faults of all of them together, with those before."""
    waiting = dict(written)
    translations: dict[str, Translation] = {}
    # What a node at fault would have given is not missing; not all say what that is.
    lost: set[str] = set()
    hides_names = len(written) < len(project.nodes)
    while waiting:
        types = _types(project, translations)
        seen = {node.name: _seen_by(node, types) for node in project.nodes}
        for name in _ready(project, waiting, seen):
            one = waiting.pop(name)
            unknown = _unknown(project, name, one.wants, seen[name])
            translation = None
            if not unknown or (lost.isdisjoint(unknown) and not hides_names):
                translation = _translated(project, name, one, seen[name], faults)
            if translation is None:
                lost |= _promised(project, name, one)
                hides_names |= not one.promises
            else:
                translations[name] = translation
    if faults:
        raise ProgramError(faults)
    return {node.name: _moved(node, translations[node.name]) for node in project.nodes}


def _translated(
    project: ProjectFile,
    name: str,
    written: Written,
    types: dict[str, QueueType],
    faults: list[Fault],
) -> Translation | None:
    """The program of a node, or None if it is at fault, which is noted."""
    needed = [want for want in written.wants if want.is_needed]
    lacking = _unknown(project, name, needed, types)
    faults += [_missing(project, name, stream, types) for stream in lacking]
    try:
        return None if lacking else written.translate(types)
    except MillstreamError as error:
        faults += error.faults
        return None


def _moved(node: NodeTable, translation: Translation) -> Translation:
    """With its files as the project sees them, if its program sees them from its own folder."""
    folder = Path(node.path).parent
    if not languages()[node.language].sees_own_folder or folder == Path():
        return translation
    rounds = translation.rounds

    def seen(places: Mapping[str, str]) -> dict[str, str]:
        return {name: seen_from(text, folder) for name, text in places.items()}

    return replace(
        translation,
        sources=seen(translation.sources),
        sinks=seen(translation.sinks),
        rounds=None if rounds is None else lambda count: seen(rounds(count)),
    )


def _types(project: ProjectFile, translations: dict[str, Translation]) -> dict[str, QueueType]:
    """The types of all streams that can be read so far, those of the project first."""
    known = {s.name: QueueType(s.columns, s.is_relation)
             for s in project.streams if s.columns is not None}  # fmt: skip
    for node in project.nodes:
        if node.name in translations:
            program = translations[node.name].program
            types = program.queue_types()
            outside = {inner: outer for outer, inner in node.outputs.items()}
            known |= {outside.get(q, q): types[q] for q in program.outputs}
    return known


def _seen_by(node: NodeTable, types: dict[str, QueueType]) -> dict[str, QueueType]:
    """The types of streams, also by the names that a node has for them."""
    own = {name: types[outer] for name, outer in node.inputs.items() if outer in types}
    return types | own


def _node(project: ProjectFile, name: str) -> NodeTable:
    return next(node for node in project.nodes if node.name == name)


def _unknown(
    project: ProjectFile, name: str, wants: Iterable[Want], types: dict[str, QueueType]
) -> list[str]:
    """The streams of which a node is not told the columns, by their names in the project."""
    inputs = _node(project, name).inputs
    return [inputs.get(w.stream, w.stream) for w in wants if w.stream not in types]


def _ready(
    project: ProjectFile, waiting: dict[str, Written], seen: dict[str, dict[str, QueueType]]
) -> list[str]:
    """The nodes to translate next: those that know all; then those that nobody can tell more."""
    wanted = {
        name: _unknown(project, name, written.wants, seen[name])
        for name, written in waiting.items()
    }
    promised = set[str]().union(*(_promised(project, n, w) for n, w in waiting.items()))
    knowing = [name for name, streams in wanted.items() if not streams]
    alone = [name for name, streams in wanted.items() if promised.isdisjoint(streams)]
    return knowing or alone or list(waiting)


def _promised(project: ProjectFile, name: str, written: Written) -> set[str]:
    """What a node says that it gives, by the names in the project."""
    outside = {inner: outer for outer, inner in _node(project, name).outputs.items()}
    return {outside.get(stream, stream) for stream in written.promises}


def _missing(project: ProjectFile, name: str, stream: str, types: dict[str, QueueType]) -> Fault:
    """A node must be told the columns of a stream, and nobody tells them."""
    node = _node(project, name)
    given = {inner for inner, outer in node.inputs.items() if outer != inner}
    known = [one for one in types if one not in given]
    hint = f"give it columns in [stream.{stream}]"
    if stream not in node.inputs.values():
        hint += f', or say with inputs.{stream} = "..." which of these it is'
    return Fault(
        f'node "{name}" reads "{stream}", whose columns are not known',
        node.span,
        f"{hint}; known are: {listing(known)}. {suggest(stream, known) or ''}".strip(),
    )


def _with_places(project: ProjectFile, translations: dict[str, Translation]) -> ProjectFile:
    """The project with the sources and sinks that its programs give and it does not.

    What a program says about files is meant from the folder of the project by now.
    """
    streams, sinks = list(project.streams), list(project.sinks)
    outputs = {n: q for node in project.nodes for n, q in node.outputs.items()}
    provided = {s.name for s in streams} | set(outputs)
    provided |= {q for t in translations.values() for q in t.program.outputs}
    for node in project.nodes:
        translation = translations[node.name]
        for input_ in translation.program.inputs:
            if (
                input_.name in translation.sources
                and node.inputs.get(input_.name, input_.name) not in provided
            ):
                streams.append(
                    StreamTable(input_.name, input_.type.is_relation,
                                translation.sources[input_.name], input_.type.schema, input_.time,
                                input_.slack, {}, span=node.span, is_read_once=input_.is_read_once)
                )  # fmt: skip
                provided.add(input_.name)
        known = {s.name for s in sinks}
        renamed = {queue: name for name, queue in node.outputs.items()}
        for queue, to in translation.sinks.items():
            name = renamed.get(queue, queue)
            if name not in known:
                sinks.append(SinkTable(name, to, "micros", node.span))
    return replace(project, streams=tuple(streams), sinks=tuple(sinks))


def _source(stream: StreamTable, folder: Path) -> Location:
    location = replace(parse_location(stream.source, folder), idle=stream.idle)
    if stream.dialect is not None:
        if location.format is not Format.CSV:
            raise UsageError("only CSV files have such settings", span=stream.span)
        location = replace(location, dialect=stream.dialect)
    if stream.native:
        if location.native is None:
            raise UsageError("only a source of Spark has options", span=stream.span,
                             hint='such as source = "spark:rate"')  # fmt: skip
        options = {**location.native.options, **stream.native}
        location = replace(location, native=replace(location.native, options=options))
    if location.format is Format.GENERATOR and stream.options:
        return replace(location, generator=settings_of(stream.options))
    if stream.options:
        names = ", ".join(stream.options)
        raise UsageError(f"only a generator has {names}", span=stream.span)
    return location


def _sink(sink: SinkTable, folder: Path) -> Location:
    location = parse_location(sink.to, folder)
    return replace(location, times="iso") if sink.times == "iso" else location
