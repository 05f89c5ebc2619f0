"""Variances and standard deviations: which aggregate each is of, and how it is read."""

from __future__ import annotations

from millstream.calculus import syntax
from millstream.calculus.types import TEXT
from millstream.queries.ast import Total

#: The aggregates that are read here: what each is called in the calculus, has it a root.
SPREADS: dict[str, tuple[str, bool]] = {
    "variance": ("variance", False),
    "var_pop": ("var_pop", False),
    "stddev": ("variance", True),
    "stddev_pop": ("var_pop", True),
}


def _text(written: str) -> syntax.Expression:
    return syntax.Constant(written, TEXT)


def reading(total: Total, column: str) -> syntax.Expression:
    """How to read an aggregate from the column that was made for it."""
    read: syntax.Expression = syntax.Name(column, total.span)
    if total.function.name == "array_agg":
        opened = syntax.Apply("||", (_text("["), read), total.span)
        read = syntax.Apply("||", (opened, _text("]")), total.span)
    _, has_root = SPREADS.get(total.function.name, ("", False))
    return syntax.Apply("sqrt", (read,), total.span) if has_root else read
