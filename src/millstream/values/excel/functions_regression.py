"""Least squares: LINEST, TREND and their exponential kin."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from millstream.values.excel.arrays import Array, Operand
from millstream.values.excel.functions_lookup import matrix
from millstream.values.excel.registry import Family, spec
from millstream.values.excel.values import NA, NUM, REF, Scalar, fail, fail_if

Matrix = np.ndarray[Any, np.dtype[Any]]


def _ys(operand: Operand, *, of_powers: bool) -> Matrix:
    """The values, or of powers the logarithms, in which these are lines."""
    ys = np.array(matrix(operand), np.float64)
    fail_if(of_powers and (ys <= 0).any())
    return np.log(ys) if of_powers else ys


def _xs(operand: Operand, ys: Matrix) -> Matrix:
    """One row per observation; by default 1, 2, 3, ..."""
    if operand is None:
        return np.arange(1, ys.size + 1, dtype=np.float64).reshape(-1, 1)
    xs = np.array(matrix(operand), np.float64)
    if xs.shape == ys.shape:
        return xs.reshape(-1, 1)
    if ys.shape[1] == 1 and xs.shape[0] == ys.shape[0]:
        return xs
    if ys.shape[0] == 1 and xs.shape[1] == ys.shape[1]:
        return xs.T
    fail(REF)


#: A column of which less is left, once the others are taken out of it, is a sum of them.
_REDUNDANT = 1e-13


@dataclass(frozen=True, slots=True)
class _Fit:
    """A fit by least squares: `errors` times the spread of the residue are standard errors."""

    coefficients: tuple[float, ...]
    constant: float
    errors: tuple[float, ...]
    constant_error: float
    residual: float
    total: float
    used: int
    degrees: int


def _fitted(ys: Matrix, xs: Matrix, *, has_constant: bool) -> _Fit:
    """By orthogonal columns, in the longest floats there are.

    The squares of the columns, which solving for the coefficients at once would need, keep only
    half the digits: of Longley's famous data nothing would be left. As in Excel a column that is
    a sum of others has the coefficient 0.
    """
    flat, columns = ys.reshape(-1).astype(np.longdouble), xs.astype(np.longdouble)
    fail_if(len(flat) < columns.shape[1])
    if columns.shape[1] == 1:
        return _line(flat, columns.reshape(-1), has_constant=has_constant)
    means = columns.mean(axis=0) * has_constant
    middle = flat.mean() * has_constant
    wanted = flat - middle
    kept, basis, triangle = _orthogonal(columns - means)
    parts = basis.T @ wanted
    inverse = _inverse(triangle)
    rest = wanted - basis @ parts
    slopes, errors = np.zeros((2, columns.shape[1]), np.longdouble)
    slopes[kept] = inverse @ parts
    errors[kept] = np.sqrt((inverse**2).sum(axis=1))
    leverage = means[kept] @ inverse
    return _Fit(
        tuple(map(float, slopes)), float(middle - means @ slopes), tuple(map(float, errors)),
        float(np.sqrt(1 / np.longdouble(len(flat)) + leverage @ leverage)),
        float(rest @ rest), float(wanted @ wanted), len(kept),
        len(flat) - len(kept) - has_constant,
    )  # fmt: skip


def _line(flat: Matrix, xs: Matrix, *, has_constant: bool) -> _Fit:
    """The same for one column, which most fits have: step by step what is done for several."""
    count = np.longdouble(len(flat))
    mean, middle = xs.mean() * has_constant, flat.mean() * has_constant
    offsets, wanted = xs - mean, flat - middle
    left = np.sqrt(offsets @ offsets)
    total = wanted @ wanted
    if left == 0:
        return _Fit((0.0,), float(middle), (0.0,), float(np.sqrt(1 / count)), float(total),
                    float(total), 0, len(flat) - has_constant)  # fmt: skip
    basis, inverse = offsets / left, 1 / left
    part = basis @ wanted
    slope, leverage, rest = inverse * part, mean * inverse, wanted - basis * part
    return _Fit(
        (float(slope),), float(middle - mean * slope), (float(np.sqrt(inverse**2)),),
        float(np.sqrt(1 / count + leverage * leverage)), float(rest @ rest), float(total), 1,
        len(flat) - 1 - has_constant,
    )  # fmt: skip


def _orthogonal(columns: Matrix) -> tuple[list[int], Matrix, Matrix]:
    """The columns that are no sum of those before, an orthonormal basis, and what leads to it."""
    kept: list[int] = []
    basis = np.zeros((len(columns), 0), np.longdouble)
    triangle = np.zeros((columns.shape[1], columns.shape[1]), np.longdouble)
    for number in range(columns.shape[1]):
        rest = columns[:, number].copy()
        size = np.sqrt(rest @ rest)
        for _ in range(2):  # the second time takes out what rounding has left
            parts = basis.T @ rest
            rest -= basis @ parts
            triangle[: len(kept), len(kept)] += parts
        left = np.sqrt(rest @ rest)
        if left <= _REDUNDANT * size:
            triangle[:, len(kept)] = 0
            continue
        triangle[len(kept), len(kept)] = left
        kept.append(number)
        basis = np.hstack([basis, (rest / left).reshape(-1, 1)])
    return kept, basis, triangle[: len(kept), : len(kept)]


def _inverse(triangle: Matrix) -> Matrix:
    """That of an upper triangle; numpy's own knows no long floats."""
    size = len(triangle)
    inverse = np.zeros((size, size), np.longdouble)
    for row in range(size - 1, -1, -1):
        rest = -triangle[row, row + 1 :] @ inverse[row + 1 :]
        rest[row] += 1
        inverse[row] = rest / triangle[row, row]
    return inverse


