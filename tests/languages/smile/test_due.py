"""When time moves on, only what is due is looked at, however many keys there are."""

from __future__ import annotations

import numpy as np
import pytest

from millstream.engine.local.run import plan_for
from millstream.kernels.rounds import StepRunner
from millstream.languages.smile.load import load
from millstream.optimiser.optimise import optimise
from millstream.plan.batch import Array, Batch, Vector
from millstream.source import Source

KEYS = 3_000
LENGTH = 3_000_000
VIEWS = {
    "silences": "SELECT * FROM QUIET(S BY k, 3 SECONDS)",
    "windows": "SELECT k, SUM(v) AS total FROM S GROUP BY k, WINDOW(t, 3 SECONDS)",
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_time_that_moves_on_moves_only_the_rows_that_are_due(view: str) -> None:
    text = (
        f"CREATE STREAM S (t: time -> k: shares, v: shares); CREATE VIEW V ({view}); "
        "subscriptions V;"
    )
    program = optimise(load(Source("due.smile", text)).program)
    (stream,) = program.inputs
    runner = StepRunner(plan_for(program))

    def moved(times: Array, keys: Array, mark: int) -> int:
        """How many rows the steps take and make of some events and of time that goes on."""
        columns = {"t": times, "k": keys, "v": np.ones(len(times), np.int64)}
        vectors = tuple(Vector(f.type, columns[f.name]) for f in stream.type.schema)
        events = Batch(stream.type, times, vectors)
        for _ in runner.round({stream.name: events}, mark, {}):
            pass
        return sum(f.taken + f.made for f in runner.taken_figures().values())

    nothing = np.zeros(0, np.int64)
    times = np.arange(KEYS) * 1_000
    moved(times, np.arange(KEYS), int(times[-1]))
    # Of the windows none is over yet; of the keys as many are silent as there are rows between.
    for count in (1, 10):
        mark = int(times[-1]) + (count * 1_000 if "QUIET" in view else count)
        assert moved(nothing, nothing, mark) <= 12 * count
    assert moved(nothing, nothing, int(times[-1]) + 2 * LENGTH) >= KEYS
    assert moved(nothing, nothing, int(times[-1]) + 3 * LENGTH) == 0
