"""Money over time."""

from __future__ import annotations

import math
from collections.abc import Callable

from millstream.values.excel.arrays import Operand
from millstream.values.excel.functions_math import rounded
from millstream.values.excel.gather import numbers, scalars
from millstream.values.excel.registry import Family, spec
from millstream.values.excel.values import (
    DIV0,
    NUM,
    VALUE,
    ErrorValue,
    Raised,
    Scalar,
    checked,
    fail,
    fail_if,
    finite,
    to_number,
)


def _growth(rate: float, periods: float) -> float:
    try:
        value = (1 + rate) ** periods
    except (OverflowError, ZeroDivisionError):
        raise Raised(NUM) from None
    return value if isinstance(value, float) else fail(NUM)


def future_value(
    rate: float, periods: float, payment: float = 0.0, present: float = 0.0, due: float = 0.0
) -> float:
    if rate == 0:
        return -(present + payment * periods) + 0.0
    growth = _growth(rate, periods)
    at_start = 1 + rate if due else 1.0
    return finite(-(present * growth + payment * at_start * (growth - 1) / rate))


def present_value(
    rate: float, periods: float, payment: float = 0.0, future: float = 0.0, due: float = 0.0
) -> float:
    if rate == 0:
        return -(future + payment * periods) + 0.0
    growth = _growth(rate, periods)
    at_start = 1 + rate if due else 1.0
    return finite(-(future + payment * at_start * (growth - 1) / rate) / growth)


def payment(
    rate: float, periods: float, present: float, future: float = 0.0, due: float = 0.0
) -> float:
    fail_if(periods == 0)
    if rate == 0:
        return -(present + future) / periods
    growth = _growth(rate, periods)
    at_start = 1 + rate if due else 1.0
    fail_if(growth == 1)
    return finite(-(present * growth + future) * rate / (at_start * (growth - 1)))


def periods(
    rate: float, payment_: float, present: float, future: float = 0.0, due: float = 0.0
) -> float:
    if rate == 0:
        return -(present + future) / payment_ if payment_ else fail(NUM)
    at_start = payment_ * (1 + rate if due else 1.0)
    over, under = at_start - future * rate, present * rate + at_start
    fail_if(under == 0 or over / under <= 0 or rate <= -1)
    return math.log(over / under) / math.log(1 + rate)


def interest(
    rate: float, period: float, count: float, present: float, future: float = 0.0, due: float = 0.0
) -> float:
    fail_if(not 1 <= period < count + 1)
    each = payment(rate, count, present, future, due)
    if due and period == 1:
        return 0.0
    owed = future_value(rate, period - 1 - (1 if due else 0), each, present, due)
    if due:
        return finite((owed - each) * rate)
    return finite(owed * rate)


def principal(
    rate: float, period: float, count: float, present: float, future: float = 0.0, due: float = 0.0
) -> float:
    return payment(rate, count, present, future, due) - interest(
        rate, period, count, present, future, due
    )


def _cumulative(part: Callable[..., float]) -> Callable[..., float]:
    def total(
        rate: float, count: float, present: float, first: float, last: float, due: float
    ) -> float:
        if rate <= 0 or count <= 0 or present <= 0 or first < 1 or last < first or last > count:
            fail(NUM)
        fail_if(due not in (0, 1))
        span = range(math.ceil(first), int(last) + 1)
        return sum(part(rate, float(n), count, present, 0.0, due) for n in span)

    return total


def _root(function: Callable[[float], float], guess: float) -> float:
    """A zero by Newton's method with a secant slope, from a guess and then from others."""
    for start in (guess, 0.1, 0.01, 0.5, -0.1, -0.5, 1.0, 2.0, -0.9):
        zero = _newton(function, start)
        if zero is not None:
            return zero
    fail(NUM)


def _newton(function: Callable[[float], float], rate: float) -> float | None:
    for _ in range(200):
        try:
            value = function(rate)
            step = 1e-7 * max(1.0, abs(rate))
            slope = (function(rate + step) - function(rate - step)) / (2 * step)
        except (OverflowError, ZeroDivisionError, Raised):
            return None
        if slope == 0 or isinstance(slope, complex) or not math.isfinite(slope):
            return None
        following = rate - value / slope
        if following <= -1:
            following = (rate - 1) / 2
        if abs(following - rate) < 1e-13 * max(1.0, abs(rate)):
            return following
        rate = following
    return rate if abs(function(rate)) < 1e-6 else None


