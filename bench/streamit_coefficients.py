"""What the hand-written loops of `streamit_hand` are given besides their items.

It is calculated as the programs do it: in single precision after every operation.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from streamit_hand import low_pass

F = np.float32


def equalizer() -> tuple[Any, Any]:
    """The front of the radio, and two filters for each band."""
    edges = [low_pass(250000, f + 500 * i, 64) for i in range(4) for f in (1000, 1500)]
    return low_pass(250000, 108000, 128), np.array(edges)


def turns() -> Any:
    """The factors of each stage of a transform of 256 points."""
    w = np.zeros((8, 256), F)
    for level in range(8):
        n = 2 << level
        for i in range(n // 2):
            turn = F(F(F(F(-2) * F(np.pi)) * F(i)) / F(n))
            w[level, 2 * i], w[level, 2 * i + 1] = (
                np.cos(np.float64(turn)),
                np.sin(np.float64(turn)),
            )
    return w


def cosines() -> Any:
    c = np.zeros((8, 8), F)
    for u in range(8):
        for x in range(8):
            s = F(0.35355339) if u == 0 else F(0.5)
            turn = F(F(F((2 * x + 1) * u) * F(np.pi)) / F(16))
            c[u, x] = s * F(np.cos(np.float64(turn)))
    return c


def steering() -> Any:
    steer = np.zeros((4, 12), F)
    for beam in range(4):
        for i in range(12):
            turn = F(F(F(0.1) * F(beam + 1)) * F(i))
            steer[beam, i] = np.cos(np.float64(turn))
    return steer
