"""Generated cases are the same in every run, so that a change is blamed only for what it broke.

Some are new each day, as `tests/seeds.py` says; `make proof` looks for many new ones.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.laws.witness import Witness, watching
from tests.seeds import TODAY

ON_SPARK = Path(__file__).parent / "engine"

# Tests of the local engine are about compiled code, however few rows they have.
os.environ["MILLSTREAM_SMALL"] = "0"
# How long something takes says nothing about what it prints.
os.environ["MILLSTREAM_PROGRESS_SECONDS"] = "inf"

# What is started in the background ignores Ctrl-C, and so would all runs that tests interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)

# A busy machine is slow at times, which says nothing about a test.
settings.register_profile(
    "steady", derandomize=True, database=None, deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)  # fmt: skip
settings.register_profile("searching", derandomize=False)
settings.load_profile("steady")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """`make test` looks for Spark in one folder only."""
    for item in items:
        is_daily = item.get_closest_marker("spark") and not item.get_closest_marker("proof")
        if is_daily and ON_SPARK not in item.path.parents:
            raise pytest.UsageError(f"{item.nodeid} starts Spark and does not stand in {ON_SPARK}")


def pytest_report_header() -> str:
    return f"cases of the day: MILLSTREAM_SEED={TODAY}"


@pytest.fixture
def compiled_loops() -> Iterator[Witness]:
    """For laws about the engines: one in whose run no compiled loop has run has failed."""
    with watching() as witness:
        yield witness
    witness.check()
