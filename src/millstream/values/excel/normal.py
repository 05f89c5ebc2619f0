"""The normal distribution. Compiled loops run these very functions (`kernels/sheets/raised`)."""

from __future__ import annotations

import math

from millstream.values.excel.values import NUM, fail, fail_if

#: Numerators and denominators of Wichura's approximations (AS 241), from the highest power on:
#: for the middle, for the sides, and for the ends.
_MIDDLE = (
    (2509.0809287301226727, 33430.575583588128105, 67265.770927008700853, 45921.953931549871457,
     13731.693765509461125, 1971.5909503065514427, 133.14166789178437745, 3.3871328727963666080),
    (5226.4952788528545610, 28729.085735721942674, 39307.895800092710610, 21213.794301586595867,
     5394.1960214247511077, 687.18700749205790830, 42.313330701600911252, 1.0),
)  # fmt: skip
_SIDE = (
    (7.74545014278341407640e-4, 2.27238449892691845833e-2, 0.241780725177450611770,
     1.27045825245236838258, 3.64784832476320460504, 5.76949722146069140550,
     4.63033784615654529590, 1.42343711074968357734),
    (1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2,
     0.148103976427480074590, 0.689767334985100004550, 1.67638483018380384940,
     2.05319162663775882187, 1.0),
)  # fmt: skip
_END = (
    (2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3,
     2.65321895265761230930e-2, 0.296560571828504891230, 1.78482653991729133580,
     5.46378491116411436990, 6.65790464350110377720),
    (2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5,
     7.86869131145613259100e-4, 1.48753612908506148525e-2, 0.136929880922735805310,
     0.599832206555887937690, 1.0),
)  # fmt: skip


def normal(x: float, middle: float, deviation: float, is_total: bool) -> float:  # noqa: FBT001
    fail_if(deviation <= 0)
    z = (x - middle) / deviation
    return standard(z) if is_total else density(z) / deviation


def standard(z: float) -> float:
    return 0.5 * math.erfc(-z / math.sqrt(2))


def density(z: float) -> float:
    return math.exp(-z * z / 2) / math.sqrt(2 * math.pi)


def standard_or_density(z: float, is_total: bool) -> float:  # noqa: FBT001
    return standard(z) if is_total else density(z)


def beside_middle(z: float) -> float:
    """GAUSS: how likely it is to lie between the middle and so many deviations beside it."""
    return standard(z) - 0.5


def _polynomial(coefficients: tuple[float, ...], x: float) -> float:
    total = 0.0
    for coefficient in coefficients:
        total = total * x + coefficient
    return total


def between_0_and_1(p: float) -> float:
    return p if 0 < p < 1 else fail(NUM)


def standard_inverse(p: float) -> float:
    q = between_0_and_1(p) - 0.5
    if abs(q) <= 0.425:
        r = 0.180625 - q * q
        return _polynomial(_MIDDLE[0], r) * q / _polynomial(_MIDDLE[1], r)
    r = math.sqrt(-math.log(p if q <= 0.0 else 1.0 - p))
    if r <= 5.0:
        size = _polynomial(_SIDE[0], r - 1.6) / _polynomial(_SIDE[1], r - 1.6)
    else:
        size = _polynomial(_END[0], r - 5.0) / _polynomial(_END[1], r - 5.0)
    return -size if q < 0.0 else size


def normal_inverse(p: float, middle: float, deviation: float) -> float:
    fail_if(deviation <= 0)
    return middle + deviation * standard_inverse(p)


def log_normal(x: float, middle: float, deviation: float, is_total: bool = True) -> float:  # noqa: FBT001, FBT002
    fail_if(x <= 0 or deviation <= 0)
    z = (math.log(x) - middle) / deviation
    return standard(z) if is_total else density(z) / (x * deviation)


def log_normal_inverse(p: float, middle: float, deviation: float) -> float:
    return math.exp(normal_inverse(p, middle, deviation))


def confidence(alpha: float, deviation: float, size: float) -> float:
    fail_if(deviation <= 0 or size < 1)
    rare = between_0_and_1(alpha) / 2
    return -standard_inverse(rare) * deviation / math.sqrt(size // 1.0)
