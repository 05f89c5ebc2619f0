"""How a job is run in batches."""

from __future__ import annotations

from dataclasses import dataclass

#: Tests make batches small.
BATCH_BYTES = "MILLSTREAM_BATCH_BYTES"
SNAPSHOT_EVERY = 20


@dataclass(frozen=True)
class Settings:
    """How a job is run; none of it changes its results."""

    partitions: int
    #: None is as many as suit the layout.
    buckets: int | None
    batch_bytes: int
    snapshot_every: int = SNAPSHOT_EVERY
    rebuild: bool = False
    #: Whether work is laid out anew if it would be laid out in another way now.
    relayout: bool = False
    #: Whether nobody will take the checkpoint up again.
    is_scratch: bool = False
    #: Whether everything is done in one place, where the checkpoint leaves the choice.
    is_together: bool = False
    #: Whether inputs can be of Spark's own kinds.
    can_read_natives: bool = False
