"""The address of a database, and texts without the passwords in them.

    postgresql://user:password@host:port/database?table=schema.table
    ...&slot=name&changes=rows     of an input: what keeps its changes, and which are told

Further settings of the address (`sslmode=require`) are PostgreSQL's own; what is missing it
takes from its environment and files, as its other clients do (`PGPASSWORD`, `~/.pgpass`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, unquote, urlsplit

from millstream.errors import UsageError

_SCHEMES = ("postgresql://", "postgres://")
_IN_USER = re.compile(r"(://[^:@/?#]*):.*@", re.DOTALL)
_IN_SETTINGS = re.compile(r"(password=)[^&\s]*", re.IGNORECASE)
#: PostgreSQL would cut off what is longer, without an error.
_NAME_BYTES = 63


@dataclass(frozen=True, slots=True)
class Database:
    """Where a table is. `settings` hold a password and are never shown."""

    settings: Mapping[str, str] = field(repr=False, hash=False)
    schema: str | None = None
    table: str | None = None
    #: Of an input: the slot that keeps its changes, and which of them are told.
    slot: str | None = None
    changes: str | None = None


def masked(text: str) -> str:
    """A text that may be an address, without its passwords.

    Too much is hidden rather than too little: a password may hold any character.
    """
    if "://" not in text:
        return text
    return _IN_SETTINGS.sub(r"\1***", _IN_USER.sub(r"\1:***@", text))


def is_database(text: str) -> bool:
    return text.startswith(_SCHEMES)


def parse_database(text: str) -> Database:
    """The database that an address means."""
    shown = masked(text)
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        # A password with a plain / ? or # looks like this; the reason would show a part of it.
        raise UsageError(
            "this address of a database cannot be read",
            hint="write / ? # and % in a password as %2F %3F %23 and %25",
        ) from None
    settings = dict(parse_qsl(parts.query, keep_blank_values=True))
    schema, table = _table(settings.pop("table", ""), shown)
    slot, changes = settings.pop("slot", None), settings.pop("changes", None)
    given = {
        "user": unquote(parts.username or ""),
        "password": unquote(parts.password or ""),
        "host": unquote(parts.hostname or ""),
        "port": str(port or ""),
        "dbname": unquote(parts.path.removeprefix("/")),
    }
    settings |= {key: value for key, value in given.items() if value}
    return Database(settings, schema, table, slot, changes)


def _table(text: str, shown: str) -> tuple[str | None, str | None]:
    names = text.split(".")
    if len(names) > 2 or (text and not all(names)):
        raise UsageError(
            f'expected a table such as results or schema.results, got "{text}"', place=shown
        )
    for name in names:
        check_name(name, shown)
    return (names[0], names[1]) if len(names) == 2 else (None, text or None)


def check_name(name: str, shown: str) -> None:
    if len(name.encode()) > _NAME_BYTES or "\0" in name:
        raise UsageError(
            f'PostgreSQL cannot take the name "{name}"',
            place=shown,
            hint=f"names have at most {_NAME_BYTES} bytes",
        )
