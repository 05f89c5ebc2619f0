"""Millstream: streams for people who are not stream-processing programmers.

The calls are loaded when they are used, so that `import millstream` costs nothing.
"""

from __future__ import annotations

import importlib
import sys

TYPE_CHECKING = False  # `typing` is not loaded for a word: what starts can be interrupted sooner
if TYPE_CHECKING:
    from typing import Any

    from millstream.api import Compiled as Compiled
    from millstream.api import compile as compile  # noqa: A004 - the word of the command line
    from millstream.api import compile_flow as compile_flow
    from millstream.finished import Finished as Finished
    from millstream.languages.algebra import Stream as Stream
    from millstream.languages.algebra import Table as Table
    from millstream.languages.algebra import call as call
    from millstream.languages.algebra import if_ as if_
    from millstream.languages.algebra import relation as relation
    from millstream.languages.algebra import stream as stream
    from millstream.languages.algebra import table as table
    from millstream.languages.algebra import when as when
    from millstream.live import Live as Live

__version__ = "0.1.0"

_EXPORTS = {
    "Compiled": "millstream.api",
    "compile": "millstream.api",
    "compile_flow": "millstream.api",
    "Finished": "millstream.finished",
    "Live": "millstream.live",
    **dict.fromkeys(
        ("Stream", "Table", "call", "if_", "relation", "stream", "table", "when"),
        "millstream.languages.algebra",
    ),
}

# Walks over terms are recursive. The parser admits trees of 1,000 levels, each of which
# may take several Python frames; Python's own limit of 1,000 frames would break first.
sys.setrecursionlimit(max(sys.getrecursionlimit(), 20_000))


def __getattr__(name: str) -> Any:
    if name in ("algebra", "rules", "sheets", "streamit"):
        return importlib.import_module(f"millstream.{name}")
    if name in _EXPORTS:
        return getattr(importlib.import_module(_EXPORTS[name]), name)
    raise AttributeError(f"module 'millstream' has no attribute {name!r}")
