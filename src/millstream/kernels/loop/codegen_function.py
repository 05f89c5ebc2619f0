"""The parts of a generated function: parameters, statements under guards, values.

Generated text holds only names made here and numbers, never anything a user has written.
Every variable is assigned once (numba takes quadratic time otherwise), except counters
and guards.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from millstream.calculus.types import INT64_MIN, Value

INDENT = "    "

_ARRAYS = ("ADDRESSES", "INF", "LEAST", "NAN", "SINGLE_F", "SINGLE_I", "void")
_CALENDAR = frozenset({"floor_time", "year", "month", "day", "hour", "minute", "second", "weekday"})
_NULLS = frozenset(
    {"boxed", "boxed_with_faults", "settled", "holds", "is_null", "choose", "first", "both",
     "either", "count_faults"}
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Param:
    """A parameter: what it is, of which things (by number), and its type.

    A type is A (an array) or S (a single value), and a shape: `f`, `i`, `b` or `u`, an
    index. Arrays are passed as addresses: numba would take seconds to compile a function
    of a hundred arrays, and a millisecond to call it.
    """

    kind: str
    type: str
    first: int = 0
    second: int = 0

    @property
    def name(self) -> str:
        return f"{self.kind}_{self.first}_{self.second}"

    @property
    def is_array(self) -> bool:
        return self.type[0] == "A"


@dataclass(frozen=True, slots=True)
class Held:
    """How a value is held: the name of a variable or a literal; see `scalar_lift`."""

    name: str
    is_boxed: bool = False
    has_faults: bool = False

    @property
    def value(self) -> str:
        return f"{self.name}[0]" if self.is_boxed else self.name

    @property
    def valid(self) -> str:
        return f"not {self.name}[1]" if self.is_boxed else "True"


def literal(value: Value) -> str:
    """A number as Python writes it, where numba reads it so.

    It takes the least integer for an unsigned one.
    """
    if isinstance(value, int) and value == INT64_MIN:
        return "LEAST"
    if isinstance(value, float) and not math.isfinite(value):
        return "NAN" if math.isnan(value) else ("INF" if value > 0 else "-INF")
    assert isinstance(value, (bool, int, float)), value
    return repr(value)


@dataclass(slots=True)
class Function:
    """Mutable: a function while it is generated."""

    params: dict[Param, None] = field(default_factory=dict)
    before: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)
    used: set[str] = field(default_factory=set)
    count: int = 0

    def param(self, kind: str, type_: str, first: int = 0, second: int = 0) -> str:
        param = Param(kind, type_, first, second)
        self.params.setdefault(param)
        return param.name

    def fresh(self, letter: str = "v") -> str:
        self.count += 1
        return f"{letter}{self.count}"

    def use(self, name: str) -> str:
        """The name of a compiled function, which will be imported."""
        self.used.add(name)
        return name

    def source(self, loop: list[str]) -> str:
        arrays = [p for p in self.params if p.is_array]
        single = [p for p in self.params if not p.is_array]
        pointers = [
            f"{p.name} = {self.use(f'pointer_{p.type[1]}')}(addresses[{number}])"
            for number, p in enumerate(arrays)
        ]
        types = ", ".join(["ADDRESSES", *(f"SINGLE_{p.type[1].upper()}" for p in single)])
        return "\n".join(
            [
                *self._imports(),
                "",
                f"SIGNATURE = void({types})",
                "",
                "",
                f"def run({', '.join(['addresses', *(p.name for p in single)])}):",
                *(INDENT + line for line in [*pointers, *self.before, *loop, *self.after]),
                "",
            ]
        )

    def _imports(self) -> list[str]:
        modules: dict[str, list[str]] = {"scalar_arrays": [*_ARRAYS]}
        for name in sorted(self.used):
            module = "scalar_numbers"
            if name in _CALENDAR:
                module = "scalar_calendar"
            elif name in _NULLS:
                module = "scalar_nulls"
            elif name.startswith("pointer_"):
                module = "scalar_arrays"
            modules.setdefault(module, []).append(name)
        return [
            f"from millstream.kernels.loop.{module} import {', '.join(names)}"
            for module, names in sorted(modules.items())
        ]


@dataclass(slots=True)
class Body:
    """Mutable: the statements for one row; each stands under a guard."""

    function: Function
    parents: list[int]
    row: str
    lines: list[tuple[int, str]] = field(default_factory=list)

    def add(self, guard: int, line: str) -> None:
        self.lines.append((guard, line))

    def assign(self, guard: int, expression: str) -> str:
        name = self.function.fresh()
        self.add(guard, f"{name} = {expression}")
        return name

    def is_within(self, guard: int, outer: int) -> bool:
        """Does the outer guard hold wherever the guard does?"""
        while guard not in (outer, 0):
            guard = self.parents[guard]
        return guard == outer

    def render(self) -> list[str]:
        """Guards one after the other, never nested: Python allows no 100 levels."""
        decided = {guard for guard, _ in self.lines if self.parents[guard]}
        rendered = [f"g{guard} = False" for guard in sorted(decided)]
        current = 0
        for guard, line in self.lines:
            if guard != current and guard:
                rendered.append(f"if g{guard}:")
            current = guard
            rendered += [(INDENT if guard else "") + part for part in line.split("\n")]
        return rendered
