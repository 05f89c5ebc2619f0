"""What a program expects to stand in its inputs, and does not: known once they can be read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import replace

from millstream.calculus.types import Value
from millstream.connectors.chunks import Reader
from millstream.errors import Fault, MillstreamError, listing, suggest
from millstream.languages.language import Expected


def unmet(expected: Iterable[Expected], opened: Callable[[str], Reader | None]) -> Iterator[Fault]:
    """A fault for each text that is in none of its columns.

    Of an input that cannot be read nothing is known, so nothing is missed in it: what is
    wrong with it is for the run to say.
    """
    wanted = list(expected)
    columns: dict[str, set[str]] = {}
    for one in wanted:
        for name, column in one.columns:
            columns.setdefault(name, set()).add(column)
    contents: dict[tuple[str, str], set[Value]] = {}
    for name, some in columns.items():
        with suppress(MillstreamError):
            reader = opened(name)
            if reader is not None:
                contents |= {(name, c): values for c, values in _read(reader, some).items()}
    for one in wanted:
        if any(place not in contents for place in one.columns):
            continue
        known = {str(v) for place in one.columns for v in contents[place] if v is not None}
        if one.value not in known:
            near = suggest(one.value, known) or ""
            hint = f"there are: {listing(sorted(known))}. {near}" if known else "there are none"
            yield replace(one.fault, hint=hint.strip())


def _read(reader: Reader, columns: Iterable[str]) -> dict[str, set[Value]]:
    contents: dict[str, set[Value]] = {column: set() for column in columns}
    with closing(reader):
        for chunk in reader.chunks():
            for column, values in contents.items():
                values.update(chunk.batch.column(column).to_list())
    return contents
