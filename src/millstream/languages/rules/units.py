"""Physical units, at compile time only: a unit is a dimension, a factor and an offset.

Pint knows the units; we ask it for single names and put products together ourselves, with
exact fractions. Angles count as a dimension, which they do not for pint: comparing a
heading with a plain number is a mistake in any port.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from millstream.calculus.types import Dimension
from millstream.errors import suggest

_BASES = {
    "meter": "length", "second": "time", "kilogram": "mass", "kelvin": "temperature",
    "radian": "angle", "ampere": "current", "candela": "luminosity", "mole": "amount",
    "bit": "information",
}  # fmt: skip

#: What dimensions are called; the others are spelled out.
_NAMES: dict[str, str] = {
    "": "a plain number", "length": "a length", "length^2": "an area", "length^3": "a volume",
    "time": "a time", "time^-1": "a frequency", "length time^-1": "a velocity",
    "length time^-2": "an acceleration", "angle": "an angle", "mass": "a mass",
    "temperature": "a temperature", "length^-1 mass time^-2": "a pressure",
    "length mass time^-2": "a force", "length^2 mass time^-2": "an energy",
    "length^2 mass time^-3": "a power", "length^-3 mass": "a density",
    "angle time^-1": "a rate of turn", "current": "a current",
}  # fmt: skip

#: The units of the trade, for near misses and for listings.
USUAL = (
    "m", "cm", "mm", "km", "ft", "feet", "inch", "fathom", "cable", "nmi", "mile", "meter",
    "meters", "centimeter", "centimeters", "kilometer", "kilometers", "s", "second", "seconds",
    "min", "minute", "minutes", "h", "hour", "hours", "d", "day", "days", "knot", "knots", "kt",
    "m/s", "km/h", "degree", "degrees", "deg", "radian", "radians", "kg", "g", "tonne",
    "tonnes", "degC", "degF", "K", "kelvin", "celsius", "bar", "mbar", "hPa", "kPa", "Pa",
    "percent", "liter", "liters", "m^2", "m^3", "newton", "kN", "kW",
)  # fmt: skip

_BEAUFORT = "Beaufort is a scale: write its bounds in knots or m/s"

#: What is said in the trade as if it were a unit.
_NO_UNITS = {
    "GT": "gross tonnage has none: write a plain number",
    "TEU": "it is a count: write a plain number",
    "bft": _BEAUFORT, "Bft": _BEAUFORT, "beaufort": _BEAUFORT, "Beaufort": _BEAUFORT,
}  # fmt: skip

#: Names that mean one thing to pint and another on a bridge or on a quay.
_AMBIGUOUS = {
    "nm": "nm could be nanometres or nautical miles: write nmi for nautical miles",
    "ton": "a ton is 907 kg here and 1016 kg there: write tonne for 1000 kg",
    "tons": "a ton is 907 kg here and 1016 kg there: write tonnes for 1000 kg",
    "C": "C is the coulomb: write degC for degrees Celsius",
    "F": "F is the farad: write degF for degrees Fahrenheit",
    "M": "M could be molar or nautical miles: write nmi for nautical miles",
    "dwt": "dwt could be a pennyweight or deadweight: write tonne for 1000 kg",
    "DWT": "DWT could be long tons or tonnes: write tonne for 1000 kg",
    "mt": "mt could be thousandths of a tonne or metric tons: write tonne for 1000 kg",
    "MT": "MT could be megatonnes or metric tons: write tonne for 1000 kg",
    "fm": "fm could be femtometres or fathoms: write fathom for 6 feet",
    "mb": "mb could be millibarns or millibars: write mbar",
    "barrel": "barrels differ by what is in them: write oil_barrel for 159 liters",
    "barrels": "barrels differ by what is in them: write oil_barrel for 159 liters",
    "bbl": "barrels differ by what is in them: write oil_barrel for 159 liters",
    "gallon": "gallons differ: write US_liquid_gallon or imperial_gallon",
    "gallons": "gallons differ: write US_liquid_gallon or imperial_gallon",
}
_SYNONYMS = {"NM": "nautical_mile", "%": "percent", "°": "degree", "º": "degree",
             "metre": "meter", "metres": "meter", "Celsius": "degC", "Fahrenheit": "degF",
             "Kelvin": "kelvin", "pct": "percent"}  # fmt: skip

#: Lengths at sea as multiples of others: pint has no cable, and the American surveyors' fathom.
_AT_SEA: dict[str, tuple[int | Fraction, str]] = {"fathom": (6, "foot"), "fathoms": (6, "foot"),
           "cable": (Fraction(1, 10), "nautical_mile"),
           "cables": (Fraction(1, 10), "nautical_mile")}  # fmt: skip

_FACTOR = re.compile(r"\s*([*/·])?\s*([^\W\d][\w]*|°C|°F|°|%)\s*(?:(?:\^|\*\*)\s*(-?\d+)|([²³]))?")


#: `m2` is written for square metres.
_SPELLED_POWER = re.compile(r"([^\W\d]+)([23])")


class UnknownUnitError(Exception):
    """Not a unit; `hint` may say what was meant."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


_NONE = Dimension()
_LENGTH = Dimension((("length", 1),))