def rate(
    count: float, payment_: float, present: float, future: float = 0.0, due: float = 0.0,
    guess: float = 0.1,
) -> float:  # fmt: skip
    fail_if(count <= 0)

    def balance(r: float) -> float:
        if abs(r) < 1e-12:
            return present + payment_ * count + future
        growth = _growth(r, count)
        paid = payment_ * (1 + r * (due != 0)) * (growth - 1) / r
        return float(present * growth + paid + future)

    return _root(balance, guess)


def net_present_value(rate_: float, *flows: Operand) -> float:
    fail_if(rate_ == -1, DIV0)
    return finite(sum(f / (1 + rate_) ** n for n, f in enumerate(numbers(*flows), 1)))


def internal_rate(flows: Operand, guess: float = 0.1) -> float:
    values = numbers(flows)
    fail_if(not any(v > 0 for v in values) or not any(v < 0 for v in values))

    def balance(r: float) -> float:
        return float(sum(v / (1 + r) ** n for n, v in enumerate(values)))

    return _root(balance, guess)


def _dated(flows: Operand, dates: Operand) -> list[tuple[float, float]]:
    values = [to_number(checked(v)) for v in scalars(flows)]
    days = [math.floor(to_number(checked(v))) for v in scalars(dates)]
    fail_if(len(values) != len(days))
    return [(v, (d - days[0]) / 365) for v, d in zip(values, days, strict=True)]


def dated_value(rate_: float, flows: Operand, dates: Operand) -> float:
    fail_if(rate_ <= -1)
    return finite(sum(v / (1 + rate_) ** years for v, years in _dated(flows, dates)))


def dated_rate(flows: Operand, dates: Operand, guess: float = 0.1) -> float:
    payments = _dated(flows, dates)
    fail_if(not any(v > 0 for v, _ in payments) or not any(v < 0 for v, _ in payments))
    return _root(lambda r: sum(v / (1 + r) ** years for v, years in payments), guess)


def modified_rate(flows: Operand, finance: float, reinvest: float) -> float:
    values = numbers(flows)
    fail_if(not any(v < 0 for v in values), DIV0)
    count = len(values) - 1
    fail_if(count == 0, DIV0)
    gained = sum(v * (1 + reinvest) ** (count - n) for n, v in enumerate(values) if v > 0)
    paid = sum(v / (1 + finance) ** n for n, v in enumerate(values) if v < 0)
    share = gained / -paid
    return float(share ** (1 / count) - 1) if share >= 0 else fail(NUM)


# --- depreciation -----------------------------------------------------------------------


def straight_line(cost: float, salvage: float, life: float) -> float:
    return (cost - salvage) / life if life else fail(DIV0)


def sum_of_years(cost: float, salvage: float, life: float, period: float) -> float:
    fail_if(life <= 0 or not 1 <= period <= life)
    return (cost - salvage) * (life - period + 1) * 2 / (life * (life + 1))


def double_declining(
    cost: float, salvage: float, life: float, period: float, factor: float = 2.0
) -> float:
    fail_if(cost < 0 or salvage < 0 or life <= 0 or not 1 <= period <= life or factor <= 0)
    share = min(1.0, factor / life)
    before = cost * (1 - share) ** (period - 1)
    after = cost * (1 - share) ** period
    return max(0.0, before - max(after, salvage)) if before > salvage else 0.0


#: A depreciation over more periods is not computed.
_MOST_PERIODS = 1_000_000


def fixed_declining(
    cost: float, salvage: float, life: float, period: float, months: float = 12.0
) -> float:
    fail_if(cost < 0 or salvage < 0 or life <= 0 or period < 1 or not 1 <= months <= 12)
    last = life if months == 12 else life + 1
    fail_if(period > min(last, _MOST_PERIODS))
    if cost == 0:
        return 0.0
    share = rounded(1 - (salvage / cost) ** (1 / life), 3)
    value = cost * share * months / 12
    total = value
    for number in range(2, int(period) + 1):
        value = (cost - total) * share
        if number > life:
            value *= (12 - months) / 12
        total += value
    return value


