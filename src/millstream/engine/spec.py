"""What a task that reads must know."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from millstream.calculus.graph import Input
from millstream.connectors.location import Location
from millstream.plan.keys import Key


@dataclass(frozen=True)
class InputSpec:
    """An input and where its rows go."""

    input: Input
    location: Location
    declaration: int
    queue: int
    target: int
    key: Key

    @property
    def name(self) -> str:
        return self.input.name

    @property
    def idle(self) -> int | None:
        return self.location.idle

    @property
    def is_native(self) -> bool:
        return self.location.native is not None


@dataclass(frozen=True)
class SourceSpec:
    """All inputs that we read ourselves."""

    inputs: tuple[InputSpec, ...]
    checkpoint: Path
    partitions: int
    buckets: int
    stages: int
    batch_bytes: int
    #: For each stage the inputs whose instants it looks at, by declaration.
    instants: tuple[frozenset[int], ...]
    is_following: bool
    #: A batch of more bytes than this is read by several tasks, in pieces of this size.
    piece_bytes: int = 4 << 20
