"""The languages, each translated to the calculus, by the ending of their files.

A language is a function from a `Source` to a verified `Program`, or to a `Translation`
if its files can also say where data comes from and goes to. It is named here as text so
that only the one that is asked for is imported.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from millstream.calculus.graph import Program
from millstream.errors import Fault, ParseError, UsageError, listing
from millstream.source import Source

LANGUAGES: dict[str, str] = {
    "brook": "millstream.calculus.text:load",
    "cql": "millstream.languages.cql.load:load",
    "rules": "millstream.languages.rules.load:load",
}

#: Languages whose files are not text: a function from a path and a name to a `Program`.
FILE_LANGUAGES: dict[str, str] = {
    "xlsx": "millstream.languages.sheets.translate:load_file",
    "xlsm": "millstream.languages.sheets.translate:load_file",
}


@dataclass(frozen=True, slots=True)
class Expected:
    """A text that should stand in some columns of inputs, and what to say if it does not."""

    value: str
    #: Pairs of an input and a column.
    columns: tuple[tuple[str, str], ...]
    fault: Fault


@dataclass(frozen=True, slots=True)
class Translation:
    """A verified program, and the locations that its text gives inputs and outputs.

    `notes` say what became of the text on the way, for `explain`; `warnings` what is odd
    in it; `expected` what will be odd if the inputs do not have it.
    """

    program: Program
    sources: Mapping[str, str] = field(default_factory=dict)
    sinks: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    warnings: tuple[Fault, ...] = ()
    expected: tuple[Expected, ...] = ()


def translate(source: Source, language: str) -> Translation:
    """What a text in a language means."""
    module, _, function = LANGUAGES[language].partition(":")
    load: Callable[[Source], Program | Translation] = getattr(
        importlib.import_module(module), function
    )
    found = load(source)
    return found if isinstance(found, Translation) else Translation(found)


def translate_file(path: Path, name: str | None = None) -> Translation:
    """What a file means; its ending tells the language."""
    language = path.suffix.removeprefix(".")
    if language in FILE_LANGUAGES:
        module, _, function = FILE_LANGUAGES[language].partition(":")
        load: Callable[[Path, str | None], Program] = getattr(
            importlib.import_module(module), function
        )
        return Translation(load(path, name))
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
