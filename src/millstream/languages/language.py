"""What a language is to the rest of the house: one record, and what it makes of a file.

    read       a file, and what a project says of it  -> `Written`, or all that is wrong with it
    wants      the streams whose columns it must be told; promises: the streams it will give
    translate  with the types of these -> `Translation`: a verified program, and what goes with it

Functions are named as text (`module:function`), so that only the language that is asked for
is imported.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol

from millstream.calculus.graph import Program
from millstream.calculus.types import QueueType
from millstream.errors import Fault, ParseError, UsageError
from millstream.source import Source


@dataclass(frozen=True, slots=True)
class Expected:
    """A text that should stand in some columns of inputs, and what to say if it does not."""

    value: str
    #: Pairs of an input and a column.
    columns: tuple[tuple[str, str], ...]
    fault: Fault


#: The locations of inputs for so many rounds of a program, or for all.
Rounds = Callable[[int | None], Mapping[str, str]]


#: What of the inputs nothing was made of, once so many rows of each have come.
Leftovers = Callable[[Mapping[str, int]], tuple[Fault, ...]]


@dataclass(frozen=True, slots=True)
class Translation:
    """A verified program, and the locations that its text gives inputs and outputs.

    `notes` say what became of the text on the way, for `explain`; `warnings` what is odd
    in it; `expected` what will be odd if the inputs do not have it. A program that goes round
    by itself has `rounds`: the locations of its inputs for so many rounds, or for all. One that
    takes several rows at once tells the `leftovers` of inputs that have ended.
    """

    program: Program
    sources: Mapping[str, str] = field(default_factory=dict)
    sinks: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    warnings: tuple[Fault, ...] = ()
    expected: tuple[Expected, ...] = ()
    rounds: Rounds | None = None
    leftovers: Leftovers | None = None
    #: Outputs that go nowhere unless somebody asks for them.
    aside: tuple[str, ...] = ()
    #: What is known of its columns before it runs, in lines, if it is more than their types.
    types: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Want:
    """A stream that is read; `is_needed` if nothing but the project can tell its columns."""

    stream: str
    is_needed: bool


class Written(Protocol):
    """A file that has been read, and can be translated once the columns it wants are known."""

    @property
    def wants(self) -> tuple[Want, ...]: ...

    @property
    def promises(self) -> tuple[str, ...]: ...

    def translate(self, types: Mapping[str, QueueType]) -> Translation:
        """What it means; the `types` of what can be read are in the order of declaration."""


@dataclass(frozen=True, slots=True)
class Option:
    """An option of a command that is one language's own.

    One with a `view` makes the command show that instead: a function of the parsed arguments,
    the inputs by name and what compiles the program, to what is shown, or to None if it has
    shown it itself. One that `sets` something is another word for what every program may have,
    or for a name of its own language.
    """

    command: str
    flags: tuple[str, ...]
    help: str
    metavar: str | None = None
    view: str | None = None
    sets: Literal["rounds", "name"] | None = None

    @property
    def name(self) -> str:
        return self.flags[0].removeprefix("--")


#: No name has a value.
NO_NAMES: Mapping[str, str] = {}


class Shown(Protocol):
    """What a view has to show, in words and for programs."""

    def text(self) -> str: ...

    def records(self) -> list[dict[str, object]]: ...


@dataclass(frozen=True, slots=True)
class Language:
    """All that is known of a language outside its folder.

    A language of texts has `load`, from a `Source` to a `Translation`; one of other files has
    `read`, from a path, its name in messages and settings to a `Written`. `word` is the key of
    its nodes in a project, where `settings` reads what the table of a node says beyond names
    (the further keys in `node_keys`).
    """

    name: str
    endings: tuple[str, ...]
    word: str
    load: str | None = None
    read: str | None = None
    settings: str | None = None
    node_keys: tuple[str, ...] = ()
    #: The section that has nodes of this language only, and its key for the file.
    section: tuple[str, str] | None = None
    #: Whether its files may have names whose values are set from outside.
    takes_names: bool = False
    #: Whether its settings say how nodes of a project name their inputs and outputs.
    names_itself: bool = False
    #: Whether what a program says about files is meant from its own folder, in projects too.
    sees_own_folder: bool = False
    #: How a text is read that is served by a broker, if streams and views are what it has.
    served: str | None = None
    options: tuple[Option, ...] = ()

    def written(
        self, path: Path, shown: str, settings: object = None, names: Mapping[str, str] = NO_NAMES
    ) -> Written:
        """A file, read; all of its faults are told together."""
        if self.read is None:
            return _Text(self, read_source(path, shown))
        given = (settings, names) if self.takes_names else (settings,)
        written: Written = function_named(self.read)(path, shown, *given)
        return written

    def translated(self, source: Source) -> Translation:
        """What a text means."""
        if self.load is None:
            raise UsageError(f"{self.name} are files, not texts", hint="give the file instead")
        translation: Translation = function_named(self.load)(source)
        return translation


@dataclass(frozen=True, slots=True)
class _Text:
    """A text says all about its streams itself."""

    language: Language
    source: Source
    wants: tuple[Want, ...] = ()
    promises: tuple[str, ...] = ()

    def translate(self, types: Mapping[str, QueueType]) -> Translation:
        return self.language.translated(self.source)


class Expression(Protocol):
    """A stream or a table written in Python; nothing runs before a program is made of it."""

    #: From outputs by name to their verified program, as `module:function`.
    builder: ClassVar[str]


def program_of(outputs: Mapping[str, Expression]) -> Program:
    """The program whose outputs are some expressions."""
    for name, one in outputs.items():
        if not hasattr(one, "builder"):
            hint = "build it with millstream.stream or millstream.table"
            raise UsageError(f"{name} is no stream or table, but {one!r}", hint=hint)
    if not outputs:
        raise UsageError("a program needs an output", hint="write compile_flow(name=stream)")
    builder = next(iter(outputs.values())).builder
    program: Program = function_named(builder)(**outputs)
    return program


def function_named(name: str) -> Callable[..., Any]:
    """The function that `module:function` names."""
    module, _, function = name.partition(":")
    called: Callable[..., Any] = getattr(importlib.import_module(module), function)
    return called


def beside(source: Source) -> Callable[[str], Source]:
    """What reads files that a text names: they lie in its folder."""
    return lambda name: read_source(Path(source.name).parent / name)


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
