"""Statistics over values: counts, means, spreads, pairs."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from millstream.values.excel.arrays import Area, Array, Operand, Table, Union
from millstream.values.excel.functions_math import rounded_down, sum_of
from millstream.values.excel.gather import (
    Tables,
    given,
    has_window,
    numbers,
    numbers_and_more,
    scalars,
)
from millstream.values.excel.numerals import number_in_text
from millstream.values.excel.registry import Family, spec
from millstream.values.excel.rounding import SQUARABLE
from millstream.values.excel.values import (
    DIV0,
    NA,
    NUM,
    VALUE,
    ErrorValue,
    Raised,
    Scalar,
    checked,
    fail,
    fail_if,
    finite,
)


def _sum(values: list[float]) -> float:
    result = 0.0
    for value in values:
        result += value
    return result


# --- counts -----------------------------------------------------------------------------


def count(*operands: Operand) -> float:
    total = 0
    for operand in operands:
        if isinstance(operand, Tables):
            total += sum(1 for v in operand.given() if type(v) is float)
        else:
            total += _counts(operand)
    return float(total)


def _counts(value: Scalar) -> bool:
    """A written text counts if it can be read as a number; an argument left out counts too."""
    if type(value) is str:
        return number_in_text(value) is not None
    return type(value) is not ErrorValue


def count_all(*operands: Operand) -> float:
    return float(sum(1 for _ in given(*operands)))


def count_blank(operand: Operand) -> float:
    if not isinstance(operand, Area):
        return float(sum(1 for v in scalars(operand) if v is None or v == ""))
    cells = operand.height * operand.width
    return float(cells - sum(1 for v in operand.given() if type(v) is not str or v != ""))


# --- means ------------------------------------------------------------------------------


def mean(values: list[float]) -> float:
    return finite(_sum(values) / len(values)) if values else fail(DIV0)


def average(*operands: Operand) -> float:
    values = numbers(*operands)
    fail_if(not values, DIV0)
    return finite(sum_of(values, is_exact=has_window(*operands)) / len(values))


def geometric_mean(*operands: Operand) -> float:
    values = numbers(*operands)
    fail_if(not values or min(values) <= 0)
    return math.exp(mean([math.log(v) for v in values]))


def harmonic_mean(*operands: Operand) -> float:
    values = numbers(*operands)
    fail_if(not values or min(values) <= 0)
    return len(values) / _sum([1 / v for v in values])


def trimmed_mean(operand: Operand, share: float) -> float:
    values = sorted(numbers(operand))
    fail_if(not 0 <= share < 1 or not values)
    cut = int(rounded_down(len(values) * share / 2, 0))
    return mean(values[cut : len(values) - cut])


# --- spreads ----------------------------------------------------------------------------


def squared_deviations(values: list[float]) -> float:
    middle = mean(values)
    return _sum([(v - middle) * (v - middle) for v in values])


def variance(values: list[float], *, is_sample: bool) -> float:
    divisor = len(values) - is_sample
    return finite(squared_deviations(values) / divisor) if divisor > 0 else fail(DIV0)


def variance_of_window(values: list[float], *, is_sample: bool) -> float:
    """From exact sums, rounded once, so that what has left a window leaves no trace in it."""
    count = len(values)
    fail_if(count <= is_sample, DIV0)
    fail_if(not all(abs(v) < SQUARABLE for v in values))
    squares = sum(Fraction(v) ** 2 for v in values)
    upper = count * squares - sum(Fraction(v) for v in values) ** 2
    return float(upper) / (count * (count - is_sample))


def _spread(
    choose: Callable[..., list[float]], *, is_sample: bool, is_root: bool
) -> Callable[..., float]:
    def spread(*operands: Operand) -> float:
        measure = variance_of_window if has_window(*operands) else variance
        value = measure(choose(*operands), is_sample=is_sample)
        return math.sqrt(value) if is_root else value

    return spread


def mean_deviation(*operands: Operand) -> float:
    values = numbers(*operands)
    fail_if(not values)
    middle = mean(values)
    return mean([abs(v - middle) for v in values])


def deviations(*operands: Operand) -> float:
    values = numbers(*operands)
    return squared_deviations(values) if values else fail(NUM)


def _moments(operands: tuple[Operand, ...], least: int) -> tuple[list[float], int]:
    values = numbers(*operands)
    fail_if(len(values) < least, DIV0)
    middle, deviation = mean(values), math.sqrt(variance(values, is_sample=True))
    fail_if(deviation == 0, DIV0)
    return [(v - middle) / deviation for v in values], len(values)


def skewness(*operands: Operand) -> float:
    parts, n = _moments(operands, 3)
    return n / ((n - 1) * (n - 2)) * _sum([p**3 for p in parts])


def skewness_of_all(*operands: Operand) -> float:
    values = numbers(*operands)
    fail_if(len(values) < 3, DIV0)
    middle, spread = mean(values), math.sqrt(variance(values, is_sample=False))
    return mean([((v - middle) / spread) ** 3 for v in values]) if spread else fail(DIV0)


def kurtosis(*operands: Operand) -> float:
    parts, n = _moments(operands, 4)
    head = n * (n + 1) / ((n - 1) * (n - 2) * (n - 3)) * _sum([p**4 for p in parts])
    return head - 3 * (n - 1) ** 2 / ((n - 2) * (n - 3))


def standardized(x: float, middle: float, deviation: float) -> float:
    return (x - middle) / deviation if deviation > 0 else fail(NUM)


# --- pairs ------------------------------------------------------------------------------


def pairs(first: Operand, second: Operand) -> tuple[list[float], list[float]]:
    """Numbers that stand at the same place; a pair with anything else is passed over."""
    one, other = list(scalars(first)), list(scalars(second))
    fail_if(len(one) != len(other), NA)
    for value in (*one, *other):
        checked(value)  # an error matters, even beside an empty cell
    both = [
        (a, b) for a, b in zip(one, other, strict=True) if type(a) is float and type(b) is float
    ]
    return [a for a, _ in both], [b for _, b in both]


def _products(xs: list[float], ys: list[float]) -> float:
    x, y = mean(xs), mean(ys)
    return _sum([(a - x) * (b - y) for a, b in zip(xs, ys, strict=True)])


def correlation(first: Operand, second: Operand) -> float:
    xs, ys = pairs(first, second)
    fail_if(not xs, DIV0)
    spread = math.sqrt(squared_deviations(xs) * squared_deviations(ys))
    return _products(xs, ys) / spread if spread else fail(DIV0)


def determination(first: Operand, second: Operand) -> float:
    correlated = correlation(first, second)
    return correlated * correlated


def covariance(first: Operand, second: Operand) -> float:
    xs, ys = pairs(first, second)
    return _products(xs, ys) / len(xs) if xs else fail(DIV0)


def covariance_of_sample(first: Operand, second: Operand) -> float:
    xs, ys = pairs(first, second)
    return _products(xs, ys) / (len(xs) - 1) if len(xs) > 1 else fail(DIV0)


def line(known_ys: Operand, known_xs: Operand) -> tuple[float, float]:
    """Slope and intercept of the least-squares line."""
    ys, xs = pairs(known_ys, known_xs)
    fail_if(not xs, DIV0)
    spread = squared_deviations(xs)
    fail_if(spread == 0, DIV0)
    steepness = _products(xs, ys) / spread
    return steepness, mean(ys) - steepness * mean(xs)


def slope(known_ys: Operand, known_xs: Operand) -> float:
    return line(known_ys, known_xs)[0]


def intercept(known_ys: Operand, known_xs: Operand) -> float:
    return line(known_ys, known_xs)[1]


def forecast(x: float, known_ys: Operand, known_xs: Operand) -> float:
    steepness, start = line(known_ys, known_xs)
    return start + steepness * x


def standard_error(known_ys: Operand, known_xs: Operand) -> float:
    ys, xs = pairs(known_ys, known_xs)
    fail_if(len(xs) < 3, DIV0)
    spread = squared_deviations(xs)
    fail_if(spread == 0, DIV0)
    products = _products(xs, ys)
    rest = squared_deviations(ys) - products * products / spread
    return math.sqrt(max(0.0, rest) / (len(xs) - 2))


def _over_pairs(function: Callable[[float, float], float]) -> Callable[[Operand, Operand], float]:
    def apply(first: Operand, second: Operand) -> float:
        xs, ys = pairs(first, second)
        fail_if(not xs, DIV0)
        return finite(_sum([function(a, b) for a, b in zip(xs, ys, strict=True)]))

    return apply


def _is_one_text(operand: Operand) -> bool:
    """Is it a text, be it in a cell? Among others a text counts as zero, alone it is an error."""
    if isinstance(operand, Area) and operand.is_cell:
        operand = operand.at(0, 0)
    return type(operand) is str


def product_sum(*operands: Operand) -> float:
    """SUMPRODUCT: what is no number counts as zero; shapes must agree."""
    tables: list[Table] = []
    for operand in operands:
        if isinstance(operand, Union) or _is_one_text(operand):
            fail(VALUE)
        tables.append(operand if isinstance(operand, (Array, Area)) else Array(((operand,),)))
    fail_if(len({(t.height, t.width) for t in tables}) > 1, VALUE)
    columns = [list(t.values()) for t in tables]
    parts = []
    for values in zip(*columns, strict=True):
        part = 1.0
        for value in values:
            if type(value) is ErrorValue:
                raise Raised(value)
            part *= value if type(value) is float else 0.0
        parts.append(part)
    return finite(sum_of(parts, is_exact=has_window(*tables)))


_SPREADS = {
    ("STDEV", "STDEV.S"): (numbers, True, True),
    ("STDEVP", "STDEV.P"): (numbers, False, True),
    ("VAR", "VAR.S"): (numbers, True, False),
    ("VARP", "VAR.P"): (numbers, False, False),
    ("STDEVA",): (numbers_and_more, True, True),
    ("STDEVPA",): (numbers_and_more, False, True),
    ("VARA",): (numbers_and_more, True, False),
    ("VARPA",): (numbers_and_more, False, False),
}

STATISTICS: Family = {
    **{
        name: spec("r+", _spread(choose, is_sample=sample, is_root=root))
        for names, (choose, sample, root) in _SPREADS.items()
        for name in names
    },
    "AVEDEV": spec("r+", mean_deviation),
    "AVERAGE": spec("r+", average),
    "AVERAGEA": spec("r+", lambda *o: mean(numbers_and_more(*o))),
    "CORREL": spec("a a", correlation),
    "COUNT": spec("r+", count),
    "COUNTA": spec("r+", count_all),
    "COUNTBLANK": spec("r", count_blank),
    "COVAR": spec("a a", covariance),
    "COVARIANCE.P": spec("a a", covariance),
    "COVARIANCE.S": spec("a a", covariance_of_sample),
    "DEVSQ": spec("r+", deviations),
    "FORECAST": spec("n a a", forecast),
    "FORECAST.LINEAR": spec("n a a", forecast),
    "GEOMEAN": spec("r+", geometric_mean),
    "HARMEAN": spec("r+", harmonic_mean),
    "INTERCEPT": spec("a a", intercept),
    "KURT": spec("r+", kurtosis),
    "PEARSON": spec("a a", correlation),
    "RSQ": spec("a a", determination),
    "SKEW": spec("r+", skewness),
    "SKEW.P": spec("r+", skewness_of_all),
    "SLOPE": spec("a a", slope),
    "STANDARDIZE": spec("n n n", standardized),
    "STEYX": spec("a a", standard_error),
    "SUMPRODUCT": spec("a+", product_sum),
    "SUMX2MY2": spec("a a", _over_pairs(lambda a, b: a * a - b * b)),
    "SUMX2PY2": spec("a a", _over_pairs(lambda a, b: a * a + b * b)),
    "SUMXMY2": spec("a a", _over_pairs(lambda a, b: (a - b) ** 2)),
    "TRIMMEAN": spec("r n", trimmed_mean),
}
