"""Which task runs which group of buckets.

Spark gives a partition to any worker that is free, but only the worker that ran a group in
the batch before has its state at hand. So a task does not run the group of its own number:
it takes a group that its worker has at hand and that no other task of the batch has taken.
A claim is a file that only one task can create; a task that is tried again finds its own.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable
from pathlib import Path


class Claims:
    """The claims of one stage in one batch."""

    def __init__(self, folder: Path, version: int, stage: int, groups: int) -> None:
        self._folder = folder
        self._prefix = f"{version:09}.{stage}."
        self._groups = groups

    def take(self, task: int, is_at_hand: Callable[[int], bool]) -> int:
        """The group that a task runs: a claim of its own, one at hand, or any other."""
        self._folder.mkdir(parents=True, exist_ok=True)
        order = [(task + n) % self._groups for n in range(self._groups)]
        claimed = {group: self._holder(group) for group in order}
        for group, holder in claimed.items():
            if holder == task:
                return group
        for group in sorted(order, key=lambda g: not is_at_hand(g)):
            if claimed[group] is None and self._claim(group, task):
                return group
        raise AssertionError(f"task {task} finds no group left of {self._groups}")

    def _path(self, group: int) -> Path:
        return self._folder / f"{self._prefix}{group}"

    def _holder(self, group: int) -> int | None:
        try:
            return int(self._path(group).read_text())
        except FileNotFoundError:
            return None

    def _claim(self, group: int, task: int) -> bool:
        """A link appears with its content or not at all, and never replaces another."""
        own = self._folder / f".{uuid.uuid4().hex}"
        own.write_text(str(task))
        try:
            os.link(own, self._path(group))
        except FileExistsError:
            return False
        finally:
            own.unlink()
        return True
