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

    def told(one: StreamTable) -> StreamTable:
        if one.columns is not None or one.name not in wanted:
            return one
        section = "relation" if one.is_relation else "stream"
        try:
            found = undeclared(
                locate(one), one.name, one.time,
                has_time=not one.is_read_once, how='time = "COLUMN"',
            )  # fmt: skip
        except MillstreamError as error:
            (why, *_) = error.faults
            hint = f"give it columns in [{section}.{one.name}]"
            untold[one.name] = replace(why, span=one.span, hint=why.hint or hint)
            return one
        notes.extend(Fault(message, one.span, hint) for message, hint in found.notes)
        return replace(one, columns=found.schema, time=found.time)

    return replace(project, streams=tuple(map(told, project.streams))), notes, untold
