"""EMIT EARLY in runs that follow: what is told before the slack has passed is corrected."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import millstream
from millstream.calculus.types import Row
from tests.engine.following import Following


def test_a_run_that_follows_answers_before_the_slack_has_passed(
    tmp_path: Path, launched: dict[str, Any]
) -> None:
    (tmp_path / "q.cql").write_text(
        """CREATE STREAM s (k TEXT, v INTEGER, at TIME) TIME at SLACK 1 HOUR FROM 's*.csv';
        SELECT window_start, SUM(v) AS total FROM TUMBLE(s, 10 SECONDS)
        GROUP BY window_start, window_end EMIT EARLY;"""
    )
    (tmp_path / "s1.csv").write_text("k,v,at\na,1,1000000\na,2,12000000\n")
    job = millstream.compile(tmp_path / "q.cql")
    with Following(job, launched, tmp_path / "checkpoint") as run:
        run.wait("processed", 1)
        # The first window has ended long ago; what comes for it corrects it.
        (tmp_path / "s2.csv").write_text("k,v,at\nb,5,9000000\nb,1,13000000\nb,1,14000000\n")
        run.wait("processed", 4)
        assert 0 == run.count("late")
    told = [(t, w, r) for t, w, r in run.outputs["query1"].rows]
    assert told[:1] == [(1_000_000, 1, (0, 1))]
    state: Counter[Row] = Counter()
    for _, weight, row in told:
        state[row] += weight
    assert {(0, 6): 1, (10_000_000, 3): 1} == {row: n for row, n in state.items() if n}
    assert (12_000_000, -1, (0, 1)) in told
    assert (12_000_000, 1, (0, 6)) in told
