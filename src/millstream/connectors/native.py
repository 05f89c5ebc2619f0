"""Sources that only Spark can read: `spark:rate`, `spark:kafka`, with options of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from millstream.connectors.chunks import Chunk
from millstream.errors import UsageError


@dataclass(frozen=True, slots=True)
class NativeSettings:
    """The format of a Spark streaming source and its options, as Spark spells them."""

    format: str
    options: Mapping[str, str] = field(default_factory=dict)


def native_in(text: str) -> NativeSettings:
    """As written on a command line: `rate,rowsPerSecond=10`."""
    name, *rest = text.split(",")
    options: dict[str, str] = {}
    for part in rest:
        key, equals, value = part.partition("=")
        if not equals or not key.strip():
            raise UsageError(f'expected an option such as rowsPerSecond=10, got "{part}"')
        options[key.strip()] = value.strip()
    if not name.strip():
        raise UsageError("expected the format of a Spark source", hint="such as spark:rate")
    return NativeSettings(name.strip(), options)


class SparkOnly:
    """Stands for a source that this process cannot read."""

    def __init__(self, name: str) -> None:
        self._name = name

    def chunks(self) -> Iterator[Chunk]:
        raise UsageError(
            "only the Spark engine can read this", place=self._name, hint="add --engine spark"
        )

    def close(self) -> None:
        """Nothing was opened."""