def linest(
    known_ys: Operand,
    known_xs: Operand = None,
    constant: Scalar = True,  # noqa: FBT002
    statistics: Scalar = False,  # noqa: FBT002
    *,
    of_powers: bool = False,
) -> Array:
    ys = _ys(known_ys, of_powers=of_powers)
    first, *rest = _table(ys, _xs(known_xs, ys), constant, statistics).rows
    return Array((_powers(first) if of_powers else first, *rest))


def _powers(row: tuple[Scalar, ...]) -> tuple[Scalar, ...]:
    return tuple(math.exp(v) if type(v) is float else v for v in row)


def _table(ys: Matrix, xs: Matrix, constant: Scalar, statistics: Scalar) -> Array:
    has_constant = constant is not False
    fit = _fitted(ys, xs, has_constant=has_constant)
    # Excel gives the coefficients from the last variable to the first, then the constant.
    first: tuple[Scalar, ...] = (*fit.coefficients[::-1], fit.constant)
    if not statistics:
        return Array((first,))
    variance = fit.residual / fit.degrees if fit.degrees else 0.0
    spread = math.sqrt(variance)
    errors: tuple[Scalar, ...] = tuple(e * spread for e in fit.errors[::-1])
    errors += (fit.constant_error * spread if has_constant else NA,)
    explained = fit.total - fit.residual
    pad = (NA,) * (len(first) - 2)
    f_value: Scalar = explained / fit.used / variance if variance and fit.used else NUM
    return Array((
        first, errors, (explained / fit.total if fit.total else 1.0, spread, *pad),
        (f_value, float(fit.degrees), *pad), (explained, fit.residual, *pad),
    ))  # fmt: skip


def trend(
    known_ys: Operand,
    known_xs: Operand = None,
    new_xs: Operand = None,
    constant: Scalar = True,  # noqa: FBT002
    *,
    of_powers: bool = False,
) -> Array:
    ys = _ys(known_ys, of_powers=of_powers)
    xs = _xs(known_xs, ys)
    fit = _fitted(ys, xs, has_constant=constant is not False)
    new, shape = xs, ys.shape
    if new_xs is not None:
        new, shape = _new_xs(np.array(matrix(new_xs), np.float64), xs, is_row=ys.shape[0] == 1)
    with np.errstate(over="ignore", invalid="ignore"):  # what is no number is told as such
        values = (new @ np.array(fit.coefficients) + fit.constant).reshape(shape)
    rows = (tuple(map(float, row)) for row in values)
    return Array(tuple(_powers(row) if of_powers else row for row in rows))


def _new_xs(given: Matrix, xs: Matrix, *, is_row: bool) -> tuple[Matrix, tuple[int, ...]]:
    """One row per prediction, and the shape of these: of one variable that in which it is given."""
    if xs.shape[1] == 1:
        return given.reshape(-1, 1), given.shape
    new = given.T if is_row else given
    fail_if(new.shape[1] != xs.shape[1], REF)
    return new, (1, len(new)) if is_row else (len(new), 1)


REGRESSION: Family = {
    "GROWTH": spec("a r? r? b?", partial(trend, of_powers=True)),
    "LINEST": spec("a r? b? b?", linest),
    "LOGEST": spec("a r? b? b?", partial(linest, of_powers=True)),
    "TREND": spec("a r? r? b?", trend),
}
