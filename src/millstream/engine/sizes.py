"""How much there is of each input, as far as can be told before it is read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from millstream.calculus.graph import Input
from millstream.connectors.location import Format, Location, file_names_now
from millstream.errors import MillstreamError, UsageError

#: In bytes, if nothing is known: of a table that is read once, of a relation, of a stream.
_TABLE, _RELATION, _STREAM = 1 << 20, 1 << 24, 1 << 26
#: A row that is in no file, and how many bytes of text a compressed byte stands for.
_ROW_BYTES = 32
_COMPRESSED = 4


def measured(
    inputs: Iterable[Input], locations: Mapping[str, Location], *, is_following: bool = False
) -> dict[str, float]:
    """The size of each input in bytes of text, measured where that can be done."""
    return {
        input_.name: _size(input_, locations.get(input_.name), is_following=is_following)
        for input_ in inputs
    }


def measured_where(
    inputs: Iterable[Input], located: Callable[[Input], Mapping[str, Location]]
) -> dict[str, float]:
    """The same where some inputs may not be given yet."""
    known: dict[str, Location] = {}
    given = tuple(inputs)
    for one in given:
        with suppress(UsageError):
            known |= located(one)
    return measured(given, known)


def rows_in(sizes: Mapping[str, float]) -> dict[str, float]:
    """About how many rows these are."""
    return {name: size / _ROW_BYTES for name, size in sizes.items()}


def _size(input_: Input, location: Location | None, *, is_following: bool) -> float:
    if input_.values is not None:
        return float(_ROW_BYTES * len(input_.values))
    unknown = _TABLE if input_.is_read_once else _RELATION if input_.type.is_relation else _STREAM
    now = None if location is None else _at(location)
    if now is None:
        return float(unknown)
    # What is followed grows; a table does not.
    return max(now, unknown) if is_following and not input_.is_read_once else now


def _at(location: Location) -> float | None:
    if location.generator is not None:
        return float(_ROW_BYTES * location.generator.rows)
    if not location.is_at_hand:
        return None
    try:
        files = [Path(name) for name in file_names_now(location)]
        total = sum(_COMPRESSED * f.stat().st_size if _is_compressed(location, f)
                    else f.stat().st_size for f in files)  # fmt: skip
    except (MillstreamError, OSError):
        return None  # told by whoever reads it
    return float(total)


def _is_compressed(location: Location, file: Path) -> bool:
    return file.suffix == ".gz" or location.of_file(file).format is Format.PARQUET
