"""Mathematics and trigonometry."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from millstream.values.excel.arrays import Operand
from millstream.values.excel.gather import has_window, numbers
from millstream.values.excel.operators import power
from millstream.values.excel.registry import Family, spec
from millstream.values.excel.rounding import (
    modulo,
    round_down,
    round_half_away,
    round_up,
    whole_below,
)
from millstream.values.excel.values import (
    DIV0,
    NUM,
    Raised,
    fail,
    fail_if,
    finite,
)


def number_function(function: Callable[[float], float]) -> Callable[[float], float]:
    """A function of one number; outside its domain it is `#NUM!`."""

    def guarded(x: float) -> float:
        try:
            return finite(function(x))
        except (ValueError, OverflowError):
            raise Raised(NUM) from None

    return guarded


# --- rounding ---------------------------------------------------------------------------


def whole(x: float) -> int:
    """A number without its fraction, towards zero."""
    return int(x)


def rounded(x: float, digits: float) -> float:
    """To the nearest, halves away from zero, as the number is shown with 15 digits."""
    return round_half_away(x, _places(digits))


def rounded_up(x: float, digits: float) -> float:
    return finite(round_up(x, _places(digits)))


def rounded_down(x: float, digits: float) -> float:
    return round_down(x, _places(digits))


def _places(digits: float) -> float:
    return float(max(-300, min(300, whole(digits))))


def mround(x: float, multiple: float) -> float:
    if multiple == 0 or x == 0:
        return 0.0
    fail_if((x < 0) != (multiple < 0))
    return rounded(x / multiple, 0) * multiple


def _steps(x: float, step: float) -> float:
    """How many steps, with what is next to a whole number taken for it."""
    ratio = x / step
    near = round(ratio)
    return float(near) if abs(ratio - near) < 1e-12 * max(1.0, abs(ratio)) else ratio


def ceiling(x: float, step: float) -> float:
    if x == 0 or step == 0:
        return 0.0
    fail_if(x > 0 > step)
    return math.ceil(_steps(x, step)) * step + 0.0


def floor(x: float, step: float) -> float:
    if x == 0:
        return 0.0
    fail_if(step == 0, DIV0)
    fail_if(x > 0 > step)
    return math.floor(_steps(x, step)) * step + 0.0


def ceiling_math(x: float, step: float = 1.0, mode: float = 0.0) -> float:
    if step == 0 or x == 0:
        return 0.0
    ratio = _steps(x, abs(step))
    away = x < 0 and mode != 0
    return (math.floor(ratio) if away else math.ceil(ratio)) * abs(step) + 0.0


def floor_math(x: float, step: float = 1.0, mode: float = 0.0) -> float:
    if step == 0 or x == 0:
        return 0.0
    ratio = _steps(x, abs(step))
    towards = x < 0 and mode != 0
    return (math.ceil(ratio) if towards else math.floor(ratio)) * abs(step) + 0.0


def truncated(x: float, digits: float = 0.0) -> float:
    return rounded_down(x, digits)


def even(x: float) -> float:
    return math.copysign(2.0 * math.ceil(abs(x) / 2), x) + 0.0


def odd(x: float) -> float:
    if x == 0:
        return 1.0
    return math.copysign(2.0 * math.ceil((abs(x) + 1) / 2) - 1, x)


def mod(x: float, divisor: float) -> float:
    """The remainder has the sign of the divisor."""
    fail_if(divisor == 0, DIV0)
    fail_if(abs(x / divisor) > 1.125e15)
    return modulo(x, divisor)


def quotient(x: float, divisor: float) -> float:
    fail_if(divisor == 0, DIV0)
    return float(whole(x / divisor))


# --- sums and products ------------------------------------------------------------------


def total(*operands: Operand) -> float:
    return finite(sum_of(numbers(*operands), is_exact=has_window(*operands)))


def percent_of(part: Operand, whole: Operand) -> float:
    divisor = total(whole)
    fail_if(divisor == 0, DIV0)
    return total(part) / divisor


def sum_of(values: list[float], *, is_exact: bool) -> float:
    """From left to right, as Excel adds; over a window exactly, rounded once.

    What has left a window must leave no trace in its sum.
    """
    if is_exact:
        try:
            return math.fsum(values)
        except OverflowError:
            return math.inf
    result = 0.0
    for value in values:
        result += value
    return result


def product(*operands: Operand) -> float:
    """From left to right, as Excel multiplies; over a window exactly, rounded once."""
    factors = [n for o in operands if o is not None for n in numbers(o)]
    if not factors:
        return 0.0
    return finite(exact_product(factors) if has_window(*operands) else math.prod(factors))


def exact_product(values: list[float]) -> float:
    """The nearest float to the product, or an infinity; zero has no sign."""
    over, under = zip(*(v.as_integer_ratio() for v in values), strict=True)
    scale: int = 1 << sum(u.bit_length() - 1 for u in under)
    try:
        return _product_in_halves(over) / scale + 0.0
    except OverflowError:
        return math.inf


def _product_in_halves(values: Sequence[int]) -> int:
    """Long numbers are multiplied by long ones, which is fast."""
    if len(values) <= 8:
        return math.prod(values)
    middle = len(values) // 2
    return _product_in_halves(values[:middle]) * _product_in_halves(values[middle:])


def sum_of_squares(*operands: Operand) -> float:
    squares = [n * n for n in numbers(*operands)]
    return finite(sum_of(squares, is_exact=has_window(*operands)))


def series(x: float, start: float, step: float, coefficients: Operand) -> float:
    terms = numbers(coefficients)
    return finite(sum(a * power(x, start + i * step) for i, a in enumerate(terms)))


# --- whole numbers ----------------------------------------------------------------------


def _naturals(operands: tuple[Operand, ...]) -> list[int]:
    naturals = [whole(n) for n in numbers(*operands)]
    fail_if(any(n < 0 for n in naturals))
    return naturals


def gcd(*operands: Operand) -> float:
    return float(math.gcd(*_naturals(operands)))


def lcm(*operands: Operand) -> float:
    naturals = _naturals(operands)
    return finite(float(math.lcm(*naturals))) if naturals else 0.0


def factorial(x: float) -> float:
    fail_if(x < 0 or x >= 171)
    return float(math.factorial(whole(x)))


def double_factorial(x: float) -> float:
    n = whole(x)
    fail_if(n < -1 or n > 300)
    return finite(float(math.prod(range(n, 0, -2))))


#: From twice as many there are more than 2^1024 ways to choose as many.
_MOST_CHOSEN = 1024


def combinations(n: float, k: float) -> float:
    n, k = whole(n), whole(k)
    fail_if(n < 0 or k < 0 or k > n)
    return _chosen(n, k)


def _chosen(n: int, k: int) -> float:
    """The ways to choose k of n; so many that they are no number are not counted."""
    return _as_float(math.comb(n, k)) if min(k, n - k) <= _MOST_CHOSEN else fail(NUM)


def combinations_repeated(n: float, k: float) -> float:
    n, k = whole(n), whole(k)
    fail_if(n < 0 or k < 0 or (n == 0 and k > 0))
    return _chosen(n + k - 1, k) if n + k else 1.0


def permutations(n: float, k: float) -> float:
    n, k = whole(n), whole(k)
    fail_if(n < 0 or k < 0 or k > n)
    return _as_float(math.perm(n, k)) if k <= _MOST_CHOSEN else fail(NUM)


def permutations_repeated(n: float, k: float) -> float:
    fail_if(n < 0 or k < 0)
    return power(float(whole(n)), float(whole(k))) if k else 1.0


def _as_float(n: int) -> float:
    try:
        return float(n)
    except OverflowError:
        raise Raised(NUM) from None


def multinomial(*operands: Operand) -> float:
    naturals = _naturals(operands)
    result, chosen = 1, 0
    for n in naturals:
        chosen += n
        fail_if(min(n, chosen - n) > _MOST_CHOSEN)
        result *= math.comb(chosen, n)
    return _as_float(result)


# --- logarithms, roots ------------------------------------------------------------------


def logarithm(x: float, base: float = 10.0) -> float:
    fail_if(x <= 0 or base <= 0)
    fail_if(base == 1, DIV0)
    if base == 10:
        return math.log10(x)
    return math.log2(x) if base == 2 else math.log(x) / math.log(base)


def exponential(x: float) -> float:
    return number_function(math.exp)(x)


def atan2(x: float, y: float) -> float:
    fail_if(x == 0 and y == 0, DIV0)
    return math.atan2(y, x)


def _reciprocal(function: Callable[[float], float]) -> Callable[[float], float]:
    def inverse(x: float) -> float:
        value = function(x)
        return finite(1 / value) if value else fail(DIV0)

    return inverse


def acoth(x: float) -> float:
    fail_if(abs(x) <= 1)
    return math.atanh(1 / x)


def acot(x: float) -> float:
    return math.pi / 2 - math.atan(x)


# --- others ----------------------------------------------------------------------------


def delta(a: float, b: float = 0.0) -> float:
    return 1.0 if a == b else 0.0


def error_function(low: float, high: float | None = None) -> float:
    return math.erf(low) if high is None else math.erf(high) - math.erf(low)


def _sqrtpi(x: float) -> float:
    return math.sqrt(x * math.pi) if x >= 0 else fail(NUM)


def _sign(x: float) -> float:
    return float((x > 0) - (x < 0))


def _limited(function: Callable[[float], float]) -> Callable[[float], float]:
    """Excel's sines know angles below 2^27 only."""
    return lambda x: function(x) if abs(x) < 2**27 else fail(NUM)


