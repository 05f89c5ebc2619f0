"""Messages on their way, firings that wait and instances of keys survive being written down."""

from __future__ import annotations

import pytest

from millstream.calculus.each import PerKey
from millstream.calculus.graph import Input, Program
from millstream.calculus.types import INTEGER, TEXT, QueueType, Schema
from millstream.calculus.wiring import Wiring
from millstream.engine.reference.feed import Event
from millstream.languages.streamit.load import load
from millstream.source import Source
from tests.languages.streamit.test_changing_rates import BOTH
from tests.laws.test_nets import check

MESSAGES = """int->int pipeline Main {
    portal<Gain> up, down;
    add Gain to up;
    add int->int filter {
        int n;
        int[2] both;
        work pop 2 push 2 {
            n++;
            both[n % 2] = n;
            if (n % 2 == 0) { up.set(n, both) [2:2]; down.set(n, both) [1:1]; }
            push(pop()); push(pop());
        }
    };
    add Gain to down;
}
int->int filter Gain {
    int by = 1, more;
    work pop 1 push 1 { push(pop() * by + more); }
    handler set(int b, int[2] m) { by = b; more += m[0] - m[1]; }
}"""


def text(written: str) -> Program:
    return load(Source("test.str", written)).program


def for_every_key() -> Program:
    wiring = Wiring(reserved=("out",))
    items = wiring.input(Input("items", QueueType(Schema.of(sym=TEXT, value=INTEGER))))
    given = wiring.add(PerKey(("sym",), text(MESSAGES)), items, name="given")
    return wiring.program({"out": given})


@pytest.mark.parametrize(
    ("program", "width"), [(text(MESSAGES), 1), (text(BOTH), 1), (for_every_key(), 2)]
)
def test_rounds_keep_nothing_but_bytes(program: Program, width: int) -> None:
    rows = [("ABC"[n * n % 5 % 3], n * 3 // 4 % 3) for n in range(24)]
    events = [Event(n, row[2 - width :]) for n, row in enumerate(rows)]
    check(program, {"items": events}, [1, 4, 6])
