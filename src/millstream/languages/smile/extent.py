"""What is known of a column before anything runs: between which bounds, in how many steps.

Bounds and steps are sums of products of names such as MAXTIME, which are not known either.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

Number = int | float

#: The number of ticks that a stream has.
MAXTIME = "MAXTIME"


@dataclass(frozen=True, slots=True)
class Size:
    """A sum of products: how often each product of names is taken. `()` is 1."""

    products: tuple[tuple[tuple[str, ...], Number], ...] = ()

    @staticmethod
    def of(products: Mapping[tuple[str, ...], Number]) -> Size:
        return Size(tuple(sorted((p, n) for p, n in products.items() if n)))

    @staticmethod
    def number(value: Number) -> Size:
        return Size.of({(): value})

    @staticmethod
    def named(name: str) -> Size:
        return Size.of({(name,): 1})

    @property
    def constant(self) -> Number | None:
        """Its value, if no name is in it."""
        if any(product for product, _ in self.products):
            return None
        return self.products[0][1] if self.products else 0

    def __add__(self, other: Size) -> Size:
        made: Counter[tuple[str, ...]] = Counter(dict(self.products))
        for product, times in other.products:
            made[product] += times  # type: ignore[assignment]
        return Size.of(made)

    def __neg__(self) -> Size:
        return Size.of({p: -n for p, n in self.products})

    def __mul__(self, other: Size) -> Size:
        made: Counter[tuple[str, ...]] = Counter()
        for a, n in self.products:
            for b, m in other.products:
                made[tuple(sorted((*a, *b)))] += n * m  # type: ignore[assignment]
        return Size.of(made)

    def __str__(self) -> str:
        shown = ""
        for product, times in sorted(self.products, key=lambda p: (p[1] < 0, -len(p[0]), p[0])):
            sign = "-" if times < 0 else "+" if shown else ""
            factors = [*([str(abs(times))] if abs(times) != 1 or not product else []), *product]
            shown += f" {sign} " if shown else sign
            shown += "*".join(factors)
        return shown or "0"


ZERO, ONE = Size.number(0), Size.number(1)


@dataclass(frozen=True, slots=True)
class Extent:
    """Between which bounds all values lie; None is no bound."""

    low: Size | None = None
    high: Size | None = None

    @property
    def least(self) -> Number | None:
        """A number below which no value lies."""
        return None if self.low is None else self.low.constant

    @property
    def most(self) -> Number | None:
        return None if self.high is None else self.high.constant

    def __add__(self, other: Extent) -> Extent:
        return Extent(_sum(self.low, other.low), _sum(self.high, other.high))

    def __neg__(self) -> Extent:
        return Extent(self.high and -self.high, self.low and -self.low)

    def around(self, other: Extent) -> Extent:
        """Where the values of either lie."""
        return Extent(_outer(self.low, other.low, min), _outer(self.high, other.high, max))

    def times(self, count: Size) -> Extent:
        """The sum of up to so many values."""
        low = ZERO if self.least is not None and self.least >= 0 else _product(self.low, count)
        high = ZERO if self.most is not None and self.most <= 0 else _product(self.high, count)
        return Extent(low, high)

    def __mul__(self, other: Extent) -> Extent:
        """Of what is nowhere negative; of others nothing is said."""
        if (self.least or 0) < 0 or (other.least or 0) < 0 or None in (self.low, other.low):
            return Extent()
        return Extent(_product(self.low, other.low), _product(self.high, other.high))

    def __str__(self) -> str:
        low = "-infinity" if self.low is None else str(self.low)
        return f"[{low}, {'infinity' if self.high is None else self.high}]"


#: Nothing is known.
ANY = Extent()


def _sum(a: Size | None, b: Size | None) -> Size | None:
    return None if a is None or b is None else a + b


def _outer(
    a: Size | None, b: Size | None, outer: Callable[[Number, Number], Number]
) -> Size | None:
    if a is None or b is None or a == b:
        return a if a == b else None
    if a.constant is None or b.constant is None:
        return None
    return Size.number(outer(a.constant, b.constant))


def _product(a: Size | None, b: Size | None) -> Size | None:
    return None if a is None or b is None else a * b
