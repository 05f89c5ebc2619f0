"""What calculates as machines do gives bit for bit what it means, compiled too."""

from __future__ import annotations

import itertools
import math

import numpy as np

from millstream.calculus.graph import Input
from millstream.calculus.procedures import Assign, Code, Let, Pop, Push, RecordOf, Slot, Statement
from millstream.calculus.terms import Call, Place, Read, Term
from millstream.calculus.types import QueueType
from millstream.calculus.wiring import Wiring
from millstream.calculus.work import Rates, Work, schema_of_items
from millstream.engine.reference.feed import Event
from millstream.kernels.nets.printed import singles_as_text
from millstream.values.core.machine import MACHINE, single, single_text
from millstream.values.types import BIT, BOOLEAN, INT32, SINGLE, Type
from tests.generate_codes import RESULTS
from tests.laws.runs import on_local, on_reference

INTEGERS = [0, 1, -1, 2, 7, -7, 31, 32, 33, 2**31 - 1, -(2**31), 123456789]
SINGLES = [single(v) for v in (
    0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 0.1, 1e-45, 1e10, -1e10, 3e38, 2147483648.0,
    16777217.0, 0.49999997, 100.25, -0.75, math.pi, math.inf, -math.inf, math.nan)]  # fmt: skip
TAKEN = RecordOf((("a", INT32), ("b", INT32), ("x", SINGLE), ("y", SINGLE), ("p", BIT), ("q", BIT),
                  ("u", BOOLEAN), ("v", BOOLEAN), ("sign_x", SINGLE), ("sign_y", SINGLE),
                  ("one", INT32)))  # fmt: skip
OPERANDS = {INT32: "ab", SINGLE: "xy", BIT: "pq", BOOLEAN: "uv"}


def work_of_all() -> Work:
    """A filter that gives the result of every scalar; of divisors none is zero."""
    parts: list[Statement] = []
    calls = [(name, types, t) for t in OPERANDS for name, types in RESULTS[t]]
    given = RecordOf(tuple((name, type_) for name, _, type_ in calls))
    for name, types, type_ in calls:
        args = [operand(OPERANDS[t][n], t) for n, t in enumerate(types)]
        if name in ("int32_div", "int32_rem"):
            odd = Call("int32_or", (args[1], Read(Place("i", ("one",)), INT32)), INT32)
            args = [args[0], odd]
        parts.append(Assign(Place("o", (name,)), Call(name, tuple(args), type_)))
    before = Let(Slot("i", TAKEN)), Pop(Place("i")), Let(Slot("o", given))
    code = Code("All", (), (), TAKEN, given, (), None, (*before, *parts, Push(Place("o"))))
    return Work(code, (), TAKEN, given, Rates(1, 1, 1))


def operand(name: str, type_: Type) -> Term:
    """Zeros that come from outside have no sign, so signs come by themselves."""
    value = Read(Place("i", (name,)), type_)
    if type_ != SINGLE:
        return value
    return Call("single_mul", (value, Read(Place("i", (f"sign_{name}",)), SINGLE)), SINGLE)


def test_every_scalar_of_machines_is_compiled_as_it_is_meant() -> None:
    work = work_of_all()
    assert work.taken is not None
    wiring = Wiring()
    items = wiring.input(Input("items", QueueType(schema_of_items(work.taken))))
    program = wiring.program({"out": wiring.add(work, items, name="q")})
    numbers = itertools.cycle(itertools.product(INTEGERS, INTEGERS))
    bits = itertools.cycle(itertools.product((0, 1), (0, 1)))
    rows = []
    for x, y in itertools.product(SINGLES, SINGLES):
        (a, b), (p, q) = next(numbers), next(bits)
        signs = [math.copysign(1.0, value) for value in (x, y)]
        rows.append((a, b, abs(x), abs(y), p, q, bool(p), not q, *signs, 1))
    events = {"items": [Event(n, row) for n, row in enumerate(rows)]}
    names = [name for t in OPERANDS for name, _ in RESULTS[t]]
    expected, actual = on_reference(program, events)[0]["out"], on_local(program, events)[0]["out"]
    for (_, _, wanted), (_, _, got), row in zip(expected, actual, rows, strict=True):
        different = [(n, w, g) for n, w, g in zip(names, wanted, got, strict=True)
                     if np.float64(w).tobytes() != np.float64(g).tobytes()]  # fmt: skip
        assert not different, row
    assert len(names) + 4 == len(MACHINE), "and four that make texts"


def test_singles_are_printed_with_the_fewest_digits() -> None:
    rng = np.random.default_rng(3)
    bits = rng.integers(0, 2**32, 5000).astype(np.uint32).view(np.float32)
    scaled = (rng.standard_normal(3000) * 10.0 ** rng.integers(-8, 18, 3000)).astype(np.float32)
    values = np.concatenate([bits, scaled, np.array(SINGLES, np.float32)])
    expected = [single_text(value) for value in values.tolist()]
    assert expected == singles_as_text(values).to_pylist()
