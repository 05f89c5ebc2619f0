"""Layouts that the local engine would not choose, on it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from millstream.engine.local import batches as local_batches
from millstream.engine.settings import Settings


@contextmanager
def laid_out_on(buckets: int | None) -> Iterator[None]:
    """One process works on so many buckets; None is the layout of the engine, one place."""
    run_batches = local_batches.run_batches

    def run_spread(job: Any, progress: Any, checkpoint: Any, settings: Settings, start: Any) -> Any:
        settings = replace(settings, buckets=buckets, is_together=False)
        return run_batches(job, progress, checkpoint, settings, start)

    with pytest.MonkeyPatch.context() as patch:
        if buckets is not None:
            patch.setattr(local_batches, "run_batches", run_spread)
        yield
