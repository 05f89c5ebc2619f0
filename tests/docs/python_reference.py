"""The page of all public calls of Python, from their docstrings."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import millstream
from millstream import algebra
from millstream.api import Compiled
from millstream.finished import Finished
from millstream.live import Live
from millstream.tracing.lambdas import call, if_
from millstream.tracing.rows import when

HEAD = """# All of Python

This page is made of the docstrings (`make golden` writes it anew).
[Millstream in Python](python.md) tells how they go together.
"""

GROUPS = ("Group", "average", "count", "maximum", "minimum", "product", "total")
SECTIONS: dict[str, list[tuple[str, Any]]] = {
    "Inputs": [(f"millstream.{n}", getattr(millstream, n)) for n in ("stream", "table", "relation")]
    + [("algebra.now", algebra.now), ("algebra.never", algebra.never)],
    "Inside lambdas": [("millstream.call", call), ("millstream.if_", if_),
                       ("millstream.when", when)],
    "Streams": [("millstream.Stream", algebra.Stream)],
    "Tables": [("millstream.Table", algebra.Table)],
    "Groups, for `reduce`": [(f"algebra.{n}", getattr(algebra, n)) for n in GROUPS],
    "Operators made of others": [
        (f"algebra.{n}", getattr(algebra, n))
        for n in (
            "scan", "key_by", "group_by", "combine_latest", "with_latest_from", "zip", "sample",
            "pairwise", "window", "buffer", "debounce", "distinct_until_changed", "skip_while",
            "take_while", "start_with", "switch",
        )
    ],
    "Programs": [("millstream.compile", millstream.compile),
                 ("millstream.compile_flow", millstream.compile_flow),
                 ("millstream.Compiled", Compiled)],
    "Results": [("millstream.Finished", Finished), ("millstream.Live", Live)],
}  # fmt: skip


def page() -> str:
    lines = [HEAD]
    for title, members in SECTIONS.items():
        lines.append(f"## {title}\n")
        for name, member in members:
            lines += _entry(name, member)
            if inspect.isclass(member):
                lines += _methods(member)
    return "\n".join(lines)


def _methods(one: type) -> Iterator[str]:
    for name, member in vars(one).items():
        if name.startswith("_") or not (inspect.isfunction(member) or isinstance(member, property)):
            continue
        called = member.fget if isinstance(member, property) else member
        if inspect.getdoc(called):
            yield from _entry(f".{name}", called, is_property=isinstance(member, property))


def _entry(name: str, member: Any, *, is_property: bool = False) -> Iterator[str]:
    text = inspect.getdoc(member)
    assert text, f"{name} has no docstring"
    signature = "" if is_property or inspect.isclass(member) else _arguments(member)
    yield f"### `{name}{signature}`\n" if not name.startswith(".") else f"**`{name}{signature}`**\n"
    yield f"{_without_doctests(text)}\n"


def _arguments(member: Any) -> str:
    """The names of the arguments; their types are told by the text, and by any editor."""
    shown: list[str] = []
    for one in inspect.signature(member).parameters.values():
        if one.name == "self" or (one.kind is one.POSITIONAL_ONLY and one.name == "columns"):
            continue  # columns are rather written by name
        star = "*" if one.kind is one.VAR_POSITIONAL else ""
        star = "**" if one.kind is one.VAR_KEYWORD else star
        if one.kind is one.KEYWORD_ONLY and not any(s.startswith("*") for s in shown):
            shown.append("*")
        default = "" if one.default is one.empty or callable(one.default) else f"={one.default!r}"
        name = "columns" if one.name == "more" else one.name
        shown.append(f"{star}{name}{default}")
    return f"({', '.join(shown)})"


def _without_doctests(text: str) -> str:
    return text.split(">>>", maxsplit=1)[0].rstrip()
