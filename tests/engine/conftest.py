"""Engines that run on checkpoints, one Spark session for all tests, and no query left running."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Where every start takes long, what the local engine shows in each run is a campaign."""
    for item in items:
        if item.get_closest_marker("spark") and item.get_closest_marker("proof_on_spark"):
            item.add_marker(pytest.mark.proof)


@pytest.fixture(scope="session", params=["local", pytest.param("spark", marks=pytest.mark.spark)])
def engine(request: pytest.FixtureRequest) -> str:
    """What keeps a checkpoint: what holds of one engine holds of the other."""
    return str(request.param)


@pytest.fixture(scope="session")
def launched(engine: str, request: pytest.FixtureRequest) -> dict[str, Any]:
    """The options of a call that runs on an engine, Spark with the session of all tests."""
    if engine == "local":
        return {"engine": engine}
    return {"engine": engine, "session": request.getfixturevalue("spark"), "partitions": 2}


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from millstream.engine.spark.session import start_session

    session = start_session("local[2,4]", tmp_path_factory.mktemp("spark"), 2)
    yield session
    session.stop()


@pytest.fixture(autouse=True)
def no_query_left(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if "spark" in request.fixturenames:
        session = request.getfixturevalue("spark")
        for query in session.streams.active:
            query.stop()
