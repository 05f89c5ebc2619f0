"""Streams of a project that nobody declares columns of: what their sources tell of them."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from millstream.connectors.infer import undeclared
from millstream.connectors.location import Location
from millstream.errors import Fault, MillstreamError
from millstream.project.file import ProjectFile, StreamTable


def with_told_columns(
    project: ProjectFile, wanted: Collection[str], locate: Callable[[StreamTable], Location]
) -> tuple[ProjectFile, list[Fault], dict[str, Fault]]:
    """With the columns of streams that are wanted; what was noted; which tell nothing, and why."""
    notes: list[Fault] = []
    untold: dict[str, Fault] = {}

    def told(stream: StreamTable) -> StreamTable:
        if stream.columns is not None or stream.name not in wanted:
            return stream
        section = "relation" if stream.is_relation else "stream"
        try:
            undeclared_columns = undeclared(
                locate(stream), stream.name, stream.time,
                has_time=not stream.is_read_once, how='time = "COLUMN"',
            )  # fmt: skip
        except MillstreamError as error:
            (why, *_) = error.faults
            hint = f"give it columns in [{section}.{stream.name}]"
            untold[stream.name] = replace(why, span=stream.span, hint=why.hint or hint)
            return stream
        notes.extend(Fault(note, stream.span, hint) for note, hint in undeclared_columns.notes)
        return replace(stream, columns=undeclared_columns.schema, time=undeclared_columns.time)

    return replace(project, streams=tuple(map(told, project.streams))), notes, untold
