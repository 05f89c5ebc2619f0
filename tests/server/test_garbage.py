"""What has survived is set aside, and looked through again when connections have gone."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import pytest

from millstream.server import garbage
from millstream.server.corked import CorkedHTTP
from millstream.server.garbage import Garbage


class Link:
    """Mutable: holds itself, so that only a look finds that nobody else does."""

    left = 0

    def __init__(self) -> None:
        self.me: Any = self

    def __del__(self) -> None:
        Link.left += 1


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)
    gc.unfreeze()


def test_garbage_of_connections_that_have_gone_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(garbage, "_GONE", 10)
    monkeypatch.setattr(garbage, "_OBJECTS_EACH", 1 << 40)
    monkeypatch.setattr(CorkedHTTP, "gone", 0)
    monkeypatch.setattr(garbage, "_FEW", 1 << 40)
    keeper, links = Garbage(), [Link() for _ in range(50)]
    gc.collect(1)
    keeper.set_aside()
    assert gc.get_freeze_count() >= 50
    Link.left = 0
    links.clear()
    gc.collect(1)
    keeper.set_aside()
    assert Link.left == 0, "what was set aside is not looked at"
    monkeypatch.setattr(CorkedHTTP, "gone", 11)
    gc.collect(1)
    keeper.set_aside()
    assert Link.left == 50


def test_all_is_looked_through_when_it_has_become_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(garbage, "_FEW", 1)
    monkeypatch.setattr(garbage, "_TIMES", 0)
    Link.left = 0
    keeper, links = Garbage(), [Link()]
    gc.collect(1)
    gc.freeze()
    links.clear()
    gc.collect(1)
    keeper.set_aside()
    assert Link.left == 1
