"""The writer of a place, whatever kind of place it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from millstream.connectors.chunks import Writer
from millstream.connectors.elsewhere.extras import optional
from millstream.connectors.location import Location
from millstream.connectors.write import Shape, open_writer
from millstream.errors import AllRejected, UsageError


def writer_of(name: str, location: Location, shape: Shape, *, is_following: bool) -> Writer:
    """Folders and databases know which batches they have; all else is filled anew by every run."""
    if location.dialect.is_told:
        raise UsageError("dialects of CSV are for inputs", place=location.text,
                         hint="outputs are written in UTF-8, with commas")  # fmt: skip
    database = location.database
    if database is not None and (database.slot or database.changes):
        raise UsageError("slot and changes are settings of inputs", place=location.text)
    if location.by is not None:
        from millstream.connectors.split import SplitWriter

        return SplitWriter(location, shape, is_following=is_following)
    if location.elsewhere is not None:
        from millstream.connectors.elsewhere.write import open_elsewhere

        return open_elsewhere(location, name, shape, is_following=is_following)
    if location.database is not None:
        optional("psycopg", "postgres")
    if location.is_state and location.database is not None:
        from millstream.connectors.postgres_state import PostgresStateWriter

        return PostgresStateWriter(location, name, shape)
    if location.is_state:
        from millstream.connectors.state import StateWriter

        return StateWriter(location, name, shape, is_following=is_following)
    if location.database is not None:
        from millstream.connectors.postgres import PostgresWriter

        return PostgresWriter(location, name, shape)
    if location.is_folder:
        from millstream.connectors.folder import FolderWriter

        return FolderWriter(location, shape)
    if is_following and location.path is not None:
        from millstream.connectors.parts import PartsWriter

        return PartsWriter(location, shape)
    return open_writer(location, shape)


def closing_of(writer: Any, *, is_aside: bool) -> Callable[..., bool]:
    """Close after success, abort after an error: no reader ever sees half a result.

    What is put aside is wanted all the more if nothing else is left.
    """

    def leave(kind: object, error: object, traceback: object) -> bool:
        if kind is None or (is_aside and kind is AllRejected):
            writer.close()
        else:
            writer.abort()
        return False

    return leave