@dataclass(frozen=True, slots=True)
class Unit:
    """A value v stands for v * factor + offset in the base units of the dimension."""

    label: str
    dimension: Dimension = _NONE
    factor: Fraction = Fraction(1)
    offset: Fraction = Fraction(0)
    #: Whether this can only be the difference of two points on a scale.
    is_difference: bool = False

    def times(self, other: Unit, sign: int = 1) -> Unit:
        """The unit of a product, or of a quotient with sign -1."""
        dimension = self.dimension.times(other.dimension, sign)
        factor = self.factor * other.factor if sign > 0 else self.factor / other.factor
        is_difference = self.is_difference or other.is_difference
        label = _label(self.label, other.label, sign)
        return Unit(label, dimension, factor, is_difference=is_difference)

    def without_offset(self) -> Unit:
        """The unit of differences: of two points in it, or of what has no points at all."""
        if not self.offset:
            return self
        return Unit(f"delta_{self.label}", self.dimension, self.factor, is_difference=True)

    def in_base(self, value: Fraction) -> Fraction:
        return value * self.factor + self.offset

    def of_base(self, value: Fraction) -> Fraction:
        return (value - self.offset) / self.factor

    @property
    def spoken(self) -> str:
        """`a length (m)`."""
        name = dimension_name(self.dimension)
        return f"{name} ({self.label})" if self.label else name


PLAIN = Unit("")
SECONDS = Unit("s", Dimension((("time", 1),)))


def dimension_name(dimension: Dimension) -> str:
    text = str(dimension)
    return _NAMES.get(text, f"a quantity of dimension {text}")


def _label(left: str, right: str, sign: int) -> str:
    if not right:
        return left
    if left == right and sign > 0 and re.fullmatch(r"\w+", left):
        return f"{left}^2"
    right = f"({right})" if re.search(r"[/·]", right) else right
    return f"{left or '1'}/{right}" if sign < 0 else f"{left}·{right}" if left else right


@functools.cache
def parse_unit(text: str) -> Unit:
    """The unit that a text means, such as `m`, `knots` or `kg/m^3`."""
    text = text.strip()
    if not text:
        return PLAIN
    place, unit = 0, None
    while place < len(text):
        match = _FACTOR.match(text, place)
        if match is None or (unit is None) != (match[1] is None):
            raise UnknownUnitError(
                f'"{text}" is not a unit', "write units such as m, knots, kg/m^3"
            )
        power = int(match[3] or {"²": 2, "³": 3}.get(match[4] or "", 1))
        factor = _power(_single(match[2]), power)
        unit = factor if unit is None else unit.times(factor, -1 if match[1] == "/" else 1)
        place = match.end()
    assert unit is not None
    return replace(unit, label=text)


def is_unit(name: str) -> bool:
    """Whether a single word is a unit."""
    try:
        parse_unit(name)
    except UnknownUnitError:
        return False
    return True


def _is_length(name: str) -> bool:
    return is_unit(name) and parse_unit(name).dimension == _LENGTH


def _power(unit: Unit, power: int) -> Unit:
    if power == 1:
        return unit
    product = PLAIN
    for _ in range(abs(power)):
        product = product.times(unit, 1 if power > 0 else -1)
    return product


@functools.cache
def _registry() -> Any:
    import pint

    return pint.UnitRegistry(non_int_type=Fraction)


@functools.cache
def _single(name: str) -> Unit:
    import pint

    if name in _AMBIGUOUS:
        raise UnknownUnitError(f'the unit "{name}" is ambiguous', _AMBIGUOUS[name])
    if name in _NO_UNITS:
        raise UnknownUnitError(f'"{name}" is not a unit', _NO_UNITS[name])
    if name in _AT_SEA:
        times, other = _AT_SEA[name]
        known = _single(other)
        return Unit(name, known.dimension, known.factor * times)
    if (spelled := _SPELLED_POWER.fullmatch(name)) and _is_length(spelled[1]):
        return _power(_single(spelled[1]), int(spelled[2]))
    registry = _registry()
    try:
        unit = registry.parse_units(_SYNONYMS.get(name, name))
        _refuse_logarithmic(name, registry, unit)
        factor, base = registry.get_base_units(unit, check_nonmult=False)
    except (pint.errors.PintError, AttributeError, ValueError, TypeError):
        near = suggest(name, USUAL)
        raise UnknownUnitError(f'unknown unit "{name}"', near) from None
    powers = {}
    for one, power in base._units.items():  # noqa: SLF001  pint shows them nowhere else
        if one not in _BASES or power.denominator != 1:
            raise UnknownUnitError(f'the unit "{name}" has no dimension that rules know')
        powers[_BASES[one]] = int(power)
    dimension = Dimension(tuple(sorted(powers.items())))
    offset = Fraction(0)
    if powers == {"temperature": 1}:
        offset = Fraction(registry.Quantity(Fraction(0), unit).to("kelvin").magnitude)
    return Unit(name, dimension, Fraction(factor), offset, name.startswith("delta_"))


def _refuse_logarithmic(name: str, registry: Any, unit: Any) -> None:
    """10 dBm and 10 dBm are not 20 dBm."""
    for one in unit._units:  # noqa: SLF001  pint shows them nowhere else
        known = registry._units.get(one)  # noqa: SLF001
        if known is not None and known.is_logarithmic:
            hint = "write the quantity itself, such as mW, or the ratio as a plain number"
            raise UnknownUnitError(f'the unit "{name}" is logarithmic', hint)
