"""A small machine that runs the requirements of a judge on a block of rows at a time.

Compiled once, whatever the rules are: a rule file of 500 requirements would take half a
minute to compile and be no faster, because each instruction here works on a whole block.

Numbers live in one bank of registers, each with a mask; truth in another, one byte per
value: 0 false, 1 not known, 2 true. So `and` is the least, `or` the greatest and `not` is
2 - x, which is Kleene's logic.

Most rules are about few rows: those bound for one berth. Where a condition is false for a
whole block, what only its requirement needs is skipped; so rows had better come in an
order that puts those of one place together.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from millstream.compiled import compiled, tight
from millstream.plan.batch import Array

BLOCK = 512

(LOAD, LOAD_TRUTH, CONSTANT, TRUTH, ADD, SUBTRACT, MULTIPLY, DIVIDE, NEGATE, ABSOLUTE,
 EQUAL, UNEQUAL, LESS, AT_MOST, IS, IS_NOT, BELOW, ABOVE, UP_TO, FROM,
 AND, OR, NOT, IS_NULL, UNLESS, WHERE, SKIP, JUDGE, STORE, STORE_TRUTH) = range(30)  # fmt: skip

FALSE, UNKNOWN, TRUE = 0, 1, 2


class Code(NamedTuple):
    """Instructions: what to do, from which two registers, into which, and a constant."""

    operation: Array
    first: Array
    second: Array
    target: Array
    constant: Array


class Found(NamedTuple):
    """What is not met: the row, the number of the requirement, and FALSE or UNKNOWN."""

    row: Array
    requirement: Array
    outcome: Array


class Stored(NamedTuple):
    """Values to be looked at from outside, and where they are known; a column per row."""

    numbers: Array
    known: Array


@tight
def _leaf(
    code: Code,
    n: int,
    given: tuple[Array, Array, Array],
    block: Array,
    number: Array,
    mask: Array,
    truth: Array,
) -> None:
    """What is given: columns of numbers with masks, columns of truth, constants."""
    columns, there, truths = given
    a, c = code.first[n], code.target[n]
    if code.operation[n] == LOAD:
        for j in range(block.size):
            number[c, j] = columns[a, block[j]]
            mask[c, j] = there[a, block[j]]
    elif code.operation[n] == LOAD_TRUTH:
        for j in range(block.size):
            truth[c, j] = truths[a, block[j]]
    elif code.operation[n] == CONSTANT:
        for j in range(block.size):
            number[c, j] = code.constant[n]
            mask[c, j] = code.second[n] == 1
    else:
        for j in range(block.size):
            truth[c, j] = a


@tight
def _arithmetic(
    operation: int, x: Array, xv: Array, y: Array, yv: Array, z: Array, zv: Array, size: int
) -> None:
    if operation == ADD:
        for j in range(size):
            z[j] = x[j] + y[j]
            zv[j] = xv[j] & yv[j]
    elif operation == SUBTRACT:
        for j in range(size):
            z[j] = x[j] - y[j]
            zv[j] = xv[j] & yv[j]
    elif operation == MULTIPLY:
        for j in range(size):
            z[j] = x[j] * y[j]
            zv[j] = xv[j] & yv[j]
    elif operation == DIVIDE:
        for j in range(size):
            there = xv[j] & yv[j] & (y[j] != 0.0)
            z[j] = x[j] / (y[j] if there else 1.0)
            zv[j] = there
    elif operation == NEGATE:
        for j in range(size):
            z[j] = -x[j]
            zv[j] = xv[j]
    elif operation == ABSOLUTE:
        for j in range(size):
            z[j] = abs(x[j])
            zv[j] = xv[j]


@tight
def _comparison(
    operation: int, x: Array, xv: Array, y: Array, yv: Array, z: Array, size: int
) -> None:
    """NaN equals NaN and is greater than everything else."""
    if operation == EQUAL:
        for j in range(size):
            holds = (x[j] == y[j]) | ((x[j] != x[j]) & (y[j] != y[j]))
            z[j] = (2 * holds) if xv[j] & yv[j] else 1
    elif operation == UNEQUAL:
        for j in range(size):
            holds = (x[j] == y[j]) | ((x[j] != x[j]) & (y[j] != y[j]))
            z[j] = (2 - 2 * holds) if xv[j] & yv[j] else 1
    elif operation == LESS:
        for j in range(size):
            holds = (x[j] < y[j]) | ((x[j] == x[j]) & (y[j] != y[j]))
            z[j] = (2 * holds) if xv[j] & yv[j] else 1
    elif operation == AT_MOST:
        for j in range(size):
            holds = (x[j] <= y[j]) | (y[j] != y[j])
            z[j] = (2 * holds) if xv[j] & yv[j] else 1


@tight
def _against(operation: int, x: Array, xv: Array, y: float, z: Array, size: int) -> None:
    """Comparisons with a constant, which is a number."""
    if operation == IS:
        for j in range(size):
            z[j] = (2 * (x[j] == y)) if xv[j] else 1
    elif operation == IS_NOT:
        for j in range(size):
            z[j] = (2 * (x[j] != y)) if xv[j] else 1
    elif operation == BELOW:
        for j in range(size):
            z[j] = (2 * (x[j] < y)) if xv[j] else 1
    elif operation == ABOVE:
        for j in range(size):
            z[j] = (2 * ((x[j] > y) | (x[j] != x[j]))) if xv[j] else 1
    elif operation == UP_TO:
        for j in range(size):
            z[j] = (2 * (x[j] <= y)) if xv[j] else 1
    elif operation == FROM:
        for j in range(size):
            z[j] = (2 * ((x[j] >= y) | (x[j] != x[j]))) if xv[j] else 1


@tight
def _logic(operation: int, x: Array, y: Array, z: Array, size: int) -> None:
    if operation == AND:
        for j in range(size):
            z[j] = min(x[j], y[j])
    elif operation == OR:
        for j in range(size):
            z[j] = max(x[j], y[j])
    elif operation == NOT:
        for j in range(size):
            z[j] = 2 - x[j]


@tight
def _chosen(operation: int, x: Array, xv: Array, y: Array, z: Array, zv: Array, size: int) -> None:
    """A number, or zero where something is true; or nothing where it is not."""
    if operation == UNLESS:
        for j in range(size):
            z[j] = 0.0 if y[j] == TRUE else x[j]
            zv[j] = xv[j] | (y[j] == TRUE)
    else:
        for j in range(size):
            z[j] = x[j]
            zv[j] = xv[j] & (y[j] == TRUE)


@tight
def _missing(xv: Array, z: Array, size: int) -> None:
    for j in range(size):
        z[j] = 0 if xv[j] else 2


@tight
def _store(x: Array, xv: Array, stored: Stored, place: int, start: int, size: int) -> None:
    for j in range(size):
        stored.numbers[place, start + j] = x[j]
        stored.known[place, start + j] = xv[j]


@tight
def _store_truth(x: Array, stored: Stored, place: int, start: int, size: int) -> None:
    for j in range(size):
        stored.numbers[place, start + j] = x[j]
        stored.known[place, start + j] = x[j] != UNKNOWN


@tight
def _is_false(x: Array, size: int) -> bool:
    """Whether something is false for a whole block."""
    top = np.uint8(0)
    for j in range(size):
        top |= x[j]
    return bool(top == 0)


@tight
def _unmet(when: Array, holds: Array, size: int) -> int:
    """How many rows of a block do not meet a requirement for certain."""
    count = 0
    for j in range(size):
        count += max(2 - when[j], holds[j]) != 2
    return count


@tight
def _noted(
    when: Array, holds: Array, block: Array, size: int, requirement: int, unmet: Found, used: int
) -> int:
    """Note the rows of a block that do not meet a requirement for certain."""
    for j in range(size):
        outcome = max(2 - when[j], holds[j])
        if outcome != 2:
            unmet.row[used] = block[j]
            unmet.requirement[used] = requirement
            unmet.outcome[used] = outcome
            used += 1
    return used


@compiled
def _larger(unmet: Found, used: int, room: int) -> Found:
    more = Found(np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.uint8))
    more.row[:used] = unmet.row[:used]
    more.requirement[:used] = unmet.requirement[:used]
    more.outcome[:used] = unmet.outcome[:used]
    return more


@compiled
def by_row(unmet: Found, rows: int) -> tuple[Array, Array, Array]:
    """Where the requirements of each row begin, all of them, and which rows fail one.

    What fails leaves what is not known unsaid. Requirements of a row come in their order.
    """
    fails = np.zeros(rows, np.bool_)
    for i in range(unmet.row.size):
        fails[unmet.row[i]] |= unmet.outcome[i] == FALSE
    first = np.zeros(rows + 1, np.int64)
    for i in range(unmet.row.size):
        if (unmet.outcome[i] == FALSE) == fails[unmet.row[i]]:
            first[unmet.row[i] + 1] += 1
    for row in range(rows):
        first[row + 1] += first[row]
    requirements = np.empty(first[rows], np.int64)
    used = first[:rows].copy()
    for i in range(unmet.row.size):
        row = unmet.row[i]
        if (unmet.outcome[i] == FALSE) == fails[row]:
            requirements[used[row]] = unmet.requirement[i]
            used[row] += 1
    return first, requirements, fails


@compiled
def judge_rows(
    code: Code,
    given: tuple[Array, Array, Array],
    order: Array,
    registers: tuple[int, int],
    stored: Stored,
) -> Found:
    """Run the code on rows in an order: columns of numbers with masks, and of truth."""
    rows = len(order)
    number = np.empty((registers[0], BLOCK), np.float64)
    mask = np.empty((registers[0], BLOCK), np.bool_)
    truth = np.empty((registers[1], BLOCK), np.uint8)
    unmet = Found(np.empty(1024, np.int64), np.empty(1024, np.int64), np.empty(1024, np.uint8))
    used = 0
    for start in range(0, rows, BLOCK):
        size = min(BLOCK, rows - start)
        block = order[start : start + size]
        n = 0
        while n < len(code.operation):
            operation = code.operation[n]
            a, b, c = code.first[n], code.second[n], code.target[n]
            n += 1
            if operation <= TRUTH:
                _leaf(code, n - 1, given, block, number, mask, truth)
            elif operation <= ABSOLUTE:
                _arithmetic(operation, number[a], mask[a], number[b], mask[b],
                            number[c], mask[c], size)  # fmt: skip
            elif operation <= AT_MOST:
                _comparison(operation, number[a], mask[a], number[b], mask[b], truth[c], size)
            elif operation <= FROM:
                _against(operation, number[a], mask[a], code.constant[n - 1], truth[c], size)
            elif operation <= NOT:
                _logic(operation, truth[a], truth[b], truth[c], size)
            elif operation == IS_NULL:
                _missing(mask[a], truth[c], size)
            elif operation <= WHERE:
                _chosen(operation, number[a], mask[a], truth[b], number[c], mask[c], size)
            elif operation == SKIP:
                if _is_false(truth[a], size):
                    n = c
            elif operation == STORE:
                _store(number[a], mask[a], stored, c, start, size)
            elif operation == STORE_TRUTH:
                _store_truth(truth[a], stored, c, start, size)
            else:
                count = _unmet(truth[a], truth[b], size)
                if used + count > len(unmet.row):
                    unmet = _larger(unmet, used, 2 * (used + count))
                if count:
                    used = _noted(truth[a], truth[b], block, size, c, unmet, used)
    return Found(unmet.row[:used], unmet.requirement[:used], unmet.outcome[:used])
