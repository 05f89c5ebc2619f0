"""Which programs have run compiled, so that their loops are known to lie in the cache.

    <cache>/warm/<digest>      nothing: that it is there says all

The digest covers the program and everything that its loops are compiled of and by.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import sys
from contextlib import ExitStack
from importlib.metadata import version
from pathlib import Path

from millstream.cache import cache_directory, sources_digest
from millstream.calculus.graph import Program
from millstream.calculus.text import render
from millstream.cold import Start

#: The setting: how many seconds of the processor a small job may take without being compiled; 0
#: for none, then nothing is run before it is compiled.
SETTING = "MILLSTREAM_SMALL"
SECONDS = 1.5
#: A large program takes long for each row; trying it would only make its start longer.
MOST_OPERATORS = 500


def small_seconds() -> float:
    return float(os.environ.get(SETTING, SECONDS))


def is_large(program: Program) -> bool:
    """Whether a program is never run without being compiled, however few its rows are."""
    return len(program.operators) > MOST_OPERATORS


def may_interpret(program: Program) -> bool:
    """Whether a program is worth being run by its meanings: its loops are not in the cache."""
    return small_seconds() > 0 and not is_large(program) and not is_warm(program)


def is_warm(program: Program) -> bool:
    return _mark(program).exists()


def note_warm(program: Program) -> None:
    """Remember that a program has run compiled, if there is a place to remember it in."""
    mark = _mark(program)
    with contextlib.suppress(OSError):  # the next small run is interpreted, as this was the first
        mark.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        mark.touch()


@functools.cache
def _versions() -> tuple[str, ...]:
    return version("numba"), version("numpy"), sys.version


def _mark(program: Program) -> Path:
    digest = hashlib.sha256("\n".join((*_versions(), render(program))).encode())
    digest.update(sources_digest())
    return cache_directory() / "warm" / digest.hexdigest()


def cold_start(program: Program, stack: ExitStack) -> Start | None:
    """Let a run begin before its loops are compiled, if they are not in the cache."""
    if not may_interpret(program):
        return None
    start = Start()
    stack.callback(start.over)
    return start
