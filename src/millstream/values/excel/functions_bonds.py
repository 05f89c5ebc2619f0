"""Securities: coupons, prices, yields, durations, accrued interest.

`basis` is how days are counted: 0 thirty to a month (US), 1 as they are, 2 as they are over
360, 3 as they are over 365, 4 thirty to a month (Europe).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from millstream.values.excel.dates import add_months, date_of, days_in_month, serial_of
from millstream.values.excel.functions_date import day_number, days_360, year_fraction
from millstream.values.excel.functions_math import rounded
from millstream.values.excel.registry import Family, spec
from millstream.values.excel.values import NUM, Scalar, fail, fail_if, finite


def _checked(basis: float, *not_negative: float) -> int:
    fail_if(not 0 <= basis < 5 or any(n < 0 for n in not_negative))
    return int(basis)


def _day_count(first: float, last: float, basis: int) -> float:
    if basis in (0, 4):
        return days_360(first, last, is_european=basis == 4)
    return last - first


# --- coupons ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Coupons:
    """The dates of coupons, counted in months from one of them."""

    anchor: float
    months: int

    def date(self, number: int) -> float:
        """The coupon so many after the anchor; one at the end of a month stays there."""
        year, month, day = date_of(self.anchor)
        is_last = day == days_in_month(year, month)
        to_year, to_month = add_months(year, month, number * self.months)
        fail_if(not 1900 <= to_year <= 9999)
        longest = days_in_month(to_year, to_month)
        return serial_of(to_year, to_month, longest if is_last else min(day, longest))

    def before(self, day: float) -> int:
        """The number of the last coupon that is not after a day."""
        years = (day - self.anchor) / 365.25
        number = math.ceil(years * 12 / self.months) + 1
        while self.date(number) > day:
            number -= 1
        return number


@dataclass(frozen=True, slots=True)
class Settled:
    """A security bought on a day: the coupons before and after, and the days between."""

    settlement: float
    coupons: Coupons
    frequency: int
    basis: int

    @property
    def count(self) -> int:
        """Coupons from the settlement to maturity."""
        return -self.coupons.before(self.settlement)

    @property
    def previous(self) -> float:
        return self.coupons.date(-self.count)

    @property
    def next(self) -> float:
        return self.coupons.date(1 - self.count)

    @property
    def days(self) -> float:
        """The days of the period of the settlement."""
        if self.basis == 1:
            return self.next - self.previous
        return (365 if self.basis == 3 else 360) / self.frequency

    @property
    def days_before(self) -> float:
        return _day_count(self.previous, self.settlement, self.basis)

    @property
    def days_after(self) -> float:
        if self.basis in (0, 4):
            return self.days - self.days_before
        return self.next - self.settlement

    @property
    def rest(self) -> float:
        """The part of the period that is left, as prices see it.

        It is one less what has passed, even where by the day count both are not a whole period.
        """
        return 1 - self.days_before / self.days


def _settled(settlement: float, maturity: float, frequency: float, basis: float) -> Settled:
    first, last = day_number(settlement), day_number(maturity)
    per_year = int(frequency)
    fail_if(first >= last or per_year not in (1, 2, 4))
    return Settled(first, Coupons(last, 12 // per_year), per_year, _checked(basis))


def _coupon(look: Callable[[Settled], float]) -> Callable[..., float]:
    """What is seen of the coupons of a security."""

    def seen(settlement: float, maturity: float, frequency: float, basis: float = 0.0) -> float:
        return look(_settled(settlement, maturity, frequency, basis))

    return seen


# --- prices and yields ------------------------------------------------------------------


def _price(bond: Settled, rate: float, yearly: float, redemption: float) -> float:
    coupon, count = 100 * rate / bond.frequency, bond.count
    accrued = coupon * bond.days_before / bond.days
    rest, growth = bond.rest, 1 + yearly / bond.frequency
    fail_if(growth <= 0)
    if count == 1:
        return (redemption + coupon) / (1 + yearly / bond.frequency * rest) - accrued
    paid = math.fsum(coupon / math.pow(growth, k + rest) for k in range(count))
    return paid + redemption / math.pow(growth, count - 1 + rest) - accrued


def price(
    settlement: float, maturity: float, rate: float, yearly: float, redemption: float,
    frequency: float, basis: float = 0.0,
) -> float:  # fmt: skip
    bond = _settled(settlement, maturity, frequency, basis)
    fail_if(rate < 0 or yearly < 0 or redemption <= 0)
    return finite(_price(bond, rate, yearly, redemption))


def bond_yield(
    settlement: float, maturity: float, rate: float, paid: float, redemption: float,
    frequency: float, basis: float = 0.0,
) -> float:  # fmt: skip
    bond = _settled(settlement, maturity, frequency, basis)
    fail_if(rate < 0 or paid <= 0 or redemption <= 0)
    if bond.count == 1:
        coupon = rate / bond.frequency
        cost = paid / 100 + bond.days_before / bond.days * coupon
        gain = redemption / 100 + coupon - cost
        return finite(gain / cost * bond.frequency / bond.rest)
    low, high = -0.999 * bond.frequency, 1.0
    while _price(bond, rate, high, redemption) > paid:
        high *= 2
        fail_if(high > 1e9)
    for _ in range(200):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        if _price(bond, rate, middle, redemption) > paid:
            low = middle
        else:
            high = middle
    return finite((low + high) / 2)


def duration(
    settlement: float, maturity: float, rate: float, yearly: float, frequency: float,
    basis: float = 0.0,
) -> float:  # fmt: skip
    bond = _settled(settlement, maturity, frequency, basis)
    fail_if(rate < 0 or yearly < 0)
    coupon, count = 100 * rate / bond.frequency, bond.count
    rest, growth = bond.rest, 1 + yearly / bond.frequency
    flows = [
        (k + rest, (coupon + (100 if k == count - 1 else 0)) / growth ** (k + rest))
        for k in range(count)
    ]
    total = math.fsum(value for _, value in flows)
    return finite(math.fsum(when * value for when, value in flows) / total / bond.frequency)


def modified_duration(
    settlement: float, maturity: float, rate: float, yearly: float, frequency: float,
    basis: float = 0.0,
) -> float:  # fmt: skip
    macaulay = duration(settlement, maturity, rate, yearly, frequency, basis)
    return macaulay / (1 + yearly / int(frequency))


# --- securities without coupons ---------------------------------------------------------


def _term(settlement: float, maturity: float, basis: float) -> float:
    fail_if(day_number(settlement) >= day_number(maturity))
    return year_fraction(settlement, maturity, _checked(basis))


def _all_positive(*values: float) -> None:
    fail_if(any(v <= 0 for v in values))


def discount(
    settlement: float, maturity: float, paid: float, redemption: float, basis: float = 0.0
) -> float:
    _all_positive(paid, redemption)
    return (redemption - paid) / redemption / _term(settlement, maturity, basis)


def interest_rate(
    settlement: float, maturity: float, paid: float, redemption: float, basis: float = 0.0
) -> float:
    _all_positive(paid, redemption)
    return (redemption - paid) / paid / _term(settlement, maturity, basis)


def received(
    settlement: float, maturity: float, paid: float, rate: float, basis: float = 0.0
) -> float:
    _all_positive(paid, rate)
    rest = 1 - rate * _term(settlement, maturity, basis)
    return paid / rest if rest > 0 else fail(NUM)


def discounted_price(
    settlement: float, maturity: float, rate: float, redemption: float, basis: float = 0.0
) -> float:
    _all_positive(rate, redemption)
    return redemption - rate * redemption * _term(settlement, maturity, basis)


def price_at_maturity(
    settlement: float, maturity: float, issue: float, rate: float, yearly: float,
    basis: float = 0.0,
) -> float:  # fmt: skip
    _checked(basis, rate, yearly)
    whole = year_fraction(issue, maturity, basis)
    paid = 100 + whole * rate * 100
    accrued = year_fraction(issue, settlement, basis) * rate * 100
    return paid / (1 + _term(settlement, maturity, basis) * yearly) - accrued


def yield_at_maturity(
    settlement: float, maturity: float, issue: float, rate: float, paid: float, basis: float = 0.0
) -> float:
    _checked(basis, rate)
    _all_positive(paid)
    cost = paid / 100 + year_fraction(issue, settlement, basis) * rate
    gain = 1 + year_fraction(issue, maturity, basis) * rate - cost
    return gain / cost / _term(settlement, maturity, basis)


def accrued_at_maturity(
    issue: float, settlement: float, rate: float, par: float = 1000.0, basis: float = 0.0
) -> float:
    _all_positive(rate, par)
    return par * rate * _term(issue, settlement, basis)


def accrued(
    issue: float,
    first: float,
    settlement: float,
    rate: float,
    par: float,
    frequency: float,
    basis: float = 0.0,
    from_issue: Scalar = True,  # noqa: FBT002
) -> float:
    """Interest of each period between coupons, in proportion to its days."""
    per_year, counted = int(frequency), _checked(basis)
    start, end = day_number(issue), day_number(settlement)
    _all_positive(rate, par)
    fail_if(per_year not in (1, 2, 4) or start >= end)
    coupons = Coupons(day_number(first), 12 // per_year)
    if not from_issue and end > coupons.anchor:
        start = coupons.anchor
    number, parts = coupons.before(start), 0.0
    while coupons.date(number) < end:
        low, high = coupons.date(number), coupons.date(number + 1)
        period = Settled(low, Coupons(high, coupons.months), per_year, counted)
        parts += _day_count(max(low, start), min(high, end), counted) / period.days
        number += 1
    return par * rate / per_year * parts


# --- treasury bills ---------------------------------------------------------------------


def _bill_days(settlement: float, maturity: float) -> float:
    first, last = day_number(settlement), day_number(maturity)
    year, month, day = date_of(first)
    after = min(year + 1, 9999)  # there are no dates after that
    limit = serial_of(after, month, min(day, days_in_month(after, month))) if after > year else last
    return last - first if first < last <= limit else fail(NUM)


def bill_price(settlement: float, maturity: float, rate: float) -> float:
    _all_positive(rate)
    amount = 100 * (1 - rate * _bill_days(settlement, maturity) / 360)
    return amount if amount > 0 else fail(NUM)


def bill_yield(settlement: float, maturity: float, paid: float) -> float:
    _all_positive(paid)
    return (100 - paid) / paid * 360 / _bill_days(settlement, maturity)


def bill_equivalent(settlement: float, maturity: float, rate: float) -> float:
    _all_positive(rate)
    days = _bill_days(settlement, maturity)
    if days <= 182:
        return 365 * rate / (360 - rate * days)
    cost, term = 1 - rate * days / 360, days / (366 if days == 366 else 365)
    root = term * term - (2 * term - 1) * (1 - 1 / cost)
    return (2 * math.sqrt(root) - 2 * term) / (2 * term - 1) if root >= 0 else fail(NUM)


# --- French depreciation ----------------------------------------------------------------


#: What takes more periods to be written off is no asset.
_MOST_PERIODS = 100_000


def straight_depreciation(
    cost: float, bought: float, first: float, salvage: float, period: float, rate: float,
    basis: float = 0.0,
) -> float:  # fmt: skip
    _checked(basis, salvage, period)
    _all_positive(cost, rate)
    each = finite(cost * rate)
    start = finite(rate * year_fraction(bought, first, basis) * cost)
    full, number = int((cost - salvage - start) / each), int(period)
    if number == 0:
        return start
    if number <= full:
        return each
    return cost - salvage - each * full - start if number == full + 1 else 0.0


def falling_depreciation(
    cost: float, bought: float, first: float, salvage: float, period: float, rate: float,
    basis: float = 0.0,
) -> float:  # fmt: skip
    _checked(basis, salvage, period)
    _all_positive(cost, rate)
    life = 1 / rate
    steep = rate * (1.0 if life < 3 else 1.5 if life < 5 else 2.0 if life <= 6 else 2.5)
    amount = rounded(year_fraction(bought, first, basis) * steep * cost, 0.0)
    cost -= amount
    rest = cost - salvage
    for number in range(int(period)):
        if number == _MOST_PERIODS:
            fail(NUM)
        amount = rounded(finite(steep * cost), 0.0)
        if amount == 0:
            break
        rest -= amount
        if rest < 0:
            return rounded(cost * 0.5, 0.0) if int(period) - number <= 1 else 0.0
        cost -= amount
    return amount


BONDS: Family = {
    "ACCRINT": spec("d d d n n n n? b?", accrued, fills_in=True),
    "ACCRINTM": spec("d d n n? n?", accrued_at_maturity, fills_in=True),
    "AMORDEGRC": spec("n d d n n n n?", falling_depreciation),
    "AMORLINC": spec("n d d n n n n?", straight_depreciation),
    "COUPDAYBS": spec("d d n n?", _coupon(lambda s: s.days_before)),
    "COUPDAYS": spec("d d n n?", _coupon(lambda s: s.days)),
    "COUPDAYSNC": spec("d d n n?", _coupon(lambda s: s.days_after)),
    "COUPNCD": spec("d d n n?", _coupon(lambda s: s.next), gives_date=True),
    "COUPNUM": spec("d d n n?", _coupon(lambda s: float(s.count))),
    "COUPPCD": spec("d d n n?", _coupon(lambda s: s.previous), gives_date=True),
    "DISC": spec("d d n n n?", discount),
    "DURATION": spec("d d n n n n?", duration),
    "INTRATE": spec("d d n n n?", interest_rate),
    "MDURATION": spec("d d n n n n?", modified_duration),
    "PRICE": spec("d d n n n n n?", price),
    "PRICEDISC": spec("d d n n n?", discounted_price),
    "PRICEMAT": spec("d d d n n n?", price_at_maturity),
    "RECEIVED": spec("d d n n n?", received),
    "TBILLEQ": spec("d d n", bill_equivalent),
    "TBILLPRICE": spec("d d n", bill_price),
    "TBILLYIELD": spec("d d n", bill_yield),
    "YIELD": spec("d d n n n n n?", bond_yield),
    "YIELDDISC": spec("d d n n n?", interest_rate),
    "YIELDMAT": spec("d d d n n n?", yield_at_maturity),
}
