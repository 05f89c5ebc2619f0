"""What a kernel is: the compiled meaning of one step of a plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from millstream.plan.batch import Array, Batch

#: The state of a kernel as plain arrays and numbers, ready to be written down.
State = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Round:
    """One turn of an engine: all items up to and including `mark` are in.

    `ticks` are the distinct instants since the last mark, ascending, at which a program
    input behind the step had an item.
    """

    mark: int
    ticks: Array


class Kernel(Protocol):
    """Mutable: owns the state of its operators between rounds.

    In every round each input holds exactly the items of its queue with
    `previous mark < time <= mark`, in order of time, so that instants are never cut.
    The changes of a relation within one instant have no order and need not be
    consolidated; the items of a stream within one instant have one. Outputs obey the
    same rules.

    A kernel that `rests` has nothing to give in a round that gives it nothing, however late it is.
    """

    rests: bool

    def process(self, inputs: tuple[Batch, ...], round_: Round) -> tuple[Batch, ...]: ...

    def snapshot(self) -> State: ...

    def restore(self, state: State) -> None: ...

    def faults(self) -> dict[str, int]:
        """How many scalar faults (values that became null) each term has had."""
        ...


class StatefulPart(Protocol):
    """Something with a state of its own."""

    def snapshot(self) -> State: ...

    def restore(self, state: State) -> None: ...


class Composed:
    """The base of what has parts: its state is theirs, each under the name of its part."""

    parts: Mapping[str, StatefulPart] = {}
    rests: bool = False

    def snapshot(self) -> State:
        return {
            f"{name}.{key}": value
            for name, part in self.parts.items()
            for key, value in part.snapshot().items()
        }

    def restore(self, state: State) -> None:
        for name, part in self.parts.items():
            start = f"{name}."
            of_part = {k.removeprefix(start): v for k, v in state.items() if k.startswith(start)}
            part.restore(of_part)


class Termless(Composed):
    """The base of kernels that compute no terms, so that nothing can go wrong in them."""

    def faults(self) -> dict[str, int]:
        return {}
