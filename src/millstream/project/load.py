"""From a project's folder to one program with its sources and sinks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from millstream.calculus.graph import Program
from millstream.connectors.location import Format, Location, parse_location
from millstream.connectors.settings import settings_of
from millstream.errors import Fault, MillstreamError, ProgramError, UsageError
from millstream.languages import read_source, translate
from millstream.project.file import SHEET, ProjectFile, SinkTable, StreamTable, parse_project
from millstream.project.link import Linked, link
from millstream.project.sheets import add_sheets


def load_project(
    folder: Path, shown: str
) -> tuple[Linked, dict[str, Location], dict[str, Location]]:
    """The linked program, the location of each input and of each output that has a sink."""
    file = folder / "millstream.toml"
    if not file.exists():
        raise UsageError(f'the folder "{shown}" has no millstream.toml')
    project = parse_project(read_source(file, str(file)))
    linked = link(project, _programs(project, folder))
    sources = {s.name: _source(s, folder) for s in linked.streams}
    sinks = {}
    for sink in project.sinks:
        queue = f"{sink.name}.out" if f"{sink.name}.out" in linked.program.outputs else sink.name
        sinks[queue] = _sink(sink, folder)
    return linked, sources, sinks


def _programs(project: ProjectFile, folder: Path) -> dict[str, Program]:
    """The program of every node; the faults of all of them together."""
    programs: dict[str, Program] = {}
    faults: list[Fault] = []
    for node in project.nodes:
        if node.language == SHEET:
            continue
        path = folder / node.path
        try:
            programs[node.name] = translate(read_source(path, str(path)), node.language)
        except MillstreamError as error:
            faults += error.faults
    faults += add_sheets(project, folder, programs)
    if faults:
        raise ProgramError(faults)
    return {node.name: programs[node.name] for node in project.nodes}


def _source(stream: StreamTable, folder: Path) -> Location:
    location = parse_location(stream.source, folder)
    if location.format is Format.GENERATOR and stream.options:
        return replace(location, generator=settings_of(stream.options))
    if stream.options:
        names = ", ".join(stream.options)
        raise UsageError(f"only a generator has {names}", span=stream.span)
    return location


def _sink(sink: SinkTable, folder: Path) -> Location:
    location = parse_location(sink.to, folder)
    return replace(location, times="iso") if sink.times == "iso" else location
