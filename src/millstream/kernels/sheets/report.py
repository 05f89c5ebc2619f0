"""What the compiler of sheets has done, phase by phase, for `explain`."""

from __future__ import annotations

from collections.abc import Iterable

from millstream.calculus.sheet_text import rule_text
from millstream.calculus.sheets import (
    HIDDEN_SHEET,
    Address,
    Fed,
    Sheet,
    Windows,
    address_text,
)
from millstream.kernels.sheets.paths import Compilation


def tick_sets(sheet: Sheet) -> dict[Address, frozenset[int]]:
    """For every cell the inputs at which it can tick; after SELECT it may tick less often."""
    ticks: dict[Address, frozenset[int]] = {}
    for cell in sheet.cells:
        if isinstance(cell.rule, Fed):
            ticks[cell.address] = frozenset((cell.rule.input,))
        else:
            ticks[cell.address] = frozenset().union(
                *(ticks.get(a, frozenset()) for a in cell.causes)
            )
    return ticks


def phases(sheet: Sheet) -> list[str]:
    """Flattening, constants, dead code, ticks and order, which every engine shares."""
    hidden = [c for c in sheet.cells if c.address[0] == HIDDEN_SHEET]
    lines = [f"flattened into {len(sheet.cells)} cells that change"]
    lines += [f"  {address_text(c.address)} = {rule_text(c.rule)}" for c in hidden]
    lines.append(f"constants: {len(sheet.constants)} cells that formulas read never change")
    lines.append("dead code: cells that no output needs are left out")
    ticks = tick_sets(sheet)
    inputs = sorted({n for some in ticks.values() for n in some})
    for number in inputs:
        ticking = [c.address for c in sheet.cells if number in ticks[c.address]]
        lines.append(f"a tuple of input {number + 1} ticks: {_names(ticking)}")
    lines.append(f"order, PRE as early as its trigger allows: {_names(_order(sheet))}")
    return lines


def _order(sheet: Sheet) -> list[Address]:
    return [c.address for c in sheet.cells if not isinstance(c.rule, Fed)]


def storage(whole: Compilation) -> list[str]:
    """Which cells are kept between tuples, and which are temporaries of one input."""
    kept = [a for a in whole.slots.cells if a not in whole.windows]
    lines = [f"kept between tuples: {_names(kept)}"]
    lines.append(f"kept for PRE: {_names(whole.slots.previous)}")
    temporary = [
        c.address
        for c in whole.sheet.cells
        if c.address not in whole.slots.cells and not isinstance(c.rule, Windows)
    ]
    lines.append(f"temporaries: {_names(temporary)}")
    for group in whole.groups:
        mine = [a for a, (g, _) in whole.windows.items() if g is group]
        words = [f"{len(group.sums)} exact sums"] if group.sums else []
        words += ["least or greatest values"] if group.queues else []
        words += ["values in order"] if group.trees else []
        words += [f"{len(group.conditional)} conditions"] if group.conditional else []
        lines.append(f"windows {_names(mine)} together: {', '.join(['counts', *words])}")
    kinds = {kind.kind.value for kind in whole.kinds.values()}
    for kind in sorted(kinds):
        of_kind = [a for a, k in whole.kinds.items() if k.kind.value == kind]
        lines.append(f"{kind}s: {_names(of_kind)}")
    return lines


def _names(addresses: Iterable[Address]) -> str:
    return ", ".join(address_text(a) for a in addresses) or "none"


def commented(lines: Iterable[str]) -> str:
    return "".join(f"# {line}\n" for line in lines)
