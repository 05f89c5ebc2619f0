"""All scalar functions by name."""

from __future__ import annotations

from millstream.values.core.arithmetic import ARITHMETIC
from millstream.values.core.casts import CASTS
from millstream.values.core.logic import LOGIC
from millstream.values.core.machine import MACHINE
from millstream.values.core.reading import READING
from millstream.values.core.scalar import Scalar
from millstream.values.core.text import TEXTS
from millstream.values.core.time import TIMES

#: Those of rows; what calculates as machines do stands in procedures only.
OF_ROWS: dict[str, Scalar] = {
    scalar.name: scalar for scalar in (*ARITHMETIC, *LOGIC, *TEXTS, *CASTS, *TIMES, *READING)
}
SCALARS: dict[str, Scalar] = OF_ROWS | {scalar.name: scalar for scalar in MACHINE}

#: Binary operators by how tightly they bind, loosest first; `not` sits above `and`.
PRECEDENCE: dict[str, int] = {
    "or": 1, "and": 2,
    "==": 4, "!=": 4, "<": 4, "<=": 4, ">": 4, ">=": 4,
    "||": 5, "+": 6, "-": 6, "*": 7, "/": 7, "%": 7,
}  # fmt: skip
