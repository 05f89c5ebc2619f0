"""At which step of a plan kernels are being made or run, for whoever asks why it takes long.

Mutable, and only for messages: nothing is decided by it.
"""

from __future__ import annotations

from typing import NamedTuple


class At(NamedTuple):
    """The number of a step, from 1 on, and how many there are."""

    step: int
    steps: int


#: In this process, and in the one that compiles for it.
here: At | None = None
aside: At | None = None
