"""Misspelt keys in JSON Lines: where a column is missing and something like it is there.

A row may lack a key, which is then null. But a file whose first rows all lack a declared
column, and have a key that is nearly it, has the other name; that is told before the run.
"""

from __future__ import annotations

import itertools
import json
from typing import BinaryIO

from millstream.calculus.graph import Input
from millstream.connectors.layout import layout_of_objects
from millstream.errors import CheckError, Fault, listing, suggest

SAMPLE_ROWS = 50
SAMPLE_BYTES = 1 << 16


def check_keys(stream: BinaryIO, name: str, input_: Input) -> None:
    """Raise a `CheckError` if the first rows plainly have other names."""
    lines = stream.read(SAMPLE_BYTES).split(b"\n")[:-1] or [b""]
    keys: dict[str, None] = {}
    for line in itertools.islice(lines, SAMPLE_ROWS):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            continue  # the reader rejects it with its reason
        if isinstance(row, dict):
            keys.update(dict.fromkeys(row))
    declared = layout_of_objects(input_).names
    strange = [key for key in keys if key not in declared]
    faults = []
    for column in declared:
        near = suggest(column, strange)
        if column not in keys and near is not None:
            hint = f"its first rows have: {listing(keys)}. {near}"
            message = f'no "{column}", which input "{input_.name}" declares'
            faults.append(Fault(message, None, hint, name))
    if faults:
        raise CheckError(faults)
