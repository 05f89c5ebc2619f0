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

    def __call__(self, declaration: ast.Declaration) -> ast.Declaration | Fault:
        """The declaration with its columns, or why they cannot be told."""
        assert declaration.source is not None
        span = declaration.name.span
        try:
            inferred = undeclared(
                parse_location(declaration.source, self._folder), declaration.name.name,
                None if declaration.time is None else declaration.time.name,
                has_time=not declaration.is_read_once, how="TIME column",
            )  # fmt: skip
        except MillstreamError as error:
            return replace(error.faults[0], span=span)
        self._notes += [Fault(message, span, hint) for message, hint in inferred.notes]
        columns = tuple(ast.Declared(ast.Word(f.name, span), f.type) for f in inferred.schema)
        where = span if declaration.time is None else declaration.time.span
        time = None if inferred.time is None else ast.Word(inferred.time, where)
        return replace(declaration, columns=columns, time=time)
