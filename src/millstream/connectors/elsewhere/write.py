"""Outputs to places elsewhere."""

from __future__ import annotations

from millstream.connectors.chunks import Writer
from millstream.connectors.location import Location
from millstream.connectors.write import Shape
from millstream.errors import UsageError


def open_elsewhere(location: Location, output: str, shape: Shape, *, is_following: bool) -> Writer:
    """The writer of an address; kinds that only bring rows are refused."""
    place = location.elsewhere
    assert place is not None
    if location.is_state:
        raise UsageError("what stands is written to one file here", place=location.text)
    if place.scheme == "delta":
        from millstream.connectors.elsewhere.delta import DeltaWriter

        return DeltaWriter(location, output, shape)
    if place.scheme == "nats":
        from millstream.connectors.elsewhere.jetstream_out import JetStreamWriter

        return JetStreamWriter(location, output, shape)
    if not place.is_objects:
        raise UsageError(f"{place.scheme}:// is for inputs", place=location.text)
    from millstream.connectors.elsewhere.objects_out import ObjectFolderWriter, ObjectWriter

    if place.path.endswith("/"):
        return ObjectFolderWriter(location, shape)
    if is_following:
        raise UsageError("a run that follows its inputs needs a folder of objects",
                         place=location.text, hint="end the address with /")  # fmt: skip
    return ObjectWriter(location, shape)
