"""The rows of JSON Lines, one at a time: the definition of the format.

One object a line, strictly as RFC 8259 has it: no NaN or Infinity (the texts "NaN",
"Infinity" and "-Infinity" stand for them), no key twice, no more than 100 levels. A key
that is missing is null; keys that are not declared are passed over. Blank lines too.
"""

from __future__ import annotations

import json
import re
from typing import NoReturn

from millstream.calculus.types import Row, Value
from millstream.connectors.csv_rows import check_utf8, too_long
from millstream.connectors.layout import InputColumns, check_values
from millstream.connectors.values import Numeral, Unfit, from_json, quoted

DEEPEST = 100
_BRACKETS = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[\[{]|[\]}]', re.DOTALL)


def object_in(raw: bytes, longest: int) -> dict[str, object]:
    """The object on a line; its numbers are numerals."""
    line = raw.removesuffix(b"\n").removesuffix(b"\r")
    if len(line) > longest:
        raise Unfit(too_long(longest))
    check_utf8(line)
    if _depth(line) > DEEPEST:
        raise Unfit(f"nested more than {DEEPEST} levels deep")
    try:
        parsed = _DECODER.decode(line.decode())
    except json.JSONDecodeError as error:
        reason = (error.msg[0].lower() + error.msg[1:]).removesuffix(" at")
        raise Unfit(f"not JSON: {reason} at column {error.pos + 1}") from None
    if not isinstance(parsed, dict):
        raise Unfit("expected a JSON object")
    return parsed


def _depth(line: bytes) -> int:
    """How deep brackets are nested; the parser would use the C stack for each level."""
    if line.count(b"[") + line.count(b"{") <= DEEPEST:
        return 0
    depth = deepest = 0
    for bracket in _BRACKETS.finditer(line):
        if bracket[0] in b"[{":
            depth += 1
            deepest = max(deepest, depth)
        elif bracket[0] in b"]}":
            depth -= 1
    return deepest


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members: dict[str, object] = {}
    for key, value in pairs:
        if key in members:
            raise Unfit(f"the key {quoted(key)} stands twice")
        members[key] = value
    return members


def _no_constant(word: str) -> NoReturn:
    raise Unfit(f'{word} is not JSON; the text "{word}" stands for it')


_DECODER = json.JSONDecoder(
    object_pairs_hook=_unique,
    parse_int=Numeral,
    parse_float=Numeral,
    parse_constant=_no_constant,
)


def values_of_line(layout: InputColumns, raw: bytes, longest: int) -> Row:
    members = object_in(raw, longest)
    values: list[Value] = []
    for field in layout.fields:
        try:
            values.append(from_json(field.type.kind, members.get(field.name), layout.times))
        except Unfit as unfit:
            raise Unfit(f"{field.name}: {unfit}") from None
    return check_values(layout, tuple(values))
