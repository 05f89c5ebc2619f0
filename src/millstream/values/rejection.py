"""Records that a program itself rejects, told with faults: they are counted by input and reason."""

from __future__ import annotations

_START = "\0rejected\0"


def rejection(input_: str, reason: str) -> str:
    """The fault that stands for a rejected record."""
    return f"{_START}{input_}\0{reason}"


def rejected_in(fault: str) -> tuple[str, str] | None:
    """The input and the reason of a rejected record; None if a fault is none."""
    if not fault.startswith(_START):
        return None
    _, _, input_, reason = fault.split("\0", 3)
    return input_, reason
