"""Which compiled code belongs to the cache is declared, and complete."""

from __future__ import annotations

from pathlib import Path

import pytest

from millstream.cache import COMPILED
from millstream.compiled import lent

ROOT = Path(__file__).parents[2] / "src" / "millstream"


def test_whatever_is_compiled_belongs_to_the_cache() -> None:
    compiling = [
        p for p in ROOT.rglob("*.py") if "from millstream.compiled import" in p.read_text()
    ]
    outside = [p for p in compiling if not any(p.is_relative_to(place) for place in COMPILED)]
    assert compiling
    assert not outside


def test_what_does_not_belong_to_the_cache_is_not_compiled() -> None:
    def elsewhere(x: float) -> float:
        return x

    with pytest.raises(AssertionError, match="is not in COMPILED"):
        lent(elsewhere)
