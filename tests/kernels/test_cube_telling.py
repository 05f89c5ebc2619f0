"""Words of keys and places: by key, then by place, without keys that do not count."""

from __future__ import annotations

import numpy as np
import pytest

from millstream.kernels.cube.telling import sorted_words


@pytest.mark.parametrize("product", [1, 2, 4096, 4097, 10**6, 2**40 + 5])
def test_words_are_in_the_order_of_their_keys(product: int) -> None:
    chance = np.random.default_rng(product % 1000)
    keys = chance.integers(0, product, 500)
    keys[::7] = -1
    bits = len(keys).bit_length()
    words = sorted_words(keys, bits, product)
    expected = sorted((key, place) for place, key in enumerate(keys.tolist()) if key >= 0)
    assert expected == [(word >> bits, word & (1 << bits) - 1) for word in words.tolist()]


def test_no_cells_have_no_words() -> None:
    assert [] == sorted_words(np.zeros(0, np.int64), 0, 1).tolist()
