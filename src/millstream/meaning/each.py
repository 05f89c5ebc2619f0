"""What `PerKey` means: a machine for every key, which is given the rows of that key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from millstream.calculus.each import PerKey
from millstream.errors import RunError
from millstream.meaning.firing import Context, Result, State, fire, initial_state
from millstream.meaning.items import Entry, Item, Mark


@dataclass(frozen=True, slots=True)
class Instances:
    """The variables of the program of every key, and how many items it has given."""

    variables: Mapping[tuple[Any, ...], Mapping[str, Any]] = field(default_factory=dict)
    given: Mapping[tuple[Any, ...], int] = field(default_factory=dict)


@initial_state.register
def _per_key_state(function: PerKey, inputs: int) -> State:
    return (Instances(),)


@fire.register
def _per_key(function: PerKey, entry: Entry, index: int, state: State, context: Context) -> Result:
    from millstream.meaning.machine import Machine  # which imports all meanings

    if isinstance(entry, Mark):
        return Result(((entry,),), state)
    (instances,) = state
    names = context.input_types[0].schema.names
    key = tuple(entry.row[names.index(name)] for name in function.by)
    before = instances.given.get(key, 0)
    if before == function.first:
        return Result(((),), state)
    row = tuple(v for name, v in zip(names, entry.row, strict=True) if name not in function.by)
    machine = Machine(function.program)
    machine.variables.update(instances.variables.get(key, {}))
    machine.push(function.program.input_names[0], [replace(entry, row=row)])
    try:
        machine.run()
    except RunError as error:
        raise function.failed(error, key) from None
    sent = tuple(
        Item(made.time, key + made.row)
        for made in machine.queues[function.program.outputs[0]]
        if isinstance(made, Item)
    )
    if function.first is not None:
        sent = sent[: function.first - before]
    given = {**instances.given, key: before + len(sent)}
    kept = {**instances.variables, key: dict(machine.variables)}
    if given[key] == function.first:
        del kept[key]
    return Result((sent,), (Instances(kept, given),))
