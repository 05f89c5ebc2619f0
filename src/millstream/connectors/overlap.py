"""Outputs that would spoil one another or the inputs, told before anything is opened."""

from __future__ import annotations

import fnmatch
import glob
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from millstream.connectors.location import Location, files_now, format_of
from millstream.errors import Fault, UsageError

_STANDARD = "standard output"


def refuse_overlaps(
    inputs: Mapping[str, Location],
    outputs: Mapping[str, Location],
    *,
    is_following: bool = False,
    checkpoint: str | Path | None = None,
) -> None:
    """Raise a `UsageError` with every output, or checkpoint, that has no place of its own."""
    faults = [] if checkpoint is None else _kept_among(Path(checkpoint), inputs, outputs)
    seen: dict[str, str] = {}
    for name, location in outputs.items():
        place = _place(location, name)
        if place is None:
            continue
        if place in seen:
            faults.append(_fault(name, location, f'as output "{seen[place]}" does'))
        elif location.path is not None and location.database is None:
            folder = _folder_among(location, name, outputs)
            if folder is not None:
                faults.append(_fault(name, location, f'which output "{folder}" fills'))
            faults += _spoilt(name, location, inputs, is_following=is_following)
        seen.setdefault(place, name)
    if faults:
        raise UsageError(faults)


def _kept_among(
    checkpoint: Path, inputs: Mapping[str, Location], outputs: Mapping[str, Location]
) -> list[Fault]:
    """What is said of a checkpoint in the place of an input or an output."""
    place = _identity(Path(os.path.realpath(checkpoint)))
    named = [("input", *one) for one in inputs.items()]
    named += [("output", *one) for one in outputs.items()]
    return [
        Fault(f'the checkpoint has the place of {kind} "{name}"', None,
              "give it a folder of its own", str(checkpoint))
        for kind, name, location in named
        if location.database is None and location.path is not None
        and _identity(Path(os.path.realpath(location.path))) == place
    ]  # fmt: skip


def _fault(name: str, location: Location, why: str) -> Fault:
    place = location.text or _STANDARD
    what = "into this folder, " if why.startswith("which") else "to the same place "
    return Fault(f'output "{name}" goes {what}{why}', None, "give each a place of its own", place)


def _place(location: Location, output: str) -> str | None:
    """What two outputs must not have in common; None if they may (a device, a pipe)."""
    if location.database is not None:
        database = location.database
        where = {k: v for k, v in database.settings.items() if k in ("host", "port", "dbname")}
        return f"{sorted(where.items())} {database.schema} {database.table or output}"
    if location.by is not None:
        return None  # only rows tell the files
    if location.path is None:
        return _STANDARD
    path = Path(os.path.realpath(location.path))
    if path.exists() and not path.is_file() and not path.is_dir():
        return None
    return _identity(path)


def _identity(path: Path) -> str:
    """The same for every name of a file, links included."""
    try:
        status = path.stat()
    except OSError:
        return str(path)
    return f"{status.st_dev}:{status.st_ino}"


def _folder_among(location: Location, output: str, outputs: Mapping[str, Location]) -> str | None:
    """An output that is the folder in which this one lies."""
    assert location.path is not None
    parent = _identity(Path(os.path.realpath(location.path)).parent)
    for name, other in outputs.items():
        if name != output and other.is_folder and other.path is not None:
            if _identity(Path(os.path.realpath(other.path))) == parent:
                return name
    return None


def _spoilt(
    name: str, location: Location, inputs: Mapping[str, Location], *, is_following: bool
) -> Iterator[Fault]:
    for source, where in inputs.items():
        if where.is_at_hand and _is_read(location, where, is_following=is_following):
            yield Fault(
                f'output "{name}" would be written to what input "{source}" is read from',
                None,
                "give it a file that the input does not take, in another folder",
                location.text,
            )


def _is_read(location: Location, source: Location, *, is_following: bool) -> bool:
    """Whether an input takes a file that an output makes, now or in its next run."""
    assert location.path is not None
    assert source.path is not None
    target = Path(os.path.realpath(location.path))
    if _identity(target) in {_identity(path) for path in files_now(source)}:
        return True
    if location.is_folder:
        return _takes(source, target / f"part-000000000.{location.format_of_parts.value}")
    name, dot, ending = target.name.partition(".")
    numbered = target.with_name(f"{name}-000001{dot}{ending}")
    return _takes(source, target) or (is_following and _takes(source, numbered))


def _takes(source: Location, made: Path) -> bool:
    """Whether a folder or a pattern would take a file of this name."""
    path = source.path
    assert path is not None
    if path.is_dir():
        is_format = format_of(made.name) is source.format
        return is_format and _identity(made.parent) == _identity(Path(os.path.realpath(path)))
    if path.exists() or not glob.has_magic(str(path)):
        return Path(os.path.realpath(path)) == made
    fixed = Path(*_fixed_parts(path))
    base = Path(os.path.realpath(fixed))
    if not made.is_relative_to(base):
        return False
    pattern = path.parts[len(fixed.parts) :]
    return _matches(made.relative_to(base).parts, pattern)


def _fixed_parts(path: Path) -> Iterator[str]:
    for part in path.parts:
        if glob.has_magic(part):
            return
        yield part


def _matches(parts: tuple[str, ...], pattern: tuple[str, ...]) -> bool:
    """As `glob` does: `**` is any number of folders, a star never a leading dot."""
    if not pattern:
        return not parts
    first, *rest = pattern
    if first == "**":
        return any(_matches(parts[n:], tuple(rest)) for n in range(len(parts) + 1))
    if not parts or (parts[0].startswith(".") and not first.startswith(".")):
        return False
    return fnmatch.fnmatchcase(parts[0], first) and _matches(parts[1:], tuple(rest))