def variable_declining(
    cost: float, salvage: float, life: float, start: float, end: float, factor: float = 2.0,
    no_switch: Scalar = False,  # noqa: FBT002
) -> float:  # fmt: skip
    fail_if(cost < 0 or salvage < 0 or life <= 0 or start < 0 or end < start or end > life)
    fail_if(end > _MOST_PERIODS)
    total, book, since = 0.0, cost, 0.0
    # A start within a period makes the first one short: all others begin where it would.
    until = start % 1 or 1.0
    while since < end:
        amount = min(book * min(1.0, factor / life), max(0.0, book - salvage))
        if not no_switch:
            amount = max(amount, (book - salvage) / (life - since) if book > salvage else 0.0)
        amount *= min(until, end) - since
        if since >= start:
            total += amount
        book -= amount
        since, until = until, until + 1
    return total


# --- rates ------------------------------------------------------------------------------


def effective(nominal: float, count: float) -> float:
    n = int(count)
    return (1 + nominal / n) ** n - 1 if nominal > 0 and n >= 1 else fail(NUM)


def nominal_rate(effective_: float, count: float) -> float:
    n = int(count)
    fail_if(effective_ <= 0 or n < 1)
    return float(n * ((1 + effective_) ** (1 / n) - 1))


def equivalent_rate(count: float, present: float, future: float) -> float:
    fail_if(count <= 0 or present <= 0 or future < 0)
    return float((future / present) ** (1 / count) - 1)


def duration(rate_: float, present: float, future: float) -> float:
    fail_if(rate_ <= 0 or present <= 0 or future <= 0)
    return (math.log(future) - math.log(present)) / math.log(1 + rate_)


def schedule(principal_: float, rates: Operand) -> float:
    for value in scalars(rates):
        if type(value) is ErrorValue:
            raise Raised(value)
        if value is not None and type(value) is not float:
            fail(VALUE)
        principal_ *= 1 + (value or 0.0)
    return principal_


def _digits(fraction: float) -> int:
    n = int(fraction)
    fail_if(n < 0)
    return n or fail(DIV0)


def dollar_decimal(price: float, fraction: float) -> float:
    n = _digits(fraction)
    whole = math.trunc(price)
    return float(whole + (price - whole) * 10 ** math.ceil(math.log10(n)) / n)


def dollar_fraction(price: float, fraction: float) -> float:
    n = _digits(fraction)
    whole = math.trunc(price)
    return float(whole + (price - whole) * n / 10 ** math.ceil(math.log10(n)))


def interest_paid(rate_: float, period: float, count: float, present: float) -> float:
    return present * rate_ * (period / count - 1) if count else fail(DIV0)


FINANCIAL: Family = {
    "CUMIPMT": spec("n n n n n n", _cumulative(interest)),
    "CUMPRINC": spec("n n n n n n", _cumulative(principal)),
    "DB": spec("n n n n n?", fixed_declining),
    "DDB": spec("n n n n n?", double_declining),
    "DOLLARDE": spec("n n", dollar_decimal),
    "DOLLARFR": spec("n n", dollar_fraction),
    "EFFECT": spec("n n", effective),
    "FV": spec("n n n? n? n?", future_value),
    "FVSCHEDULE": spec("n r", schedule),
    "IPMT": spec("n n n n n? n?", interest),
    "IRR": spec("r n?", internal_rate),
    "ISPMT": spec("n n n n", interest_paid),
    "MIRR": spec("r n n", modified_rate),
    "NOMINAL": spec("n n", nominal_rate),
    "NPER": spec("n n n n? n?", periods),
    "NPV": spec("n r+", net_present_value),
    "PDURATION": spec("n n n", duration),
    "PMT": spec("n n n n? n?", payment),
    "PPMT": spec("n n n n n? n?", principal),
    "PV": spec("n n n? n? n?", present_value),
    "RATE": spec("n n n n? n? n?", rate),
    "RRI": spec("n n n", equivalent_rate),
    "SLN": spec("n n n", straight_line),
    "SYD": spec("n n n n", sum_of_years),
    "VDB": spec("n n n n n n? b?", variable_declining),
    "XIRR": spec("r r n?", dated_rate),
    "XNPV": spec("n r r", dated_value),
}
