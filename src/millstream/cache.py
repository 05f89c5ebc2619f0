"""Where things are kept that can be made again: compiled code, a Java shim."""

from __future__ import annotations

import os
from pathlib import Path


def cache_directory() -> Path:
    """`MILLSTREAM_CACHE`, or `millstream` in the user's cache folder."""
    own = os.environ.get("MILLSTREAM_CACHE")
    if own:
        return Path(own)
    shared = os.environ.get("XDG_CACHE_HOME")
    return (Path(shared) if shared else Path("~/.cache").expanduser()) / "millstream"
