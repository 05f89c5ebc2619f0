"""Outputs to places elsewhere."""

from __future__ import annotations

import importlib
from typing import Any

from millstream.connectors.chunks import Writer
from millstream.connectors.location import Location
from millstream.connectors.write import Shape
from millstream.errors import UsageError

#: What each kind of place is written by, loaded when it is wanted.
_WRITERS = {
    "delta": "delta:DeltaWriter",
    "http": "post:PostWriter",
    "https": "post:PostWriter",
    "iceberg": "iceberg:IcebergWriter",
    "kafka": "kafka_out:KafkaWriter",
    "nats": "jetstream_out:JetStreamWriter",
}

#: Those that can have what stands.
_STATES = ("delta", "iceberg")
_STATE_HINT = "a table of PostgreSQL, Delta Lake or Iceberg"


def open_elsewhere(location: Location, output: str, shape: Shape, *, is_following: bool) -> Writer:
    """The writer of an address."""
    place = location.elsewhere
    assert place is not None
    if location.is_state and place.scheme not in _STATES:
        raise UsageError("what stands is written to one file here, or to a table", hint=_STATE_HINT,
                         place=location.text)  # fmt: skip
    if not place.is_objects:
        module, _, name = _WRITERS[place.scheme].partition(":")
        kind: Any = getattr(importlib.import_module(f"{__package__}.{module}"), name)
        writer: Writer = kind(location, output, shape)
        return writer
    from millstream.connectors.elsewhere.objects_out import ObjectFolderWriter, ObjectWriter

    if place.path.endswith("/"):
        return ObjectFolderWriter(location, shape)
    if is_following:
        raise UsageError("a run that follows its inputs needs a folder of objects",
                         place=location.text, hint="end the address with /")  # fmt: skip
    return ObjectWriter(location, shape)
