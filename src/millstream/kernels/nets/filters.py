"""A filter of a net that is compiled: its memory, and the frame in which it is called."""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np

from millstream.calculus.work import Work
from millstream.errors import RunError
from millstream.kernels.loop.code_layout import memory_of
from millstream.kernels.loop.code_loop import INIT, CodeLoop, loop_of, lowered
from millstream.kernels.nets.table import (
    BACKUP_F,
    BACKUP_I,
    FIRST_PEEK,
    FIRST_POP,
    FIRST_PUSH,
    FRAME,
    FUNCTION,
    HAS_FIRST,
    PEEK,
    POP,
    PUSH,
    SIZE_F,
    SIZE_I,
)
from millstream.meaning.procedures import Frame, Machine
from millstream.meaning.work import arguments_of, broken, started
from millstream.plan.batch import Array

FRAME_SIZE = 31
#: What is called from outside of the driver: its mode, how many firings, and the frame.
CALLED = ctypes.CFUNCTYPE(*3 * (ctypes.c_int64,), ctypes.c_void_p)


class CompiledFilter:
    """Mutable: the memory of a code, and what it is called with."""

    def __init__(self, work: Work, row: Array) -> None:
        self.work = work
        self.row = row
        self.loop = loop_of(work.code)
        self.function = self.loop.compiled()
        machine = _machine(work, self.loop)
        self.singles, self.integers, self.places = memory_from(self.loop, machine)
        self.frame = np.zeros(FRAME_SIZE, np.int64)
        self.frame[6:9] = [a.ctypes.data for a in (self.singles, self.integers, self.places)]
        self.backup = np.empty_like(self.singles), np.empty_like(self.integers)
        self._fill(row)
        if self.loop.has_init:
            self._begin()

    def _begin(self) -> None:
        if CALLED(int(self.row[FUNCTION]))(INIT, 1, self.frame.ctypes.data):
            raise self.tell(0)

    def _fill(self, row: Array) -> None:
        rates, first = self.work.rates, self.work.first or self.work.rates
        row[[POP, PEEK, PUSH]] = rates.pop, rates.peek, rates.push
        row[[FIRST_POP, FIRST_PEEK, FIRST_PUSH]] = first.pop, first.peek, first.push
        row[HAS_FIRST] = self.work.code.first is not None
        row[FUNCTION], row[FRAME] = address_of(self.function), self.frame.ctypes.data
        row[BACKUP_F], row[BACKUP_I] = (array.ctypes.data for array in self.backup)
        row[SIZE_F], row[SIZE_I] = len(self.singles), len(self.integers)

    def tell(self, fired: int) -> RunError:
        """What went wrong; where, is told by this code, which may share its loop with others."""
        site, firing, first, second = self.frame[16:20].tolist()
        message, span = lowered(self.work.code).sites[site - 1]
        return broken(self.work, message.format(first, second), span, fired + firing + 1)


@functools.cache
def address_of(function: Any) -> int:
    """Where the compiled code of a function begins, as it is called from C."""
    (compiled,) = function.overloads.values()
    name = compiled.fndesc.llvm_cfunc_wrapper_name
    return int(compiled.library.get_pointer_to_function(name))


def _machine(work: Work, loop: CodeLoop) -> Machine:
    """The values of parameters and fields; zero, if the compiled code begins with them."""
    if not loop.has_init:
        return started(work)
    machine = Machine(work.code)
    for slot, value in zip(work.code.parameters, arguments_of(work), strict=True):
        machine.variables[slot.name] = value
    for slot in work.code.fields:
        machine.let(slot, machine.variables)
    return machine


def memory_from(loop: CodeLoop, machine: Machine) -> tuple[Array, Array, Array]:
    """The values of a machine as the loop wants them laid out."""
    cells: dict[str, list[Any]] = {"F": [], "I": []}
    places: list[int] = []
    for name, leaf in loop.layout.kept:
        value = machine.variables[name]
        for part in leaf.path:
            value = value[part]
        cells[memory_of(leaf.type)].append(value)
    frame = Frame(machine, None, {})
    for stretch in loop.layout.stretches.values():
        sizes = [frame.value(size) for size in stretch.leaf.sizes]
        held = cells[memory_of(stretch.leaf.type)]
        places += [len(held), *sizes]
        if stretch.name in machine.variables:
            held += _flat(machine.variables[stretch.name], stretch.leaf.path)
        else:
            held += [0] * int(np.prod(sizes))
    return (np.array(cells["F"] or [0], np.float32), np.array(cells["I"] or [0], np.int32),
            np.array(places or [0], np.int64))  # fmt: skip


def _flat(value: Any, path: tuple[str, ...]) -> list[Any]:
    """The values of an array, of whose elements a part may be meant."""
    if isinstance(value, list):
        return [v for element in value for v in _flat(element, path)]
    if isinstance(value, dict):
        return _flat(value[path[0]], path[1:])
    return [value]
