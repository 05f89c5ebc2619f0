"""Where things are kept that can be made again: compiled code, a Java shim."""

from __future__ import annotations

import functools
import hashlib
import os
from pathlib import Path

_ROOT = Path(__file__).parent
#: The folders and modules whose code is compiled, and belongs to what is kept.
COMPILED = tuple(
    _ROOT / place for place in ("compiled.py", "kernels", "connectors", "values/excel/rounding.py")
)


def cache_directory() -> Path:
    """`MILLSTREAM_CACHE`, or `millstream` in the user's cache folder."""
    own = os.environ.get("MILLSTREAM_CACHE")
    if own:
        return Path(own)
    shared = os.environ.get("XDG_CACHE_HOME")
    return (Path(shared) if shared else Path("~/.cache").expanduser()) / "millstream"


def _sources() -> list[Path]:
    return [
        path
        for place in COMPILED
        for path in (sorted(place.rglob("*.py")) if place.is_dir() else [place])
    ]


@functools.cache
def sources_digest() -> bytes:
    """The contents of everything that compiled code may be made of."""
    digest = hashlib.sha256()
    for path in _sources():
        digest.update(path.read_bytes())
    return digest.digest()


@functools.cache
def sources_stamp() -> bytes:
    """Where all that lies and when it was last written: Numba finds what it keeps by both."""
    newest = max(path.stat().st_mtime_ns for path in _sources())
    return f"{_ROOT} {newest}".encode()
