"""The languages, each translated to the calculus, by the ending of their files.

A language is a function from a `Source` to a verified `Program`, named here as text so
that only the one that is asked for is imported.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path

from millstream.calculus.graph import Program
from millstream.errors import ParseError, UsageError, listing
from millstream.source import Source

LANGUAGES: dict[str, str] = {
    "brook": "millstream.calculus.text:load",
}

#: Languages whose files are not text: a function from a path and a name to a `Program`.
FILE_LANGUAGES: dict[str, str] = {
    "xlsx": "millstream.languages.sheets.translate:load_file",
    "xlsm": "millstream.languages.sheets.translate:load_file",
}


def translate(source: Source, language: str) -> Program:
    """The verified program of a text in a language."""
    module, _, function = LANGUAGES[language].partition(":")
    load: Callable[[Source], Program] = getattr(importlib.import_module(module), function)
    return load(source)


def translate_file(path: Path, name: str | None = None) -> Program:
    """The verified program of a file; its ending tells the language."""
    language = path.suffix.removeprefix(".")
    if language in FILE_LANGUAGES:
        module, _, function = FILE_LANGUAGES[language].partition(":")
        load: Callable[[Path, str | None], Program] = getattr(
            importlib.import_module(module), function
        )
        return load(path, name)
    if language not in LANGUAGES:
        known = listing(f".{ending}" for ending in (*LANGUAGES, *FILE_LANGUAGES))
        raise UsageError(
            f'cannot tell the language of "{name or path}"',
            hint=f"languages are told by the ending of the file: {known}",
        )
    return translate(read_source(path, name), language)


def read_source(path: Path, name: str | None = None) -> Source:
    """A file as text with a name for messages; one clear error if that cannot be."""
    shown = name or str(path)
    try:
        data = path.read_bytes()
        return Source(shown, data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        before = data[: error.start]
        line = before.count(b"\n") + 1
        column = len(before.rpartition(b"\n")[2].decode("utf-8", "replace")) + 1
        raise ParseError(
            f"expected UTF-8, found the byte 0x{data[error.start]:02x}",
            place=f"{shown}:{line}:{column}",
            hint="save the file as UTF-8",
        ) from None
    except OSError as error:
        raise UsageError(f"cannot read this file: {error.strerror}", place=shown) from None
