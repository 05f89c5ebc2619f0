"""Bessel functions of whole orders, from their integrals.

The integrands are smooth, so a quadrature with a node or two per oscillation is exact to the
last digits; no tables of coefficients are needed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from millstream.values.excel.registry import Family, spec
from millstream.values.excel.values import fail_if, finite

#: From here on an oscillating integrand is worth no nodes: nothing is said of such arguments.
_LARGEST = 1e5
#: Where a factor of exp(-this) has made everything vanish.
_VANISHED = 745.0
#: So many nodes are taken at once.
_PANEL = 40

Integrand = Callable[[Any], Any]


def _integral(integrand: Integrand, end: float, nodes: int) -> float:
    """In panels of few nodes each: the nodes of one large panel cost their number squared."""
    points, weights = np.polynomial.legendre.leggauss(_PANEL)
    panels = 1 + nodes // (_PANEL // 2)
    width = end / panels
    at = (np.arange(panels)[:, None] + (points + 1) / 2) * width
    return float((integrand(at) @ weights).sum() * width / 2)


def _tail(rate: float, order: int, integrand: Integrand) -> float:
    """An integral of what falls like exp(-rate * e^t / 2) and rises like exp(order * t)."""
    # The inverse of the hyperbolic sine, of what may be too large to be told.
    end = math.log(2 * (_VANISHED + 60 * order)) - math.log(min(rate, 1.0))
    if rate > 1:
        end = math.asinh((_VANISHED + 60 * order) / rate)
    return _integral(integrand, end, (15 + int(end)) * (_PANEL // 2))


def _falling(x: float, n: int, t: Any, sign: float, hyperbolic: Integrand) -> Any:
    """The sum of exp(n t) and exp(-n t), with a sign, less x times a hyperbolic function."""
    # Where that would be too large to be told, half of exp(t) is all there is to it.
    steep = np.where(
        t > 40, np.exp(t + math.log(x) - math.log(2)), x * hyperbolic(np.minimum(t, 40))
    )
    return np.exp(n * t - steep) + sign * np.exp(-n * t - steep)


def _order(order: float, x: float) -> int:
    fail_if(order < 0 or abs(x) > _LARGEST or order > _LARGEST)
    return int(order)


def _around(integrand: Integrand, x: float, n: int) -> float:
    """The mean over half a turn of what swings as often as its arguments say."""
    return _integral(integrand, math.pi, int(abs(x) + n) + 40) / math.pi


def _series(x: float, n: int, sign: float) -> float:
    """The sum of (sign * x^2 / 4)^k / (k! (n+k)!), times (x/2)^n; all to be taken in turn."""
    log = (
        n * math.log(abs(x) / 2 or abs(x)) - math.lgamma(n + 1)
        if x
        else (0.0 if n == 0 else -math.inf)
    )
    term = math.exp(log) * (-1.0 if x < 0 and n % 2 else 1.0)
    total, k = term, 0
    while abs(term) > abs(total) * 1e-17:
        k += 1
        term *= sign * x * x / 4 / k / (n + k)
        total += term
    return total


def first_kind(x: float, order: float) -> float:
    n = _order(order, x)
    if x * x / 4 <= n + 1:  # the terms fall from the first on, so that nothing cancels out
        return _series(x, n, -1.0)
    return _around(lambda t: np.cos(n * t - x * np.sin(t)), x, n)


def modified_first_kind(x: float, order: float) -> float:
    n = _order(order, x)
    fail_if(abs(x) > _VANISHED)
    return finite(_series(x, n, 1.0))


def second_kind(x: float, order: float) -> float:
    n = _order(order, x)
    fail_if(x <= 0)
    swinging = _around(lambda t: np.sin(x * np.sin(t) - n * t), x, n)
    sign = -1.0 if n % 2 else 1.0
    with np.errstate(over="ignore"):
        falling = _tail(x, n, lambda t: _falling(x, n, t, sign, np.sinh))
    return finite(swinging - falling / math.pi)


def modified_second_kind(x: float, order: float) -> float:
    n = _order(order, x)
    fail_if(x <= 0)
    with np.errstate(over="ignore"):
        value = _tail(x, n, lambda t: _falling(x, n, t, 1.0, np.cosh) / 2)
    return finite(value)


BESSEL: Family = {
    "BESSELI": spec("n n", modified_first_kind),
    "BESSELJ": spec("n n", first_kind),
    "BESSELK": spec("n n", modified_second_kind),
    "BESSELY": spec("n n", second_kind),
}
