"""Tests of significance: how likely it is that samples differ as they do by chance."""

from __future__ import annotations

import math

from millstream.values.excel.arrays import Operand
from millstream.values.excel.distributions import chi_right
from millstream.values.excel.functions_criteria import table
from millstream.values.excel.functions_statistics import mean, pairs, variance
from millstream.values.excel.gather import numbers
from millstream.values.excel.incomplete import beta_tails
from millstream.values.excel.registry import Family, spec
from millstream.values.excel.values import DIV0, NA, fail, fail_if


def t_test(first: Operand, second: Operand, tails: float, kind: float) -> float:
    """Kinds: 1 pairs, 2 equal variances, 3 unequal ones."""
    fail_if(int(tails) not in (1, 2) or int(kind) not in (1, 2, 3))
    if int(kind) == 1:
        t, degrees = _paired(first, second)
    else:
        t, degrees = _two_samples(numbers(first), numbers(second), is_equal=int(kind) == 2)
    away = degrees + t * t
    both, _ = beta_tails(degrees / 2, 0.5, degrees / away, t * t / away)
    return both * int(tails) / 2


def _paired(first: Operand, second: Operand) -> tuple[float, float]:
    xs, ys = pairs(first, second)
    gaps = [x - y for x, y in zip(xs, ys, strict=True)]
    fail_if(len(gaps) < 2, DIV0)
    spread = math.sqrt(variance(gaps, is_sample=True) / len(gaps))
    return (mean(gaps) / spread if spread else fail(DIV0)), len(gaps) - 1


def _two_samples(xs: list[float], ys: list[float], *, is_equal: bool) -> tuple[float, float]:
    m, n = len(xs), len(ys)
    fail_if(m < 2 or n < 2, DIV0)
    a, b = variance(xs, is_sample=True) / m, variance(ys, is_sample=True) / n
    degrees: float = m + n - 2
    if is_equal:
        common = (a * m * (m - 1) + b * n * (n - 1)) / degrees
        a, b = common / m, common / n
    fail_if(a + b == 0, DIV0)
    if not is_equal:
        degrees = (a + b) ** 2 / (a * a / (m - 1) + b * b / (n - 1))
    return (mean(xs) - mean(ys)) / math.sqrt(a + b), degrees


def f_test(first: Operand, second: Operand) -> float:
    """Twice the smaller of the two tails."""
    xs, ys = numbers(first), numbers(second)
    fail_if(len(xs) < 2 or len(ys) < 2, DIV0)
    one, two = variance(xs, is_sample=True), variance(ys, is_sample=True)
    fail_if(one == 0 or two == 0, DIV0)
    m, n = len(xs) - 1, len(ys) - 1
    away = n + m * one / two
    return 2 * min(beta_tails(n / 2, m / 2, n / away, m * one / two / away))


def chi_test(actual: Operand, expected: Operand) -> float:
    observed, wanted = table(actual), table(expected)
    rows, columns = observed.height, observed.width
    fail_if(rows * columns == 1, NA)
    total = 0.0
    for seen, likely in zip(*pairs(observed, wanted), strict=True):
        fail_if(likely == 0, DIV0)
        total += (seen - likely) ** 2 / likely
    degrees = (rows - 1) * (columns - 1) or max(rows, columns) - 1
    return chi_right(total, float(degrees))


def probability(values: Operand, shares: Operand, low: float, high: float | None = None) -> float:
    """The sum of the shares of values between two limits, or of one value."""
    xs, parts = pairs(values, shares)
    fail_if(any(not 0 <= p <= 1 for p in parts) or abs(math.fsum(parts) - 1) > 1e-9)
    top = low if high is None else high
    return math.fsum(p for x, p in zip(xs, parts, strict=True) if low <= x <= top)


SIGNIFICANCE: Family = {
    "CHISQ.TEST": spec("a a", chi_test),
    "CHITEST": spec("a a", chi_test),
    "F.TEST": spec("a a", f_test),
    "FTEST": spec("a a", f_test),
    "PROB": spec("a a n n?", probability),
    "T.TEST": spec("a a n n", t_test),
    "TTEST": spec("a a n n", t_test),
}
