"""`CREATE STREAM s FROM 'a.parquet'`: declarations whose columns the source tells."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from millstream.calculus.types import TIME
from millstream.connectors.infer import Inferred, inferred
from millstream.connectors.location import parse_location
from millstream.errors import Fault, MillstreamError, listing
from millstream.queries import ast


class DeclaredByItself:
    """Mutable: declares what sources tell, and notes what it has taken for granted."""

    def __init__(self, folder: Path, notes: list[Fault]) -> None:
        self._folder = folder
        self._notes = notes

    def __call__(self, one: ast.Declaration) -> ast.Declaration | Fault:
        """The declaration with its columns, or why they cannot be told."""
        assert one.source is not None
        try:
            found = inferred(parse_location(one.source, self._folder))
        except MillstreamError as error:
            return replace(error.faults[0], span=one.name.span)
        time = None if one.time is None else _as_in(found, one.time)
        columns = tuple(
            # What is said to be the time holds times, in whatever way they are written.
            ast.Declared(
                ast.Word(f.name, one.name.span), TIME if time and f.name == time.name else f.type
            )
            for f in found.schema
        )
        declared = replace(one, columns=columns, time=time)
        if one.time is None and not found.has_times and not one.is_read_once:
            times = [f.name for f in found.schema if f.type == TIME]
            if len(times) != 1:
                which = f"it could be {listing(times)}" if times else "none holds times"
                return Fault(
                    f'which column of {found.name} is the event time of "{one.name.name}"? {which}',
                    one.name.span,
                    f"say TIME column; it has: {listing(found.schema.names)}",
                )
            declared = replace(declared, time=ast.Word(times[0], one.name.span))
        self._note(declared, found)
        return declared

    def _note(self, one: ast.Declaration, found: Inferred) -> None:
        """What was told by a sample, and what was chosen or left, is said."""
        if found.rows is not None:
            types = ", ".join(f"{c.name.name} {c.type}" for c in one.columns or ())
            rows = f"{found.rows:,} row{'s' if found.rows != 1 else ''}"
            message = f'columns of "{one.name.name}" by {rows} of {found.name}: {types}'
            self._notes.append(Fault(message, one.name.span, "declare them to be sure"))
        if found.left_out:
            message = (
                f"{listing(found.left_out)} of {found.name} cannot be a column and is left out"
            )
            self._notes.append(Fault(message, one.name.span))


def _as_in(found: Inferred, time: ast.Word) -> ast.Word:
    """The column of time as the source has it: headers are found by their names in any case."""
    names = found.schema.names
    alike = [n for n in names if n.casefold() == time.name.casefold()]
    return time if time.name in names or len(alike) != 1 else replace(time, name=alike[0])
