"""What can go wrong, one class per stage, and how it is told.

An error carries one or more faults, so that a user sees everything that is wrong at
once. A fault says what happened, where, what was expected and what to do.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from millstream.source import Span

#: What hints say for the command line, and what it is in a call of Python.
_IN_PYTHON = tuple(
    (re.compile(pattern), call)
    for pattern, call in (
        (r"--in ([^\s=]+)=([^\s,;]+)", r'inputs={"\1": "\2"}'),
        (r"--out ([^\s=]+)=([^\s,;]+)", r'outputs={"\1": "\2"}'),
        (r"--unit ([^\s=]+)=(\w+)", r'with_units({"\1": "\2"})'),
        (r"--engine (\w+)", r'engine="\1"'),
        (r"--rebuild\b", "rebuild=True"),
        (r"--relayout\b", "relayout=True"),
        (r"--follow\b", "follow=True"),
    )
)


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong.

    `place` is used where there is no text to point at, such as a Parquet file.
    """

    message: str
    span: Span | None = None
    hint: str | None = None
    place: str | None = field(default=None)

    def render(self) -> str:
        where = self.span.place if self.span else self.place
        lines = [f"{where}: {self.message}" if where else self.message]
        if self.span and self.span.excerpt().strip("^ \n"):
            lines.append(self.span.excerpt())
        if self.hint:
            lines.append(f"    {self.hint}")
        return "\n".join(lines)

    def in_python(self) -> Fault:
        """The same for whoever calls from Python: options of commands are arguments there."""
        hint = self.hint
        for pattern, call in _IN_PYTHON if hint else ():
            hint = pattern.sub(call, hint or "")
        return self if hint == self.hint else replace(self, hint=hint)


class MillstreamError(Exception):
    """The base of everything a user may be told."""

    def __init__(
        self,
        message: str | Fault | Iterable[Fault],
        *,
        span: Span | None = None,
        hint: str | None = None,
        place: str | None = None,
    ) -> None:
        if isinstance(message, str):
            message = Fault(message, span, hint, place)
        self.faults: tuple[Fault, ...] = (
            (message,) if isinstance(message, Fault) else tuple(message)
        )
        # The command line shows the faults themselves.
        super().__init__("\n".join(fault.in_python().render() for fault in self.faults))


class UsageError(MillstreamError):
    """The command line or an API call is wrong: an unknown option, a missing file."""


class SetupError(MillstreamError):
    """The machine lacks something, such as a Java."""


class ProgramError(MillstreamError):
    """The program is wrong; nothing has been started. The base of the next four."""


class ParseError(ProgramError):
    """The text does not follow the grammar."""


class CheckError(ProgramError):
    """The text is well formed but means nothing: an unknown name, a wrong type."""


class UnitError(CheckError):
    """Physical dimensions do not fit."""


class PlanError(ProgramError):
    """A backend cannot run this program."""


class RunError(MillstreamError):
    """Something failed while running: an unreadable file, a full disk."""


class AllRejected(RunError):
    """Not one row of an input could be read, so there is no result."""


class Stopped(MillstreamError):
    """A run that was to come to its end was stopped before it: its result is not there."""


def suggest(name: str, known: Iterable[str]) -> str | None:
    """`Did you mean "price"?`, if there is a near miss."""
    names = list(known)
    lowered = {n.lower(): n for n in names}
    if name.lower() in lowered:
        return f'Did you mean "{lowered[name.lower()]}"?'
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    return f'Did you mean "{close[0]}"?' if close else None


def listing(names: Iterable[str], limit: int = 12) -> str:
    """`a, b, c` or `a, b, ... (40 in all)`; `nothing` for an empty list."""
    all_names = list(names)
    if len(all_names) > limit:
        return ", ".join(all_names[:limit]) + f", ... ({len(all_names)} in all)"
    return ", ".join(all_names) or "nothing"
