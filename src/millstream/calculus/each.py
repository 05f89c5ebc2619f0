"""`PerKey`: a whole program for each key, as if there were one for every value of a column."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from millstream.calculus.base import Facts, Function, FunctionFault, require_kind
from millstream.calculus.graph import Program
from millstream.calculus.types import QueueType, Schema
from millstream.errors import RunError


@dataclass(frozen=True, slots=True)
class PerKey(Function):
    """Runs a program of one input and one output for every key that rows have.

    The program sees rows without the key, and what it gives leaves with it. If only the first
    items of each key are wanted, then a key is forgotten when it has given them.
    """

    by: tuple[str, ...]
    program: Program
    first: int | None = None
    acts_at_once: ClassVar[bool] = True

    def state_count(self, inputs: int) -> int:
        return 1

    def output_types(self, inputs: tuple[QueueType, ...], outputs: int) -> tuple[QueueType, ...]:
        require_kind(inputs, self.name, is_relation=False)
        schema = inputs[0].schema
        missing = [name for name in self.by if name not in schema.names]
        if missing:
            raise FunctionFault(f"PerKey: there is no column {missing[0]}")
        if self.first is not None and self.first < 1:
            raise FunctionFault(f"PerKey: the first {self.first} items of a key are none")
        (input_,), (output,) = self.program.inputs, self.program.outputs
        waiting = [op for op in self.program.operators if not op.function.acts_at_once]
        if waiting:
            name = waiting[0].function.name
            raise FunctionFault(f"PerKey: {name} waits for time to pass, which no key hears of")
        if any(type_.is_relation for type_ in self.program.queue_types().values()):
            raise FunctionFault("PerKey: the program of a key has streams only")
        rest = Schema(tuple(field for field in schema if field.name not in self.by))
        if rest != input_.type.schema:
            raise FunctionFault(f"PerKey: the program takes {input_.type.schema}, got {rest}")
        given = self.program.queue_types()[output].schema
        twice = [name for name in given.names if name in self.by]
        if twice:
            raise FunctionFault(f"PerKey: the program gives a column {twice[0]}, as the key has")
        keys = tuple(field for name in self.by for field in schema if field.name == name)
        return (QueueType(Schema((*keys, *given))),)

    def facts(self, inputs: tuple[QueueType, ...], index: int) -> Facts:
        (output,) = self.program.outputs
        return Facts(
            reads=frozenset(inputs[0].schema.names),
            forwards=frozenset(self.by),
            writes=frozenset(self.program.queue_types()[output].schema.names),
            is_stateless=False,
            key=self.by,
        )

    def failed(self, error: RunError, key: tuple[Any, ...]) -> RunError:
        """What went wrong in the program of a key, which counts what it does for itself."""
        whose = ", ".join(f"{name} {value}" for name, value in zip(self.by, key, strict=True))
        return RunError([replace(f, message=f"{f.message}, for {whose}") for f in error.faults])
