"""Regular expressions, time zones and paths of JSON that are written down must be such."""

from __future__ import annotations

import re
from zoneinfo import available_timezones

from millstream.errors import suggest
from millstream.queries import ast
from millstream.queries.tokens import Cursor


def check_pattern(cursor: Cursor, pattern: ast.Expression) -> None:
    if isinstance(pattern, ast.Constant) and isinstance(pattern.value, str):
        try:
            re.compile(pattern.value)
        except re.error as error:
            cursor.fail(f"this is no regular expression: {error}", pattern.span)


def check_zone(cursor: Cursor, zone: ast.Expression) -> None:
    name = zone.value if isinstance(zone, ast.Constant) else None
    if isinstance(name, str) and name not in available_timezones():
        near = suggest(name, available_timezones())
        cursor.fail(f'unknown time zone "{name}"', zone.span, near)


def path_of(cursor: Cursor, word: str, key: ast.Expression) -> str:
    """The path of `a -> 'b'`, `a ->> 0` and `a ->> '$.b[0]'`."""
    match key:
        case ast.Constant(str() as path) if path == "$" or path.startswith(("$.", "$[")):
            return path
        case ast.Constant(str() as name) if '"' not in name:
            return f'$."{name}"'
        case ast.Constant(int() as number) if not isinstance(number, bool) and number >= 0:
            return f"$[{number}]"
        case _:
            hint = "write json_value(text, '$.a.b[0]')"
            cursor.fail(f"{word} takes a name in quotes or a number", key.span, hint)
