"""What is known of every view before anything runs, as `explain --stage types` prints it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from millstream.languages.smile.cells import FALSE, TRUE, Cell, View
from millstream.languages.smile.extent import MAXTIME
from millstream.languages.smile.ranges import can_be_bounded
from millstream.values.instants import render_time


def types_text(until: Mapping[str, int], views: Sequence[View]) -> tuple[str, ...]:
    """A line for each view, and one for each of its columns."""
    lines: list[str] = []
    for view in views:
        lines.append(f"{view.name}{_rows(view)}")
        lines += [f"    {_column(cell, view)}" for cell in view.cells]
        lines.append(f"    mask: {_mask(view)}")
    ends = [f"{name} until {render_time(time)}" for name, time in until.items()]
    lines.append(f"{MAXTIME}: the ticks of a stream; {', '.join(ends) or 'no stream ends'}")
    return tuple(lines)


def _rows(view: View) -> str:
    if view.as_of is not None:
        return f": as of the horizon, for there is no rule for {view.as_of}"
    return f" by {', '.join(view.keys)}" if view.keys else ""


def _column(cell: Cell, view: View) -> str:
    shown = f"{cell.name}: {cell.domain or cell.type}"
    if cell.tick_of is not None:
        return f"{shown}, a tick of {cell.tick_of}"
    if cell.is_exact:
        return f"{shown}, final with its row"
    if view.as_of is not None:
        return shown
    extent = f" {cell.extent}" if can_be_bounded(cell) else ""
    trend = ", rising" if cell.only_rises else ", falling" if cell.only_falls else ""
    return f"{shown}{extent} in {cell.steps} steps{trend}"


def _mask(view: View) -> str:
    mask = view.mask
    if mask.is_certain:
        return "T"
    if view.as_of is not None:
        return "t" if view.is_open == TRUE else "t, and T at the end"
    ends = [end for end, is_there in (("F", True), ("T", mask.can_be_true)) if is_there]
    never = "" if mask.can_be_true else "; never T, for ticks are always open"
    assert mask.is_in != FALSE
    return f"f, t, {' or '.join(ends)} in {mask.steps} steps{never}"
