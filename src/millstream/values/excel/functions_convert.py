"""CONVERT: from one unit of measurement to another."""

from __future__ import annotations

from millstream.values.excel.registry import Family, spec
from millstream.values.excel.values import NA, fail

#: Kind of quantity, and how much of its first unit a unit is.
_UNITS: dict[str, tuple[str, float]] = {
    "g": ("mass", 1.0), "sg": ("mass", 14593.902937206365), "lbm": ("mass", 453.59237),
    "u": ("mass", 1.6605300000000001e-24), "ozm": ("mass", 28.349523125),
    "stone": ("mass", 6350.29318), "ton": ("mass", 907184.74), "grain": ("mass", 0.06479891),
    "m": ("length", 1.0), "mi": ("length", 1609.344), "Nmi": ("length", 1852.0),
    "in": ("length", 0.0254), "ft": ("length", 0.3048), "yd": ("length", 0.9144),
    "ang": ("length", 1e-10), "ly": ("length", 9.46073047258e15), "Pica": ("length", 0.0254 / 72),
    "pica": ("length", 0.0254 / 6), "ell": ("length", 1.143),
    "parsec": ("length", 3.08567758128e16),
    "sec": ("time", 1.0), "s": ("time", 1.0), "mn": ("time", 60.0), "min": ("time", 60.0),
    "hr": ("time", 3600.0), "day": ("time", 86400.0), "d": ("time", 86400.0),
    "yr": ("time", 31557600.0),
    "Pa": ("pressure", 1.0), "p": ("pressure", 1.0), "atm": ("pressure", 101325.0),
    "at": ("pressure", 101325.0), "mmHg": ("pressure", 133.322),
    "psi": ("pressure", 6894.757293168),
    "Torr": ("pressure", 133.3223684),
    "N": ("force", 1.0), "dyn": ("force", 1e-5), "dy": ("force", 1e-5),
    "lbf": ("force", 4.4482216152605), "pond": ("force", 0.00980665),
    "J": ("energy", 1.0), "e": ("energy", 1e-7), "c": ("energy", 4.184), "cal": ("energy", 4.1868),
    "eV": ("energy", 1.602176487e-19), "ev": ("energy", 1.602176487e-19),
    "HPh": ("energy", 2684519.537696172), "hh": ("energy", 2684519.537696172),
    "Wh": ("energy", 3600.0), "wh": ("energy", 3600.0), "flb": ("energy", 1.3558179483314),
    "BTU": ("energy", 1055.05585262), "btu": ("energy", 1055.05585262),
    "W": ("power", 1.0), "w": ("power", 1.0), "HP": ("power", 745.69987158227022),
    "h": ("power", 745.69987158227022), "PS": ("power", 735.49875),
    "T": ("magnetism", 1.0), "ga": ("magnetism", 1e-4),
    "tsp": ("volume", 4.92892159375e-6), "tbs": ("volume", 1.478676478125e-5),
    "oz": ("volume", 2.95735295625e-5), "cup": ("volume", 2.365882365e-4),
    "pt": ("volume", 4.73176473e-4), "us_pt": ("volume", 4.73176473e-4),
    "uk_pt": ("volume", 5.6826125e-4), "qt": ("volume", 9.46352946e-4),
    "gal": ("volume", 3.785411784e-3), "uk_gal": ("volume", 4.54609e-3), "l": ("volume", 1e-3),
    "L": ("volume", 1e-3), "lt": ("volume", 1e-3), "m3": ("volume", 1.0), "m^3": ("volume", 1.0),
    "in3": ("volume", 1.6387064e-5), "ft3": ("volume", 2.8316846592e-2),
    "yd3": ("volume", 0.764554857984), "barrel": ("volume", 0.158987294928),
    "m2": ("area", 1.0), "m^2": ("area", 1.0), "ha": ("area", 1e4), "ar": ("area", 100.0),
    "ft2": ("area", 0.09290304), "ft^2": ("area", 0.09290304), "in2": ("area", 6.4516e-4),
    "yd2": ("area", 0.83612736), "mi2": ("area", 2589988.110336),
    "uk_acre": ("area", 4046.8564224), "us_acre": ("area", 4046.87260987425),
    "bit": ("information", 1.0), "byte": ("information", 8.0),
    "m/s": ("speed", 1.0), "m/h": ("speed", 1 / 3600), "mph": ("speed", 0.44704),
    "kn": ("speed", 1852 / 3600), "admkn": ("speed", 0.514773333333333),
}  # fmt: skip
_PREFIXES = {
    "Y": 1e24, "Z": 1e21, "E": 1e18, "P": 1e15, "T": 1e12, "G": 1e9, "M": 1e6, "k": 1e3,
    "h": 1e2, "e": 1e1, "da": 1e1, "d": 1e-1, "c": 1e-2, "m": 1e-3, "u": 1e-6, "n": 1e-9,
    "p": 1e-12, "f": 1e-15, "a": 1e-18, "ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30,
    "Ti": 2.0**40,
}  # fmt: skip
_METRIC = frozenset({
    "g", "m", "s", "sec", "Pa", "p", "atm", "at", "mmHg", "N", "dyn", "J", "e", "c", "cal", "eV",
    "Wh", "W", "w", "T", "ga", "l", "L", "lt", "bit", "byte", "u", "ang", "parsec", "m/s", "m2",
    "m3",
})  # fmt: skip
_TEMPERATURES = {"C": "C", "cel": "C", "F": "F", "fah": "F", "K": "K", "kel": "K", "Rank": "R",
                 "Reau": "Re"}  # fmt: skip


def _unit(name: str) -> tuple[str, float]:
    if name in _UNITS:
        return _UNITS[name]
    for prefix, factor in _PREFIXES.items():
        rest = name.removeprefix(prefix)
        if rest != name and rest in _METRIC:
            kind, size = _UNITS[rest]
            power = 2 if rest == "m2" else 3 if rest == "m3" else 1
            return kind, size * factor**power
    fail(NA)


def convert(number: float, source: str, target: str) -> float:
    if source in _TEMPERATURES and target in _TEMPERATURES:
        return _from_kelvin(_to_kelvin(number, _TEMPERATURES[source]), _TEMPERATURES[target])
    (kind, size), (other, unit) = _unit(source), _unit(target)
    return number * size / unit if kind == other else fail(NA)


def _to_kelvin(number: float, scale: str) -> float:
    match scale:
        case "C":
            return number + 273.15
        case "F":
            return (number - 32) * 5 / 9 + 273.15
        case "R":
            return number * 5 / 9
        case "Re":
            return number * 1.25 + 273.15
        case _:
            return number


def _from_kelvin(kelvin: float, scale: str) -> float:
    match scale:
        case "C":
            return kelvin - 273.15
        case "F":
            return (kelvin - 273.15) * 9 / 5 + 32
        case "R":
            return kelvin * 9 / 5
        case "Re":
            return (kelvin - 273.15) / 1.25
        case _:
            return kelvin


CONVERSIONS: Family = {"CONVERT": spec("n t t", convert)}
