"""What was found out, as JSON."""

from __future__ import annotations

import json

Record = dict[str, object]


def records_text(records: list[Record] | Record) -> str:
    return json.dumps(records, indent=2, ensure_ascii=False) + "\n"
