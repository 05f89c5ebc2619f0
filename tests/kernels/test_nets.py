"""Movers and times of nets: filters are walked here, so that nothing has to be compiled."""

from __future__ import annotations

import pytest
from hypothesis import Phase, given
from hypothesis import strategies as st

from millstream.calculus.functions import Duplicate, RoundRobinJoin
from millstream.calculus.graph import Input
from millstream.calculus.types import QueueType
from millstream.calculus.wiring import Queue, Wiring
from millstream.calculus.work import PRINTED, Rates, Work, schema_of_items
from millstream.engine.reference.feed import Event
from millstream.kernels.loop.code_layout import NotCompiled
from millstream.kernels.nets import kernel
from millstream.values.types import INT32
from tests.generate_codes import works
from tests.generate_nets import net_inputs, nets
from tests.laws.runs import on_local, on_reference
from tests.laws.test_snapshots import forgetting
from tests.seeds import TODAY, seeded

CUTS = st.lists(st.integers(0, 40), max_size=4)


@pytest.fixture(autouse=True)
def _walked(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise NotCompiled("nothing is, here")

    monkeypatch.setattr(kernel, "CompiledFilter", refused)


@pytest.mark.parametrize("number", [0, 1, TODAY])
def test_items_come_in_order_and_at_their_times_however_they_are_split_and_joined(
    number: int,
) -> None:
    @seeded(number, 40, phases=[Phase.generate])
    @given(st.data(), CUTS)
    def law(data: st.DataObject, cuts: list[int]) -> None:
        program = data.draw(nets(depth=2))
        events = data.draw(net_inputs(program, max_rows=60))
        expected, _ = on_reference(program, events)
        assert expected == on_local(program, events, cuts)[0]
        with forgetting():
            assert expected == on_local(program, events, cuts)[0]

    law()


def test_what_passes_no_filter_leaves_as_it_came() -> None:
    @seeded(0, 5, phases=[Phase.generate])
    @given(works(INT32, INT32, rates=Rates(1, 1, 1)))
    def law(work: Work) -> None:
        wiring, type_ = Wiring(), QueueType(schema_of_items(INT32))
        items = wiring.input(Input("items", type_))
        first, second, third = (Queue(name, type_) for name in ("first", "second", "third"))
        said = (Queue("said", PRINTED),) if work.prints else ()
        wiring.connect(Duplicate(), (items,), (first, second))
        wiring.connect(work, (first,), (third, *said))
        out = wiring.add(RoundRobinJoin(), third, second, name="out")
        program = wiring.program({"out": out} | {q.name: q for q in said})
        events = {"items": [Event(n, (2**40 + n,)) for n in range(5)]}
        expected, _ = on_reference(program, events)
        assert 2**40 + 4 == expected["out"][-1][2][0]
        assert expected == on_local(program, events)[0]

    law()
