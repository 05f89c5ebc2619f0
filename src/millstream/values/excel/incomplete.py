"""The incomplete gamma and beta functions, on which most distributions rest.

Both give what lies below and what lies above: taking the small one from 1 would lose it. The
factors in front are made of what is left when large logarithms have been taken from each other
on paper (after Loader), so that they keep their digits where arguments are large.
"""

from __future__ import annotations

import math

#: Above this the gamma function is so near the normal one that a few terms say the rest.
_LARGE = 1e7
_MOST_STEPS = 200_000
#: The squares of larger numbers are none.
_SQUARABLE = 1e150


#: Of the series of what Stirling's formula leaves out, from the last term on.
_TERMS = (-691 / 360360, 1 / 1188, -1 / 1680, 1 / 1260, -1 / 360, 1 / 12)


def _stirling_rest(n: float) -> float:
    """What Stirling's formula for the logarithm of n! leaves out."""
    before = 0.0
    while n < 16:
        # So much more is left out for n than for the next number.
        before += (n + 0.5) * math.log1p(1 / n) - 1
        n += 1
    total, square = 0.0, n * n
    for term in _TERMS:
        total = total / square + term
    return before + total / n


def log_gamma(x: float) -> float:
    """The logarithm of the gamma function of a positive number, the same on all machines."""
    return (x - 0.5) * math.log(x) - x + 0.5 * math.log(2 * math.pi) + _stirling_rest(x)


def deviance(x: float, middle: float) -> float:
    """The sum x log(x / middle) + middle - x, which all but vanishes where both are near."""
    if middle <= 0 or math.isinf(middle):
        return math.inf
    if x <= 0:
        return middle
    if abs(x - middle) >= 0.1 * (x + middle):
        return x * (math.log(x) - math.log(middle)) + middle - x
    v = (x - middle) / (x + middle)
    total, power = (x - middle) * v, 2 * x * v
    for n in range(1, 100):
        power *= v * v
        more = total + power / (2 * n + 1)
        if more == total:
            break
        total = more
    return total


def poisson_density(x: float, middle: float) -> float:
    """middle^x e^-middle / x!, for any x."""
    if middle <= 0:
        return 1.0 if x == 0 else 0.0
    if x <= 0:
        return math.exp(-middle)
    if x < 1:
        return math.exp(x * math.log(middle) - middle - log_gamma(x + 1))
    return math.exp(-_stirling_rest(x) - deviance(x, middle)) / math.sqrt(2 * math.pi * x)


def binomial_density(a: float, b: float, p: float, q: float) -> float:
    """p^a q^b times the ways to choose a of a + b, for any a and b; p + q is 1."""
    if a == 0 or b == 0:
        return _power(q, p, b) if a == 0 else _power(p, q, a)
    n = a + b
    rest = _stirling_rest(n) - _stirling_rest(a) - _stirling_rest(b)
    away = deviance(a, n * p) + deviance(b, n * q)
    return math.exp(rest - away) * math.sqrt(n / (2 * math.pi * a * b))


def _power(p: float, q: float, n: float) -> float:
    """p^n; p + q is 1, and the smaller of both has the more digits."""
    if p <= 0:
        return 1.0 if n == 0 else 0.0
    return math.exp(n * (math.log(p) if p < q else math.log1p(-q)))


# --- gamma ------------------------------------------------------------------------------


def gamma_tails(a: float, x: float) -> tuple[float, float]:
    """The regularised incomplete gamma functions P(a, x) and Q(a, x)."""
    if x <= 0:
        return 0.0, 1.0
    if math.isinf(x):
        return 1.0, 0.0
    if a > _LARGE:
        return _large_gamma(a, x)
    front = poisson_density(a, x)
    if x >= a + 1:
        upper = front * a * _gamma_fraction(a, x)
        return 1 - upper, upper
    term = total = 1.0
    n = a
    while term > total * 1e-17:
        n += 1
        term *= x / n
        total += term
    return front * total, 1 - front * total


def _gamma_fraction(a: float, x: float) -> float:
    b, c = x + 1 - a, 1e300
    d = 1 / b
    h = d
    for i in range(1, _MOST_STEPS):
        an = -i * (i - a)
        b += 2
        d = 1 / (an * d + b or 1e-300)
        c = b + an / c or 1e-300
        h *= d * c
        if abs(d * c - 1) < 1e-16:
            break
    return h


def _large_gamma(a: float, x: float) -> tuple[float, float]:
    """Temme's expansion, of which two terms are enough."""
    half = deviance(a, x)
    ratio = x / a - 1
    eta = math.copysign(math.sqrt(2 * half / a), ratio)
    if abs(eta) < 0.01:
        first = -1 / 3 + eta / 12 - 2 * eta * eta / 135 + eta * eta * eta / 864
        first += eta * eta * eta * eta / 2835
    else:
        first = 1 / ratio - 1 / eta
    rest = math.exp(-half) / math.sqrt(2 * math.pi * a) * first
    root = math.copysign(math.sqrt(half), ratio)
    return 0.5 * math.erfc(-root) - rest, 0.5 * math.erfc(root) + rest


# --- beta -------------------------------------------------------------------------------


def beta_tails(a: float, b: float, x: float, y: float) -> tuple[float, float]:
    """The regularised incomplete beta function of x, and what it leaves; x + y is 1."""
    if x <= 0:
        return 0.0, 1.0
    if y <= 0:
        return 1.0, 0.0
    front = binomial_density(a, b, x, y) * a * b / (a + b)
    if x < (a + 1) / (a + b + 2):
        lower = front * _beta_fraction(a, b, x) / a
        return lower, 1 - lower
    upper = front * _beta_fraction(b, a, y) / b
    return 1 - upper, upper


def _beta_fraction(a: float, b: float, x: float) -> float:
    if a + b > _SQUARABLE:
        raise OverflowError
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1) or 1e-300)
    h = d
    for m in range(1, _MOST_STEPS):
        for numerator in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / (1 + numerator * d or 1e-300)
            c = 1 + numerator / c or 1e-300
            h *= d * c
        if abs(d * c - 1) < 1e-16:
            return h
    # It takes about the root of the parameters: of larger ones nothing can be said.
    if not abs(d * c - 1) < 1e-12:
        raise OverflowError
    return h
