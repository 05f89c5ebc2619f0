"""Where things are kept that can be made again: compiled code, a Java shim."""

from __future__ import annotations

import functools
import hashlib
import os
import re
from collections.abc import Iterable
from pathlib import Path

_ROOT = Path(__file__).parent
#: The folders and modules whose code is compiled, or whose numbers are compiled into it, and
#: which belong to what is kept.
COMPILED = tuple(
    _ROOT / place
    for place in ("compiled.py", "lending.py", "words64.py", "blocks64.py", "kernels", "connectors",
                  "values/excel/rounding.py", "values/excel/functions_financial.py",
                  "values/excel/functions_math.py", "values/excel/distributions.py",
                  "values/excel/incomplete.py", "values/excel/normal.py",
                  "calculus/aggregation.py", "calculus/sketches.py")
)  # fmt: skip


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


def digest_of_parts(source: str) -> bytes:
    """The contents of what a generated source is compiled with: what it imports, and so on.

    So a change in one room leaves what was compiled of others as it is.
    """
    return _contents(_reached(_imported(source)))


@functools.cache
def digest_of_file(path: Path) -> bytes:
    """The contents of a file of `COMPILED` and of what it is compiled with."""
    return _contents(_reached([path]))


def _contents(paths: Iterable[Path]) -> bytes:
    digest = hashlib.sha256()
    for path in sorted(paths):
        digest.update(_content(path))
    return digest.digest()


@functools.cache
def _content(path: Path) -> bytes:
    return hashlib.sha256(path.read_bytes()).digest()


def _reached(start: Iterable[Path]) -> set[Path]:
    reached: set[Path] = set()
    ahead = [_ROOT / "compiled.py", *start]
    while ahead:
        path = ahead.pop()
        if path not in reached:
            reached.add(path)
            ahead += _imported_by(path)
    return reached


@functools.cache
def _imported_by(path: Path) -> frozenset[Path]:
    return _imported(path.read_text(encoding="utf-8"))


_IMPORT = re.compile(r"^\s*(?:from|import) millstream\.([\w.]+)", re.MULTILINE)


def _imported(source: str) -> frozenset[Path]:
    """The files of `COMPILED` that a source names in its imports."""
    compiled = set()
    for place in _IMPORT.findall(source):
        home = _ROOT.joinpath(*place.split("."))
        # What is taken from a package may be modules of any name.
        files = home.glob("*.py") if home.is_dir() else [home.with_suffix(".py")]
        compiled |= {file for file in files if file.is_file() and _is_compiled(file)}
    return frozenset(compiled)


def _is_compiled(file: Path) -> bool:
    return any(file.is_relative_to(place) for place in COMPILED)
