"""What is generated for a sheet: made once for all kernels of it in a process."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from millstream.calculus.sheets import HIDDEN_SHEET, Address, Sheet, address_text
from millstream.calculus.types import QueueType
from millstream.kernels.sheets.called import Site
from millstream.kernels.sheets.operands import NotCompiled, Texts
from millstream.kernels.sheets.paths import Compilation
from millstream.kernels.sheets.report import commented, phases, storage
from millstream.kernels.sheets.source import (
    SheetSource,
    fed_columns,
    is_whole,
    output_kinds,
    written,
)
from millstream.kernels.sheets.split import Split, SplitCells
from millstream.values.excel.kinds import Kind


@dataclass(frozen=True)
class Generated:
    """All of it is only read."""

    split: Split
    whole: Compilation
    kinds: list[list[Kind]]
    loop: SheetSource
    #: What `explain` shows: the loop, and what was done to get there.
    source: str
    columns: list[list[int]]
    #: Of each output, whether every tuple of the only input makes one of its tuples.
    are_whole: list[bool]
    #: The texts that the loop names.
    texts: tuple[str, ...]


@lru_cache(maxsize=64)
def generated(function: Sheet, input_types: tuple[QueueType, ...]) -> Generated:
    """The loop of a sheet, with as few of its cells outside as can be."""
    parts = SplitCells(function, input_types)
    first: NotCompiled | None = None
    while True:
        try:
            return _generated(parts.split(), parts.may_call)
        except NotCompiled as reason:
            first = first or reason
            if not parts.moved(reason):
                if reason.address is None or reason.address in parts.may_call:
                    raise first from None
                parts.may_call |= {reason.address}


def _generated(split: Split, may_call: frozenset[Address]) -> Generated:
    texts = Texts()
    texts.number("0")  # an empty cell is shown as
    whole = Compilation(split.sheet, split.input_types, texts, may_call)
    kinds = output_kinds(whole)
    loop = written(whole)
    notes = [*phases(split.sheet), *storage(whole)]
    notes += [f"outside of the loop: {note}" for note in apart(split, whole)]
    notes += dict.fromkeys(_seldom(whole))
    columns = [fed_columns(whole, n) for n in range(len(split.input_types))]
    are_whole = [is_whole(whole, n) for n in range(len(kinds))]
    source = commented(notes) + loop.source
    return Generated(split, whole, kinds, loop, source, columns, are_whole, tuple(texts.texts))


def apart(split: Split, whole: Compilation) -> list[str]:
    """The cells that a loop does not compute, or not alone, and why."""
    often = [site for site in whole.called if not site.is_seldom]
    called = dict.fromkeys(f"{_place(site)} called by the loop: {site.reason}" for site in often)
    return [*split.reasons, *called]


def _seldom(whole: Compilation) -> list[str]:
    """What a loop computes by itself unless there is no value."""
    asked = [site for site in whole.called if site.is_seldom]
    return [f"the loop asks for {_place(site)}: {site.reason}" for site in asked]


def _place(site: Site) -> str:
    return "a cell" if site.place[0] == HIDDEN_SHEET else address_text(site.place)


def cells_apart(function: Sheet, input_types: tuple[QueueType, ...]) -> list[str]:
    """The same of a sheet, for those who want to know what is slow."""
    try:
        made = generated(function, input_types)
    except NotCompiled as reason:
        return [f"all cells are walked, formula by formula: {reason}"]
    return apart(made.split, made.whole)
