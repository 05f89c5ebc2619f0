"""What a function that programs over records can call is: one record with all that is known."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from millstream.values.records.types import RecordType


@dataclass(frozen=True, slots=True)
class RecordSurroundings:
    """What a function may know of its surroundings.

    `random` is the only thing here that changes; who runs records seeds it anew for each, so
    that no answer depends on how the input is cut.
    """

    timezone: str = "UTC"
    folder: Path | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    random: random.Random = field(default_factory=lambda: random.Random(0))
    now: Callable[[], int] = lambda: time.time_ns() // 1000


@dataclass(frozen=True, slots=True)
class Signature:
    params: tuple[RecordType, ...]
    result: RecordType


#: From the types of the arguments to a signature, or to a sentence on what was wanted.
Rule = Callable[[tuple[RecordType, ...]], Signature | str]


@dataclass(frozen=True, slots=True)
class Intrinsic:
    """A function; `usage` is shown when it is called wrongly.

    `bind` gives the function on values, for a call whose types are known. It raises `Undefined`
    where there is no value. One that is `pure` gives the same for the same arguments, always.
    """

    name: str
    usage: str
    rule: Rule
    bind: Callable[[RecordSurroundings, Signature], Callable[..., Any]]
    pure: bool = True


def plain(
    name: str, usage: str, rule: Rule, meaning: Callable[..., Any], *, pure: bool = True
) -> Intrinsic:
    """One whose meaning needs no types and no surroundings."""
    return Intrinsic(name, usage, rule, lambda _settings, _signature: meaning, pure)


def spoken(types: tuple[RecordType, ...]) -> str:
    return ", ".join(map(str, types)) or "nothing"


def fixed(*params: RecordType, result: RecordType, optional: int = 0) -> Rule:
    """These arguments, of which the last `optional` ones may be left out."""

    def rule(args: tuple[RecordType, ...]) -> Signature | str:
        if len(params) - optional <= len(args) <= len(params) and args == params[: len(args)]:
            return Signature(args, result)
        return f"expected ({spoken(params)}), got ({spoken(args)})"

    return rule


def one_of(*rules: Rule) -> Rule:
    """The first rule that fits."""

    def rule(args: tuple[RecordType, ...]) -> Signature | str:
        complaints = []
        for each in rules:
            signature = each(args)
            if isinstance(signature, Signature):
                return signature
            complaints.append(signature)
        wanted = dict.fromkeys(c.removeprefix("expected ").split("), got")[0] for c in complaints)
        return f"expected {') or '.join(wanted)}), got ({spoken(args)})"

    return rule
