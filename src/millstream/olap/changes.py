"""What has become of an answer: rows that came and rows that went."""

from __future__ import annotations

from typing import Any

import orjson

from millstream.olap.tables import AnswerTable

#: The rows of an answer as JSON, and how many of each there are.
Rows = dict[bytes, int]


def rows_of(table: AnswerTable) -> Rows:
    made: Rows = {}
    for record in table.records():
        key = orjson.dumps(record)
        made[key] = made.get(key, 0) + 1
    return made


def changes(before: Rows, after: Rows) -> list[dict[str, Any]]:
    """Signed rows that make one answer of another; what goes comes first."""
    made = []
    for sign, one, other in ((-1, before, after), (1, after, before)):
        for key, count in one.items():
            more = count - other.get(key, 0)
            if more > 0:
                made.append({"weight": sign * more, "cell": orjson.loads(key)})
    return made
