"""How a job is run in batches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from millstream.errors import UsageError

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


def check_options(options: Mapping[str, Any]) -> None:
    """Whether what a caller asks of an engine goes together, before anything is opened."""
    checkpoint = options.get("checkpoint")
    for name in ("rebuild", "relayout"):
        if options.get(name) and checkpoint is None:
            raise UsageError(f"{name} is about a checkpoint, and none is given",
                             hint="say which, such as --checkpoint state/")  # fmt: skip
    threads = options.get("threads")
    if threads is not None and threads < 1:
        raise UsageError(f"there must be at least one thread, got {threads}")


def check_folder(folder: Path) -> None:
    """Whether a checkpoint can be there: it is a folder, or none stands in its way."""
    there = next((path for path in (folder, *folder.absolute().parents) if path.exists()), None)
    if there is not None and not there.is_dir():
        raise UsageError(f'the checkpoint "{folder}" cannot be a folder: {there} is a file')
