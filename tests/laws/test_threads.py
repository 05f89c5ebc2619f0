"""Law 1 on threads: the answer does not depend on how many of them there are."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given

from millstream.engine.layout import Layout
from millstream.engine.local import threads as on_threads
from millstream.engine.local.threads import ThreadedRunner
from tests.generate import Case, cases
from tests.laws.runs import on_local
from tests.seeds import TODAY, campaign, seeded


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Even the smallest rounds and programs go to threads; how many buckets runs had is noted."""
    counts: list[int] = []
    monkeypatch.setattr(on_threads, "_LEAST_IN_ROUND", 0)
    monkeypatch.setattr(on_threads, "_is_worth_it", lambda *_: True)
    built = ThreadedRunner.__init__

    def noting(self: ThreadedRunner, layout: Layout, threads: int) -> None:
        counts.append(threads)
        built(self, layout, threads)

    monkeypatch.setattr(ThreadedRunner, "__init__", noting)
    yield counts
    assert counts, "no program was spread over threads, so nothing was tested"


def agree_on(number: int, count: int) -> None:
    @seeded(number, count)
    @given(cases())
    def law(case: Case) -> None:
        program, events, cuts = case
        expected, report = on_local(program, events, cuts)
        for threads in (2, 3):
            actual, also = on_local(program, events, cuts, threads)
            assert expected == actual
            assert report.inputs == also.inputs
            assert report.faults.keys() == also.faults.keys()

    law()


@pytest.mark.parametrize("number", [0, TODAY])
def test_any_number_of_threads_gives_the_same_rows(number: int, shared: list[int]) -> None:
    agree_on(number, 20)


@pytest.mark.proof
@pytest.mark.parametrize("number", campaign(150, 25))
def test_threads_agree_on_more_programs(number: int, shared: list[int]) -> None:
    agree_on(number, 25)
