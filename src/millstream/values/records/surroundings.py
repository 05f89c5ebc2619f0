"""Functions that look outside of the program: files of the project and the environment."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from millstream.values.records.intrinsic import Intrinsic, RecordSurroundings, Signature, fixed
from millstream.values.records.types import BYTES, STRING
from millstream.values.undefined import Undefined

#: What the name of a file goes through that every emit gives.
FILE_NAME = "_file_name"


def inside(folder: Path | None, name: str) -> Path | None:
    """The file of this name, if it lies in the folder; links out of it do not count."""
    if folder is None:
        return None
    root = folder.resolve()
    path = (root / name).resolve()
    return path if path.is_relative_to(root) else None


def _load(settings: RecordSurroundings, signature: Signature) -> Callable[[str], bytes]:
    def load(name: str) -> bytes:
        path = inside(settings.folder, name)
        if path is None:
            raise Undefined(f"load: {name!r} lies outside of the project's folder")
        try:
            return path.read_bytes()
        except OSError as error:
            raise Undefined(f"load: {name!r}: {error.strerror}") from None

    return load


def _getenv(settings: RecordSurroundings, signature: Signature) -> Callable[[str], str]:
    def getenv(name: str) -> str:
        if name not in settings.environment:
            raise Undefined(f"getenv: {name!r} is not set")
        return settings.environment[name]

    return getenv


def _file_name(settings: RecordSurroundings, signature: Signature) -> Callable[[str], str]:
    folder = settings.folder or Path()

    def named(name: str) -> str:
        path = None if "\0" in name else inside(folder, name)
        if path is None:
            raise Undefined(f"{name!r} lies outside of the project's folder")
        if not path.parent.is_dir() or path.is_dir() or name.endswith("/"):
            raise Undefined(f"{name!r} cannot be the name of a file here")
        return name

    return named


SURROUNDINGS: tuple[Intrinsic, ...] = (
    Intrinsic("load", "load(file)", fixed(STRING, result=BYTES), _load, pure=False),
    Intrinsic(FILE_NAME, "_file_name(name)", fixed(STRING, result=STRING), _file_name, pure=False),
    Intrinsic("getenv", "getenv(name)", fixed(STRING, result=STRING), _getenv, pure=False),
)
