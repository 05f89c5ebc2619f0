"""Money over time.

Functions of numbers are plain: loops of sheets compile these very definitions
(`kernels/sheets/defined_money`). They say that there is no number by `fail`, `fail_if` and
`finite`, and functions that are searched for a zero by a NaN.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

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
    checked,
    fail,
    fail_if,
    finite,
    to_number,
)

#: What takes more periods is not computed.
_MOST_PERIODS = 1_000_000


def raised(base: float, exponent: float) -> float:
    """A power; NaN where it is no real number, or too large a one."""
    try:
        value = base**exponent
    except (OverflowError, ZeroDivisionError):
        return math.nan
    return value if isinstance(value, float) else math.nan


def _growth(rate: float, periods: float) -> float:
    return finite(raised(1 + rate, periods))


def _discounted(value: float, rate: float, periods: float) -> float:
    growth = raised(1 + rate, periods)
    return value / growth if growth else math.nan


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


def _whole_periods(
    rate: float, count: float, present: float, first: float, last: float, due: float
) -> tuple[int, int]:
    """Over which periods something is added up: from the first on, and before the second."""
    if rate <= 0 or count <= 0 or present <= 0 or first < 1 or last < first or last > count:
        fail(NUM)
    fail_if(due not in (0, 1))
    fail_if(last >= _MOST_PERIODS)
    return math.ceil(first), int(last) + 1


def total_interest(
    rate: float, count: float, present: float, first: float, last: float, due: float
) -> float:
    begin, end = _whole_periods(rate, count, present, first, last, due)
    total = 0.0
    for number in range(begin, end):
        total += interest(rate, float(number), count, present, 0.0, due)
    return total


def total_principal(
    rate: float, count: float, present: float, first: float, last: float, due: float
) -> float:
    begin, end = _whole_periods(rate, count, present, first, last, due)
    total = 0.0
    for number in range(begin, end):
        total += principal(rate, float(number), count, present, 0.0, due)
    return total


#: What is zero at the rate that is looked for: the balance of an annuity, or the worth of flows.
_ANNUITY, _FLOWS, _DATED = range(3)


def _rest(
    kind: int, rate: float, flows: Sequence[float], years: Sequence[float], count: int
) -> float:
    if kind == _ANNUITY:
        return _balance(rate, flows[0], flows[1], flows[2], flows[3], flows[4])
    if kind == _FLOWS:
        return _worth_now(rate, flows, count)
    return dated_worth(rate, flows, years, count)


def _root(
    kind: int, guess: float, flows: Sequence[float], years: Sequence[float], count: int
) -> float:
    """A zero by Newton's method with a secant slope, from a guess and then from others."""
    for start in (guess, 0.1, 0.01, 0.5, -0.1, -0.5, 1.0, 2.0, -0.9):
        zero = _newton(kind, start, flows, years, count)
        if not math.isnan(zero):
            return zero
    return fail(NUM)


def _newton(
    kind: int, rate: float, flows: Sequence[float], years: Sequence[float], count: int
) -> float:
    """NaN if there is none near a rate."""
    for _ in range(200):
        value = _rest(kind, rate, flows, years, count)
        step = 1e-7 * max(1.0, abs(rate))
        above = _rest(kind, rate + step, flows, years, count)
        slope = (above - _rest(kind, rate - step, flows, years, count)) / (2 * step)
        if slope == 0 or not math.isfinite(slope):
            return math.nan
        following = rate - value / slope
        if following <= -1:
            following = (rate - 1) / 2
        if abs(following - rate) < 1e-13 * max(1.0, abs(rate)):
            return following
        rate = following
    return rate if abs(_rest(kind, rate, flows, years, count)) < 1e-6 else math.nan


def _balance(
    rate: float, count: float, payment_: float, present: float, future: float, due: float
) -> float:
    if abs(rate) < 1e-12:
        return present + payment_ * count + future
    growth = raised(1 + rate, count)
    paid = payment_ * (1 + rate * (due != 0)) * (growth - 1) / rate
    return present * growth + paid + future


def rate(
    count: float, payment_: float, present: float, future: float = 0.0, due: float = 0.0,
    guess: float = 0.1,
) -> float:  # fmt: skip
    fail_if(count <= 0)
    numbers_ = (count, payment_, present, future, due)
    return _root(_ANNUITY, guess, numbers_, numbers_, 0)


def _worth_now(rate_: float, flows: Sequence[float], count: int) -> float:
    """What flows are worth when the first comes, by products: a search asks for it often."""
    total, growth = 0.0, 1.0
    for n in range(count):
        if growth == 0:
            return math.nan
        total += flows[n] / growth
        growth *= 1 + rate_
    return total