_ONE: dict[str, Callable[[float], float]] = {
    "ABS": abs, "ACOS": math.acos, "ACOSH": math.acosh, "ASIN": math.asin,
    "ASINH": math.asinh, "ATAN": math.atan, "ATANH": math.atanh, "COS": _limited(math.cos),
    "COSH": math.cosh, "EXP": math.exp, "LN": math.log, "LOG10": math.log10,
    "RADIANS": math.radians, "SIN": _limited(math.sin), "SINH": math.sinh, "SQRT": math.sqrt,
    "TAN": _limited(math.tan), "TANH": math.tanh, "DEGREES": math.degrees, "SIGN": _sign,
    "INT": whole_below, "EVEN": even, "ODD": odd, "ACOT": acot,
    "ACOTH": acoth, "SQRTPI": _sqrtpi, "ERFC": math.erfc, "ERFC.PRECISE": math.erfc,
    "ERF.PRECISE": math.erf,
}  # fmt: skip

MATH: Family = {
    **{name: spec("n", number_function(f)) for name, f in _ONE.items()},
    **{
        name: spec("n", _reciprocal(number_function(f)))
        for name, f in (
            ("COT", math.tan),
            ("COTH", math.tanh),
            ("CSC", math.sin),
            ("CSCH", math.sinh),
            ("SEC", math.cos),
            ("SECH", math.cosh),
        )
    },
    "ATAN2": spec("n n", atan2),
    "CEILING": spec("n n", ceiling),
    "CEILING.MATH": spec("n n? n?", ceiling_math),
    "CEILING.PRECISE": spec("n n?", ceiling_math),
    "COMBIN": spec("n n", combinations),
    "COMBINA": spec("n n", combinations_repeated),
    "DELTA": spec("n n?", delta),
    "ERF": spec("n n?", error_function),
    "FACT": spec("n", factorial),
    "FACTDOUBLE": spec("n", double_factorial),
    "FLOOR": spec("n n", floor),
    "FLOOR.MATH": spec("n n? n?", floor_math),
    "FLOOR.PRECISE": spec("n n?", floor_math),
    "GCD": spec("r+", gcd),
    "GESTEP": spec("n n?", lambda a, step=0.0: 1.0 if a >= step else 0.0),
    "ISO.CEILING": spec("n n?", ceiling_math),
    "LCM": spec("r+", lcm),
    "LOG": spec("n n?", logarithm),
    "MOD": spec("n n", mod),
    "MROUND": spec("n n", mround),
    "MULTINOMIAL": spec("r+", multinomial),
    "PERMUT": spec("n n", permutations),
    "PERMUTATIONA": spec("n n", permutations_repeated),
    "PI": spec("", lambda: math.pi),
    "POWER": spec("n n", power),
    "PRODUCT": spec("r+", product),
    "PERCENTOF": spec("r r", percent_of),
    "QUOTIENT": spec("n n", quotient),
    "ROUND": spec("n n", rounded),
    "ROUNDDOWN": spec("n n", rounded_down),
    "ROUNDUP": spec("n n", rounded_up),
    "SERIESSUM": spec("n n n r", series),
    "SUM": spec("r+", total),
    "SUMSQ": spec("r+", sum_of_squares),
    "TRUNC": spec("n n?", truncated),
}
