"""Numbers of groups in the order of their keys, without keys that do not count."""

from __future__ import annotations

import numpy as np
import pytest

from millstream.kernels.cube.telling import numbered, sorted_words


@pytest.mark.parametrize("width", [0, 1, 12, 13, 20, 41])
def test_words_are_in_the_order_of_their_keys(width: int) -> None:
    chance = np.random.default_rng(width)
    keys = chance.integers(0, 1 << width, 500)
    keys[::7] = -1
    bits = len(keys).bit_length()
    words = sorted_words(keys, bits, width)
    expected = sorted((key, place) for place, key in enumerate(keys.tolist()) if key >= 0)
    assert expected == [(word >> bits, word & (1 << bits) - 1) for word in words.tolist()]


def test_no_cells_have_no_words() -> None:
    assert [] == sorted_words(np.zeros(0, np.int64), 0, 0).tolist()


@pytest.mark.parametrize("width", [0, 1, 6, 7, 12, 16, 17, 40])
def test_groups_have_numbers_in_the_order_of_their_keys(width: int) -> None:
    """With a bit for each key (few bits) and by sorting (many), of two sides."""
    chance = np.random.default_rng(width)
    sides = [np.sort(chance.integers(0, 1 << width, 300)), chance.integers(0, 1 << width, 40)]
    for keys in sides:
        keys[::7] = -1
    found, ids = numbered(sides, width)
    expected = np.unique(np.concatenate(sides))[1:]
    assert expected.tolist() == found.tolist()
    for keys, numbers in zip(sides, ids, strict=True):
        places = {key: n for n, key in enumerate(expected.tolist())} | {-1: -1}
        assert [places[key] for key in keys.tolist()] == numbers.tolist()
