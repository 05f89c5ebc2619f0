"""Patterns that Python's own `re` finds as PCRE does, and in little time, on single texts.

A pattern is written anew from its tree. What could be tried in many ways is left to the libraries:
no run of characters may give back what it took, but for one in a pattern that can only match at
the beginning, and few ways part.
"""

from __future__ import annotations

import functools
import re

from millstream.kernels.records.pattern_code import GO, IN_VAIN, RUN, TRY, UNTIL, pattern_code
from millstream.kernels.records.pattern_trees import (
    BEYOND,
    All,
    Either,
    Group,
    Here,
    One,
    Repeat,
    Tree,
    can_be_empty,
    tree,
)

#: Texts that are longer are left to the libraries: time may grow with the square of the length.
LONGEST = 1000
_MOST_WAYS = 3
_PLACES = {"^": r"\A", "A": r"\A", "$": "$", "Z": "$", "z": r"\Z", "b": r"\b", "B": r"\B"}


@functools.lru_cache(maxsize=1024)
def quick_pattern(pattern: str) -> re.Pattern[str] | None:
    """What finds a pattern in texts of at most `LONGEST` characters, or None."""
    found, code = tree(pattern), pattern_code(pattern)
    is_cased = pattern.startswith("(?") and "i" in pattern.partition(")")[0]
    if found is None or code is None or is_cased:
        return None
    kinds = code.code[:, 0]
    branches = code.code[:, 4]
    gives_back = (kinds == RUN) & ((branches >= 0) | (branches == IN_VAIN))
    goes_back = (kinds == UNTIL) | ((kinds == GO) & (code.code[:, 1] <= range(len(kinds))))
    if gives_back.sum() > code.is_anchored or (kinds == TRY).sum() > _MOST_WAYS or goes_back.any():
        return None
    return re.compile(_written(found[0]), re.ASCII)


def cuts_alike(pattern: str) -> bool:
    """Whether matches in what an earlier match has left are those in the whole text."""
    found = tree(pattern)
    return found is not None and not can_be_empty(found[0]) and not _looks_around(found[0])


def _looks_around(part: Tree) -> bool:
    match part:
        case Here(kind):
            return kind not in "$zZ"
        case All(parts) | Either(parts):
            return any(map(_looks_around, parts))
        case Group(_, inner) | Repeat(inner):
            return _looks_around(inner)
        case _:
            return False


def _written(part: Tree) -> str:
    match part:
        case One(of):
            return _set(of)
        case Here(kind):
            return _PLACES[kind]
        case All(parts):
            return "".join(map(_written, parts))
        case Either(parts):
            return f"(?:{'|'.join(map(_written, parts))})"
        case Group(_, inner):
            return f"({_written(inner)})"
        case Repeat(inner, least, most, is_greedy):
            whole = _written(inner) if isinstance(inner, One) else f"(?:{_written(inner)})"
            bounds = f"{{{least},{'' if most is None else most}}}"
            return whole + bounds + ("" if is_greedy else "?")


def _set(of: frozenset[int]) -> str:
    if len(of) == 1 and BEYOND not in of:
        return re.escape(chr(min(of)))
    # All characters beyond ASCII are in a set, or none of them is.
    is_negated = BEYOND in of
    members = sorted((set(range(BEYOND)) - of) if is_negated else of)
    if not members:
        return r"[\s\S]" if is_negated else r"[^\s\S]"
    return f"[{'^' if is_negated else ''}{''.join(f'{chr(92)}x{c:02x}' for c in members)}]"
