"""Pieces of Parquet: whole row groups, or rows of one that is too large."""

from __future__ import annotations

import math
import os
from pathlib import Path

from millstream.connectors.read_parquet import group_rows, read_footer
from millstream.connectors.window import shorter, unreadable

#: The first and last bytes of a finished file; the other is of one that is encrypted.
_MAGIC = (b"PAR1", b"PARE")
_SMALLEST = 12


def next_rows(
    path: Path, name: str, first: int, most: int, *, final: bool
) -> tuple[int, int] | None:
    """The last row of a piece that begins at `first`, and its bytes."""
    if not final and not _has_end(path, name):
        return None
    metadata, _ = read_footer(path, name)
    groups = group_rows(metadata, name)
    if metadata.num_rows < first:
        raise shorter(name)
    if metadata.num_rows == first:
        return None
    # What columns take in the file is not asked for: in a damaged file that ends the process
    # (pyarrow 26).
    weights = [max(0, metadata.row_group(g).total_byte_size) for g in range(len(groups))]
    share = path.stat().st_size / max(1, sum(weights))
    return _cut(groups, [w * share for w in weights], first, max(1, most))


def _has_end(path: Path, name: str) -> bool:
    """Whether the file has been written to its end."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - 4))
            return size >= _SMALLEST and file.read(4) in _MAGIC
    except OSError as error:
        raise unreadable(name, error) from None


def _cut(rows: list[int], sizes: list[float], first: int, most: int) -> tuple[int, int]:
    """Row groups as long as they fit; one of equal parts of the first if it does not."""
    end, last, taken = 0, first, 0.0
    for count, size in zip(rows, sizes, strict=True):
        end += count
        if end <= last:
            continue
        left = size * (end - last) / count
        if last == first and left > most:
            last += math.ceil((end - first) / math.ceil(left / most))
            return last, max(1, round(size * (last - first) / count))
        if taken + left > most:
            break
        last, taken = end, taken + left
    return last, max(1, round(taken))
