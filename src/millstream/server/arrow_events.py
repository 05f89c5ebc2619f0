"""What a subscriber is told, as an Arrow stream: each message a batch, and each row a row of it.

    _event   state, live, changes, progress, reset or lost
    _token   behind which one can go on
    _weight  1 for a row that is there or has come, -1 for one that went; 0 if there is none
    _said    what else a message says, as JSON

and then the columns of the view, null where a message has no rows.
"""

from __future__ import annotations

import io
from typing import Any

import orjson
import pyarrow as pa

from millstream.broker.asking import AskedRows
from millstream.broker.cursor import ToldMessage
from millstream.calculus.types import INTEGER, TEXT, Kind, Type, Value
from millstream.languages.served import MASK_COLUMN
from millstream.plan.batch import vector_of


class ArrowEvents:
    """Mutable: a stream that is written message by message."""

    def __init__(self, asked: AskedRows) -> None:
        fields = [asked.view.schema.fields[n] for n in asked.columns]
        columns = {f.name: f.type for f in fields if f.name != MASK_COLUMN}
        masks = {"_mask": TEXT} if any(f.name == MASK_COLUMN for f in fields) else {}
        own = {"_event": TEXT, "_token": TEXT, "_weight": INTEGER, "_said": TEXT}
        self.types: dict[str, Type] = own | columns | masks
        self._sink = io.BytesIO()
        batch = self._batch([])
        self._stream = pa.ipc.new_stream(self._sink, batch.schema)

    def __call__(self, message: ToldMessage | None) -> bytes:
        """The bytes of a message; an empty batch is a sign of life."""
        self._stream.write_batch(self._batch([] if message is None else _rows(message)))
        written = self._sink.getvalue()
        self._sink.seek(0)
        self._sink.truncate()
        return written

    def _batch(self, rows: list[dict[str, Any]]) -> Any:
        arrays = [
            vector_of(type_, [_value(type_, row.get(name)) for row in rows]).to_arrow()
            for name, type_ in self.types.items()
        ]
        return pa.record_batch(arrays, names=list(self.types))


def _rows(message: ToldMessage) -> list[dict[str, Any]]:
    head = {"_event": message.kind, "_token": message.token, "_weight": 0}
    if "changes" in message.data:
        changes = message.data["changes"]
        return [{**change["row"], **head, "_weight": change["weight"]} for change in changes]
    if message.data.get("rows"):
        return [{**row, **head, "_weight": 1} for row in message.data["rows"]]
    said = {name: value for name, value in message.data.items() if name != "rows"}
    return [head | ({"_said": orjson.dumps(said).decode()} if said else {})]


def _value(type_: Type, value: Any) -> Value:
    """A value of a message, where what is no finite number is a text."""
    made: Value = float(value) if type_.kind is Kind.NUMBER and value is not None else value
    return made
