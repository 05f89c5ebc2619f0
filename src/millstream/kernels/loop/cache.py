"""Compiled functions, kept on disk so that a second start compiles nothing.

    <cache>/kernels/<digest>.py      the generated source, which numba keeps its files by
    <cache>/kernels/<digest>.sum     a checksum of what numba has kept

The digest covers the source, the versions of everything that compiles it, and the
functions that are compiled into it. Files are written beside their place and renamed, so
that several processes may start at once. If anything at all is wrong with the folder or
with what is in it, the function is compiled in memory: a cache must never be the reason
that a run fails.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.abc
import importlib.util
import os
import sys
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from millstream.cache import cache_directory, digest_of_parts

#: One compilation at a time: numba's lock is not held while modules are made.
_lock = threading.Lock()


@functools.cache
def _toolchain() -> bytes:
    """Everything besides the source that the compiled code depends on."""
    import llvmlite
    import numba
    import numpy as np

    import millstream

    versions = (millstream.__version__, numba.__version__, llvmlite.__version__,
                np.__version__, sys.version)  # fmt: skip
    return "\n".join(versions).encode()


@functools.cache
def compiled(source: str) -> Any:
    """The function `run` of a generated source, compiled for its `SIGNATURE`."""
    # It says where numba is to keep its files, and must come before numba.
    import millstream.compiled  # noqa: F401

    digest = hashlib.sha256(source.encode() + _toolchain() + digest_of_parts(source)).hexdigest()
    with _lock:
        try:
            return _from_disk(source, digest)
        except Exception:  # noqa: BLE001  whatever is wrong with the cache, run without it
            return _in_memory(source, digest)


def _from_disk(source: str, digest: str) -> Any:
    folder = cache_directory() / "kernels"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = folder / f"{digest}.py"
    _write_once(path, source.encode())
    module = _module(source, digest, str(path))
    dispatcher = _dispatcher(module, folder)
    kept = Path(dispatcher.stats.cache_path)
    checksum = path.with_suffix(".sum")
    if not _is_sound(kept, digest, checksum):
        for file in _kept_files(kept, digest):
            file.unlink(missing_ok=True)
    _compile_once(dispatcher, module)
    if sum(dispatcher.stats.cache_misses.values()):
        _write(checksum, _checksum(_kept_files(kept, digest)))
    return dispatcher


def _in_memory(source: str, digest: str) -> Any:
    module = _module(source, digest, f"<kernel {digest[:12]}>")
    dispatcher = _dispatcher(module, None)
    _compile_once(dispatcher, module)
    return dispatcher


def _compile_once(dispatcher: Any, module: ModuleType) -> None:
    dispatcher.compile(module.SIGNATURE)
    dispatcher.disable_compile()  # arrays of another kind are converted, not compiled for


def _dispatcher(module: ModuleType, folder: Path | None) -> Any:
    """The function, not compiled yet; numba is to keep the compiled code in the folder."""
    import numba

    from millstream.compiled import kept

    config: Any = numba.config
    njit: Any = numba.njit
    before = config.CACHE_DIR
    # The folder of other loops is named after their contents, on which kernels do not depend.
    config.CACHE_DIR = str(folder or "")
    try:
        # A module may say that it makes no arrays, so that none are counted.
        more = {} if getattr(module, "MAKES_ARRAYS", True) else {"_nrt": False}
        function = njit(nogil=True, error_model="numpy", boundscheck=False, **more)(module.run)
        return function if folder is None else kept(function)
    finally:
        config.CACHE_DIR = before


# --- modules ----------------------------------------------------------------------------


class _Loader(importlib.abc.SourceLoader):
    """Loads a module from memory that says it stands in a file, for numba to keep by."""

    def __init__(self, source: str, path: str) -> None:
        self.source = source
        self.path = path

    def get_filename(self, fullname: str) -> str:
        return self.path

    def get_data(self, path: str) -> bytes:
        if path != self.path:  # Python asks for its bytecode too
            raise OSError(path)
        return self.source.encode()


def plain_module(source: str, path: str, names: Mapping[str, Any]) -> ModuleType:
    """A generated source as a module that nobody compiles, and that knows some names."""
    spec = importlib.util.spec_from_loader("millstream_script", _Loader(source, path))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    module.__dict__.update(names)
    spec.loader.exec_module(module)
    return module


def _module(source: str, digest: str, path: str) -> ModuleType:
    name = f"millstream_kernel_{digest[:24]}"
    spec = importlib.util.spec_from_loader(name, _Loader(source, path))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # numba looks modules up by name
    spec.loader.exec_module(module)
    return module


# --- files ------------------------------------------------------------------------------


def _write_once(path: Path, data: bytes) -> None:
    """Write a file unless it is there; its time is always the same.

    Numba takes a file of another time for another file, and processes that start at once
    each write it.
    """
    try:
        if path.read_bytes() == data and path.stat().st_mtime == 0:
            return
    except FileNotFoundError:
        pass
    _write(path, data)


def _write(path: Path, data: bytes) -> None:
    number, name = tempfile.mkstemp(dir=path.parent, prefix=path.stem[:12], suffix=".tmp")
    try:
        with os.fdopen(number, "wb") as file:
            file.write(data)
        os.utime(name, (0, 0))
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _kept_files(folder: Path, digest: str) -> list[Path]:
    return sorted(folder.glob(f"{digest}.*.nb?"))


@functools.lru_cache(maxsize=1)
def _listed(folder: Path, _changed: int) -> dict[str, list[Path]]:
    """The files that numba keeps by their digests: a folder of thousands is gone through once."""
    listed: dict[str, list[Path]] = {}
    for name in sorted(os.listdir(folder)):  # noqa: PTH208 - paths of all would take long
        if name.endswith((".nbi", ".nbc")):
            listed.setdefault(name.partition(".")[0], []).append(folder / name)
    return listed


def _files_by_list(folder: Path, digest: str) -> list[Path]:
    """As `_kept_files`, but what was written this very moment may be missing."""
    return _listed(folder, folder.stat().st_mtime_ns).get(digest, []) if folder.is_dir() else []


def _checksum(files: list[Path]) -> bytes:
    checksum = hashlib.sha256()
    for file in files:
        checksum.update(file.name.encode() + file.read_bytes())
    return checksum.hexdigest().encode()


def _is_sound(folder: Path, digest: str, checksum: Path) -> bool:
    """Is what numba has kept what it wrote? It would run whatever it finds there."""
    try:
        expected = checksum.read_bytes()
        if expected == _checksum(_files_by_list(folder, digest)):
            return True
        return expected == _checksum(_kept_files(folder, digest))
    except FileNotFoundError:
        return not _kept_files(folder, digest)
