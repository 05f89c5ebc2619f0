"""What a machine keeps, as plain values that can be written down, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from millstream.meaning.each import Instances
from millstream.meaning.items import Item, Mark
from millstream.meaning.machine import Machine
from millstream.meaning.rows import Cursor
from millstream.meaning.waiting import Side
from millstream.meaning.work import Box, Buffer, Letter, Place

#: What the reference keeps beside plain values, none of which is a list.
_RECORDS = {
    record.__name__: record
    for record in (Item, Mark, Side, Cursor, Place, Buffer, Box, Letter, Instances)
}


def plain(value: Any) -> Any:
    """A state of the reference as plain values: a record is a list of its name and fields."""
    match value:
        case dict():
            return {key: plain(inner) for key, inner in value.items()}
        case tuple():
            return tuple(map(plain, value))
        case _ if type(value).__name__ in _RECORDS:
            return [type(value).__name__, *(plain(getattr(value, f.name)) for f in fields(value))]
        case _:
            return value


def unplain(value: Any) -> Any:
    """The state that some plain values stand for."""
    match value:
        case dict():
            return {key: unplain(inner) for key, inner in value.items()}
        case tuple():
            return tuple(map(unplain, value))
        case [name, *rest]:
            return _RECORDS[name](*map(unplain, rest))
        case _:
            return value


def kept_of(machine: Machine) -> dict[str, Any]:
    queues = {q: tuple(entries) for q, entries in machine.queues.items() if entries}
    return {"variables": plain(machine.variables), "queues": plain(queues),
            "faults": dict(machine.faults)}  # fmt: skip


def take_up(machine: Machine, state: Mapping[str, Any]) -> None:
    """Go on from what another machine of the program has kept."""
    machine.variables = unplain(state["variables"])
    queues = unplain(state["queues"])
    for queue in machine.queues:
        machine.queues[queue].clear()
        machine.push(queue, queues.get(queue, ()))
    machine.faults.clear()  # it is shared with those who count
    machine.faults.update(state["faults"])