def present_worth(rate_: float, flows: Sequence[float], count: int) -> float:
    fail_if(rate_ == -1, DIV0)
    total = 0.0
    for n in range(count):
        total += _discounted(flows[n], rate_, float(n + 1))
    return finite(total)


def net_present_value(rate_: float, *flows: Operand) -> float:
    values = numbers(*flows)
    return present_worth(rate_, values, len(values))


def _has_both_signs(flows: Sequence[float], count: int) -> bool:
    least = most = 0.0
    for n in range(count):
        least, most = min(least, flows[n]), max(most, flows[n])
    return least < 0 < most


def rate_of_flows(guess: float, flows: Sequence[float], count: int) -> float:
    fail_if(not _has_both_signs(flows, count))
    return _root(_FLOWS, guess, flows, flows, count)


def internal_rate(flows: Operand, guess: float = 0.1) -> float:
    values = numbers(flows)
    return rate_of_flows(guess, values, len(values))


def _dated(flows: Operand, dates: Operand) -> tuple[list[float], list[float]]:
    values = [to_number(checked(v)) for v in scalars(flows)]
    days = [math.floor(to_number(checked(v))) for v in scalars(dates)]
    fail_if(len(values) != len(days))
    return values, [(d - days[0]) / 365 for d in days]


def dated_worth(rate_: float, flows: Sequence[float], years: Sequence[float], count: int) -> float:
    total = 0.0
    for n in range(count):
        total += _discounted(flows[n], rate_, years[n])
    return total


def dated_value(rate_: float, flows: Operand, dates: Operand) -> float:
    fail_if(rate_ <= -1)
    values, years = _dated(flows, dates)
    return finite(dated_worth(rate_, values, years, len(values)))


def dated_rate(flows: Operand, dates: Operand, guess: float = 0.1) -> float:
    values, years = _dated(flows, dates)
    return rate_of_dated(guess, values, years, len(values))


def rate_of_dated(
    guess: float, flows: Sequence[float], years: Sequence[float], count: int
) -> float:
    fail_if(not _has_both_signs(flows, count))
    return _root(_DATED, guess, flows, years, count)


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
    kept = 1 - min(1.0, factor / life)
    before = cost * raised(kept, period - 1)
    after = cost * raised(kept, period)
    return max(0.0, before - max(after, salvage)) if before > salvage else 0.0


def fixed_declining(
    cost: float, salvage: float, life: float, period: float, months: float = 12.0
) -> float:
    fail_if(cost < 0 or salvage < 0 or life <= 0 or period < 1 or not 1 <= months <= 12)
    last = life if months == 12 else life + 1
    fail_if(period > min(last, _MOST_PERIODS))
    if cost == 0:
        return 0.0
    share = rounded(1 - raised(salvage / cost, 1 / life), 3)
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
    no_switch: bool = False,  # noqa: FBT001, FBT002
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


#: More often interest is not paid: all such numbers are whole.
_MOST_COMPOUNDED = 2.0**53


def effective(nominal: float, count: float) -> float:
    fail_if(nominal <= 0 or not 1 <= count < _MOST_COMPOUNDED)
    n = float(int(count))
    return finite(raised(1 + nominal / n, n) - 1)


def nominal_rate(effective_: float, count: float) -> float:
    fail_if(effective_ <= 0 or not 1 <= count < _MOST_COMPOUNDED)
    n = float(int(count))
    return n * (raised(1 + effective_, 1 / n) - 1)


def equivalent_rate(count: float, present: float, future: float) -> float:
    fail_if(count <= 0 or present <= 0 or future < 0)
    return finite(raised(future / present, 1 / count) - 1)


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


def _digits(fraction: float) -> float:
    fail_if(fraction <= -1)
    fail_if(fraction < 1, DIV0)
    return float(math.trunc(fraction))


def dollar_decimal(price: float, fraction: float) -> float:
    n = _digits(fraction)
    whole = math.copysign(abs(price) // 1.0, price)
    return float(whole + (price - whole) * raised(10.0, math.ceil(math.log10(n))) / n)


def dollar_fraction(price: float, fraction: float) -> float:
    n = _digits(fraction)
    whole = math.copysign(abs(price) // 1.0, price)
    return float(whole + (price - whole) * n / raised(10.0, math.ceil(math.log10(n))))


def interest_paid(rate_: float, period: float, count: float, present: float) -> float:
    return present * rate_ * (period / count - 1) if count else fail(DIV0)


FINANCIAL: Family = {
    "CUMIPMT": spec("n n n n n n", total_interest),
    "CUMPRINC": spec("n n n n n n", total_principal),
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
