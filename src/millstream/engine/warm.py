"""Which programs have run compiled, so that their loops are known to lie in the cache.

    <cache>/warm/<digest>      nothing: that it is there says all

The digest covers the program and everything that its loops are compiled of and by.
"""

from __future__ import annotations

import contextlib
import hashlib
import sys
from importlib.metadata import version
from pathlib import Path

from millstream.cache import cache_directory, sources_digest, sources_stamp
from millstream.calculus.graph import Program
from millstream.calculus.text import render


def is_warm(program: Program) -> bool:
    return _mark(program).exists()


def note_warm(program: Program) -> None:
    """Remember that a program has run compiled, if there is a place to remember it in."""
    mark = _mark(program)
    with contextlib.suppress(OSError):  # the next small run is interpreted, as this was the first
        mark.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        mark.touch()


def _mark(program: Program) -> Path:
    versions = (version("numba"), version("numpy"), sys.version)
    digest = hashlib.sha256("\n".join((*versions, render(program))).encode())
    digest.update(sources_digest())
    digest.update(sources_stamp())
    return cache_directory() / "warm" / digest.hexdigest()
