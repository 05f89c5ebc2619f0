"""Generated programs and inputs: small, typed, verified, and nasty in their values."""

from __future__ import annotations

from hypothesis import strategies as st

from millstream.calculus.graph import Input, Program
from millstream.calculus.types import QueueType, Row, Schema
from millstream.calculus.verify import verified
from millstream.engine.reference.feed import Event
from millstream.values.core.table import SCALARS
from tests.generate_functions import ALL, FROM_PYTHON, OF_TWO, Draft, choices
from tests.generate_terms import schemas, values


@st.composite
def programs(
    draw: st.DrawFn, *, max_operators: int = 6, sharing: bool = True, from_python: bool = True
) -> Program:
    """A program; `from_python` lets it have functions that cannot be written as text.

    It has a favourite among functions and among scalars, so that none is rare everywhere.
    """
    allowed = [f for f in ALL if from_python or f not in FROM_PYTHON]
    favourite, scalar = draw(st.sampled_from(allowed)), draw(st.sampled_from(sorted(SCALARS)))
    inputs = draw(_inputs(2 if favourite in OF_TWO else 4))
    draft = Draft(draw, {i.name: i.type for i in inputs}, sharing, scalar)
    for _ in range(draw(st.sampled_from(range(1, max_operators + 1)))):
        if not draft.open:
            break
        # What was made last is mostly read next: chains are what plans fuse.
        queue = draft.pick([*sorted(draft.open), *[next(reversed(draft.open))] * 3])
        fitting = choices(draft, queue)
        weighted = [f for f in allowed if f in fitting for _ in range(fitting[f][0])]
        often = [favourite] * len(weighted) if favourite in fitting else []
        function = draft.pick(weighted + often)
        fitting[function][1](draft, queue)
    outputs = tuple(sorted(draft.open))
    return verified(Program(inputs, outputs, tuple(draft.operators), tuple(draft.variables)))


@st.composite
def _inputs(draw: st.DrawFn, of: int) -> tuple[Input, ...]:
    """Inputs, one of so many a relation; some are alike, so that they can be put together."""
    types: list[QueueType] = []
    for _ in range(draw(st.sampled_from([1, 2, 2, 3]))):
        new = QueueType(draw(schemas()), draw(st.integers(1, of)) == of)
        types.append(draw(st.sampled_from([new, *types])))
    return tuple(
        Input(f"in{n}", type_, slack=draw(st.sampled_from([0, 0, 2])))
        for n, type_ in enumerate(types)
    )


# --- inputs -----------------------------------------------------------------------------


@st.composite
def inputs_for(draw: st.DrawFn, program: Program, *, max_rows: int = 8) -> dict[str, list[Event]]:
    """Events of every input in the order of their source; relations get sane changes."""
    return {
        one.name: draw(
            _changes(one.type.schema, max_rows) if one.type.is_relation
            else _rows(one.type.schema, max_rows)
        )
        for one in program.inputs
    }  # fmt: skip


#: A program, the events of its inputs, and where these are cut.
Case = tuple[Program, dict[str, list[Event]], list[int]]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """What most laws are tried on: equal for equal seeds, so that its loops are compiled once."""
    program = draw(programs())
    events = draw(inputs_for(program))
    return program, events, draw(st.lists(st.integers(0, 8), max_size=4))


@st.composite
def _row(draw: st.DrawFn, schema: Schema) -> Row:
    return tuple(draw(values(f.type)) for f in schema)


@st.composite
def _rows(draw: st.DrawFn, schema: Schema, max_rows: int) -> list[Event]:
    times = draw(st.lists(st.integers(0, 12), max_size=max_rows))
    if draw(st.integers(0, 3)):
        times.sort()  # mostly in order, sometimes late
    return [Event(t, draw(_row(schema))) for t in times]


@st.composite
def _changes(draw: st.DrawFn, schema: Schema, max_rows: int) -> list[Event]:
    """Insertions, some of which are taken back later."""
    events: list[Event] = []
    present: list[Row] = []
    for time in sorted(draw(st.lists(st.integers(0, 12), max_size=max_rows))):
        is_removal = bool(present) and draw(st.booleans())
        row: Row = draw(st.sampled_from(present) if is_removal else _row(schema))
        (present.remove if is_removal else present.append)(row)
        # Now and then something is taken away that is not there.
        weight = -1 if is_removal or draw(st.integers(0, 9)) == 0 else 1
        events.append(Event(time, row, weight))
    return events
