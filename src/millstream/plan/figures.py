"""What each step of a plan has done, for whoever watches a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from millstream.plan.steps import Plan, Step


@dataclass(slots=True)
class StepFigures:
    """Mutable: rows that came and went, the seconds it took, and what could not be computed.

    `state` is how many bytes it keeps, where that has been measured.
    """

    taken: int = 0
    made: int = 0
    seconds: float = 0.0
    faults: int = 0
    state: int | None = None

    def written(self) -> list[Any]:
        return [self.taken, self.made, self.seconds, self.faults, self.state]

    def add(self, other: StepFigures) -> None:
        self.taken += other.taken
        self.made += other.made
        self.seconds += other.seconds
        self.faults += other.faults
        if other.state is not None:
            self.state = (self.state or 0) + other.state

    def after(self, before: StepFigures) -> StepFigures:
        """With what was done before; faults and state are told as they stand."""
        state = before.state if self.state is None else self.state
        return StepFigures(before.taken + self.taken, before.made + self.made,
                           before.seconds + self.seconds, self.faults, state)  # fmt: skip


def name_of(step: Step) -> str:
    """What a step is called: by its first operator, as `explain --stage plan` has it."""
    return step.operators[0].id


def inputs_of_steps(plan: Plan) -> dict[str, frozenset[str]]:
    """The inputs from which each step of a plan has its rows."""
    behind, names = plan.inputs_behind(), plan.program.input_names
    return {
        name_of(step): frozenset(names[n] for queue in step.inputs for n in behind[queue])
        for step in plan.steps
    }


def together(some: Iterable[Mapping[str, StepFigures]]) -> dict[str, StepFigures]:
    """Those of several buckets."""
    total: dict[str, StepFigures] = {}
    for one in some:
        for name, figures in one.items():
            total.setdefault(name, StepFigures()).add(figures)
    return total


def bytes_of(state: object) -> int:
    """How many bytes plain arrays and texts take, as they are handed over to be written down."""
    match state:
        case dict():
            return sum(map(bytes_of, state.values()))
        case list() | tuple():
            return sum(map(bytes_of, state))
        case np.ndarray() | pa.Array() | pa.ChunkedArray() | pa.Table() | pa.RecordBatch():
            return int(state.nbytes)
        case str() | bytes() | bytearray():
            return len(state)
        case _:
            return 8
