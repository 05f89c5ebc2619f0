"""Least squares: LINEST, TREND and their exponential kin."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from millstream.formulas.arrays import Array, Operand
from millstream.formulas.functions_lookup import matrix
from millstream.formulas.registry import Family, spec
from millstream.formulas.values import NA, NUM, REF, Scalar, fail

Matrix = np.ndarray[Any, np.dtype[Any]]


def _ys(operand: Operand) -> Matrix:
    return np.array(matrix(operand), np.float64)


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


def _fitted(ys: Matrix, xs: Matrix, *, has_constant: bool) -> tuple[Matrix, Matrix, Matrix]:
    """Coefficients (the constant last), the design, and the observations."""
    ones = np.ones((len(xs), 1)) if has_constant else np.zeros((len(xs), 0))
    design = np.hstack([xs, ones])
    flat = ys.reshape(-1)
    if len(flat) < design.shape[1]:
        fail(NUM)
    found, *_ = np.linalg.lstsq(design, flat, rcond=None)
    if not has_constant:
        found = np.append(found, 0.0)
    return found, design, flat


def linest(
    known_ys: Operand,
    known_xs: Operand = None,
    constant: Scalar = True,  # noqa: FBT002
    statistics: Scalar = False,  # noqa: FBT002
) -> Array:
    ys = _ys(known_ys)
    return _table(ys, _xs(known_xs, ys), constant, statistics)


def _table(ys: Matrix, xs: Matrix, constant: Scalar, statistics: Scalar) -> Array:
    has_constant = constant is not False
    found, design, flat = _fitted(ys, xs, has_constant=has_constant)
    # Excel gives the coefficients from the last variable to the first, then the constant.
    first = (*(float(v) for v in found[-2::-1]), float(found[-1]))
    if not statistics:
        return Array((first,))
    width = len(first)
    rest = flat - design @ (found if has_constant else found[:-1])
    middle = flat.mean() if has_constant else 0.0
    residual, total = float(rest @ rest), float(((flat - middle) ** 2).sum())
    degrees = len(flat) - design.shape[1]
    variance = residual / degrees if degrees else 0.0
    spread = np.sqrt(np.maximum(np.diag(np.linalg.pinv(design.T @ design)) * variance, 0.0))
    errors: tuple[Scalar, ...] = tuple(float(v) for v in spread[: xs.shape[1]][::-1])
    errors += (float(spread[-1]) if has_constant else NA,)
    explained = total - residual
    pad = (NA,) * (width - 2)
    f_value: Scalar = explained / xs.shape[1] / variance if variance else NUM
    return Array((
        first, errors, (explained / total if total else 1.0, math.sqrt(variance), *pad),
        (f_value, float(degrees), *pad), (explained, residual, *pad),
    ))  # fmt: skip


def logest(
    known_ys: Operand,
    known_xs: Operand = None,
    constant: Scalar = True,  # noqa: FBT002
    statistics: Scalar = False,  # noqa: FBT002
) -> Array:
    ys = _ys(known_ys)
    if (ys <= 0).any():
        fail(NUM)
    rows = _table(np.log(ys), _xs(known_xs, ys), constant, statistics).rows
    powers = tuple(math.exp(v) if type(v) is float else v for v in rows[0])
    return Array((powers, *rows[1:]))


def trend(
    known_ys: Operand,
    known_xs: Operand = None,
    new_xs: Operand = None,
    constant: Scalar = True,  # noqa: FBT002
) -> Array:
    ys = _ys(known_ys)
    return _predicted(ys, known_xs, new_xs, constant, ys)


def growth(
    known_ys: Operand,
    known_xs: Operand = None,
    new_xs: Operand = None,
    constant: Scalar = True,  # noqa: FBT002
) -> Array:
    ys = _ys(known_ys)
    if (ys <= 0).any():
        fail(NUM)
    logarithms = _predicted(np.log(ys), known_xs, new_xs, constant, ys)
    return Array(
        tuple(tuple(math.exp(v) if type(v) is float else v for v in r) for r in logarithms.rows)
    )


def _predicted(
    ys: Matrix, known_xs: Operand, new_xs: Operand, constant: Scalar, shape: Matrix
) -> Array:
    xs = _xs(known_xs, ys)
    found, _, _ = _fitted(ys, xs, has_constant=constant is not False)
    if new_xs is None:
        new, is_row = xs, shape.shape[0] == 1
    else:
        given = np.array(matrix(new_xs), np.float64)
        is_row = given.shape[0] == 1 and xs.shape[1] == 1
        new = given.reshape(-1, 1) if xs.shape[1] == 1 else given
        if new.shape[1] != xs.shape[1]:
            fail(REF)
    values = tuple(float(v) for v in new @ found[:-1] + found[-1])
    return Array((values,)) if is_row else Array(tuple((v,) for v in values))


REGRESSION: Family = {
    "GROWTH": spec("a r? r? b?", growth),
    "LINEST": spec("a r? b? b?", linest),
    "LOGEST": spec("a r? b? b?", logest),
    "TREND": spec("a r? r? b?", trend),
}
