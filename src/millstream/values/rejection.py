"""Records that a program itself rejects, told with faults: counted by input, reason and text."""

from __future__ import annotations

from collections import Counter
from collections.abc import MutableMapping

_START = "\0rejected\0"
#: So many different rejected records are kept with their texts, and so much of a text;
#: further ones are counted by their reasons, of which so many are told apart.
MOST_TEXTS, LONGEST_TEXT, MOST_REASONS = 1000, 1000, 200
_OTHER_REASONS = "for other reasons"


def rejection(input_: str, reason: str, text: str = "") -> str:
    """The fault that stands for a rejected record."""
    return f"{_START}{input_}\0{reason}\0{text}"


def rejected_in(fault: str) -> tuple[str, str, str] | None:
    """The input, the reason and the text of a rejected record; None if a fault is none."""
    if not fault.startswith(_START):
        return None
    _, _, input_, reason, text = fault.split("\0", 4)
    return input_, reason, text


def count_rejected(faults: Counter[str], input_: str, reason: str, record: bytes) -> None:
    """One rejected record more; what is kept of them stays small."""
    text = record.decode("utf-8", "replace")[:LONGEST_TEXT]
    add_fault(faults, rejection(input_, reason, text), 1)


def add_fault(faults: MutableMapping[str, int], fault: str, count: int) -> None:
    """A fault that has come up so often; of rejected records what is kept stays small."""
    parts = rejected_in(fault)
    ways = [(fault, len(faults) + 1)]
    if parts is not None:
        input_, reason, _ = parts
        ways = [
            (fault, MOST_TEXTS),
            (rejection(input_, reason), MOST_TEXTS + MOST_REASONS),
            (rejection(input_, _OTHER_REASONS), len(faults) + 1),
        ]
    for one, most in ways:
        if one in faults or len(faults) < most:
            faults[one] = faults.get(one, 0) + count
            return
