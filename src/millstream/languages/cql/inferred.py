"""`CREATE STREAM s FROM 'a.parquet'`: declarations whose columns the source tells."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from millstream.connectors.infer import undeclared
from millstream.connectors.location import parse_location
from millstream.errors import Fault, MillstreamError
from millstream.queries import ast


class DeclaredByItself:
    """Mutable: declares what sources tell, and notes what it has taken for granted."""

    def __init__(self, folder: Path, notes: list[Fault]) -> None:
        self._folder = folder
        self._notes = notes

    def __call__(self, one: ast.Declaration) -> ast.Declaration | Fault:
        """The declaration with its columns, or why they cannot be told."""
        assert one.source is not None
        span = one.name.span
        try:
            told = undeclared(
                parse_location(one.source, self._folder), one.name.name,
                None if one.time is None else one.time.name,
                has_time=not one.is_read_once, how="TIME column",
            )  # fmt: skip
        except MillstreamError as error:
            return replace(error.faults[0], span=span)
        self._notes += [Fault(message, span, hint) for message, hint in told.notes]
        columns = tuple(ast.Declared(ast.Word(f.name, span), f.type) for f in told.schema)
        where = span if one.time is None else one.time.span
        time = None if told.time is None else ast.Word(told.time, where)
        return replace(one, columns=columns, time=time)
