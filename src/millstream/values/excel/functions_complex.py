"""Complex numbers, which Excel keeps as texts such as `3+4i`."""

from __future__ import annotations

import cmath
import math
import re
from collections.abc import Callable, Iterator

from millstream.values.excel.arrays import Operand
from millstream.values.excel.gather import scalars
from millstream.values.excel.registry import Family, spec
from millstream.values.excel.values import (
    DIV0,
    NUM,
    VALUE,
    Raised,
    Scalar,
    checked,
    fail,
    fail_if,
    finite,
    general,
)

_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_COMPLEX = re.compile(
    rf"(?P<real>{_NUMBER})?(?P<imaginary>(?(real)[+-]|[+-]?)(?:(?:\d+\.?\d*|\.\d+)"
    r"(?:[eE][+-]?\d+)?)?)(?P<unit>[ij])"
)


def _read(given: Scalar) -> tuple[complex, str]:
    """A complex number and its unit; a plain number has none."""
    if type(given) is bool:
        fail(VALUE)
    if given is None:
        return 0j, ""
    if type(given) is float:
        return complex(given), ""
    text = str(checked(given))
    if re.fullmatch(_NUMBER, text):
        return complex(float(text)), ""
    match = _COMPLEX.fullmatch(text)
    if match is None:
        # A lone imaginary part looks like a real one at first.
        alone = re.fullmatch(rf"({_NUMBER})([ij])", text)
        return (complex(0.0, float(alone[1])), alone[2]) if alone else fail(NUM)
    size = match["imaginary"]
    imaginary = float(size) if size not in ("", "+", "-") else float(f"{size}1")
    return complex(float(match["real"] or 0.0), imaginary), match["unit"]


def _written(number: complex, unit: str) -> str:
    fail_if(not (math.isfinite(number.real) and math.isfinite(number.imag)))
    real, imaginary = number.real, number.imag
    if imaginary == 0:
        return general(real)
    unit = unit or "i"
    size = {1.0: "", -1.0: "-"}.get(imaginary, general(imaginary))
    if real == 0:
        return f"{size}{unit}"
    return f"{general(real)}{'+' if imaginary > 0 else ''}{size}{unit}"


def make(real: float, imaginary: float, unit: str = "i") -> str:
    return _written(complex(real, imaginary), unit if unit in ("i", "j") else fail(VALUE))


def _real(measure: Callable[[complex], float]) -> Callable[[Scalar], float]:
    return lambda given: measure(_read(given)[0]) + 0.0


def _mapped(function: Callable[[complex], complex]) -> Callable[[Scalar], str]:
    def mapped(given: Scalar) -> str:
        number, unit = _read(given)
        try:
            return _written(function(number), unit)
        except (ValueError, OverflowError, ZeroDivisionError):
            raise Raised(NUM) from None

    return mapped


def _all(operands: tuple[Operand, ...]) -> tuple[Iterator[complex], str]:
    """All numbers of some arguments; two units do not go together."""
    pairs = [_read(v) for o in operands for v in scalars(o) if v is not None]
    units = {unit for _, unit in pairs if unit}
    fail_if(len(units) > 1, VALUE)
    return (number for number, _ in pairs), next(iter(units), "i")


def total(*operands: Operand) -> str:
    numbers, unit = _all(operands)
    return _written(sum(numbers, 0j), unit)


def product(*operands: Operand) -> str:
    numbers, unit = _all(operands)
    return _written(math.prod(numbers, start=1 + 0j), unit)


def _or_zero(given: Scalar) -> Scalar:
    return 0.0 if given is None else given


def difference(first: Scalar, second: Scalar) -> str:
    (a, b), unit = _all((_or_zero(first), _or_zero(second)))
    return _written(a - b, unit)


def quotient(first: Scalar, second: Scalar) -> str:
    (a, b), unit = _all((_or_zero(first), _or_zero(second)))
    return _written(a / b, unit) if b else fail(NUM)


def power(given: Scalar, exponent: float) -> str:
    number, unit = _read(given)
    if number == 0:
        return "0" if exponent > 0 else fail(NUM)
    size, angle = cmath.polar(number)
    return _written(cmath.rect(size**exponent, finite(angle * exponent)), unit)


def argument(given: Scalar) -> float:
    number, _ = _read(given)
    return cmath.phase(number) if number else fail(DIV0)


def _log(base: float) -> Callable[[complex], complex]:
    return lambda z: cmath.log(z) / math.log(base)


COMPLEX: Family = {
    "COMPLEX": spec("n n t?", make),
    "IMABS": spec("v", _real(abs)),
    "IMAGINARY": spec("v", _real(lambda z: z.imag)),
    "IMARGUMENT": spec("v", argument),
    "IMCONJUGATE": spec("v", _mapped(lambda z: z.conjugate())),
    "IMCOS": spec("v", _mapped(cmath.cos)),
    "IMCOSH": spec("v", _mapped(cmath.cosh)),
    "IMCOT": spec("v", _mapped(lambda z: 1 / cmath.tan(z))),
    "IMCSC": spec("v", _mapped(lambda z: 1 / cmath.sin(z))),
    "IMCSCH": spec("v", _mapped(lambda z: 1 / cmath.sinh(z))),
    "IMDIV": spec("v v", quotient),
    "IMEXP": spec("v", _mapped(cmath.exp)),
    "IMLN": spec("v", _mapped(cmath.log)),
    "IMLOG10": spec("v", _mapped(_log(10))),
    "IMLOG2": spec("v", _mapped(_log(2))),
    "IMPOWER": spec("v n", power),
    "IMPRODUCT": spec("r+", product),
    "IMREAL": spec("v", _real(lambda z: z.real)),
    "IMSEC": spec("v", _mapped(lambda z: 1 / cmath.cos(z))),
    "IMSECH": spec("v", _mapped(lambda z: 1 / cmath.cosh(z))),
    "IMSIN": spec("v", _mapped(cmath.sin)),
    "IMSINH": spec("v", _mapped(cmath.sinh)),
    "IMSQRT": spec("v", _mapped(cmath.sqrt)),
    "IMSUB": spec("v v", difference),
    "IMSUM": spec("r+", total),
    "IMTAN": spec("v", _mapped(cmath.tan)),
}
