"""All functions in one table, those that are refused, and what to say about unknown ones."""

from __future__ import annotations

from functools import cache
from math import inf

from millstream.errors import suggest
from millstream.values.excel.computed_references import COMPUTED_REFERENCES
from millstream.values.excel.distributions import DISTRIBUTIONS
from millstream.values.excel.functions_arrays import ARRAYS
from millstream.values.excel.functions_bases import BASES
from millstream.values.excel.functions_bessel import BESSEL
from millstream.values.excel.functions_bonds import BONDS
from millstream.values.excel.functions_complex import COMPLEX
from millstream.values.excel.functions_convert import CONVERSIONS
from millstream.values.excel.functions_criteria import CRITERIA
from millstream.values.excel.functions_date import DATES
from millstream.values.excel.functions_financial import FINANCIAL
from millstream.values.excel.functions_lookup import LOOKUP
from millstream.values.excel.functions_math import MATH
from millstream.values.excel.functions_order import ORDERED
from millstream.values.excel.functions_regression import REGRESSION
from millstream.values.excel.functions_significance import SIGNIFICANCE
from millstream.values.excel.functions_statistics import STATISTICS
from millstream.values.excel.functions_text import TEXT
from millstream.values.excel.lambdas import LAMBDAS
from millstream.values.excel.registry import Family
from millstream.values.excel.special import CHOOSING, INFORMATION, LOGIC
from millstream.values.excel.syntax import Call, Name

FAMILIES: dict[str, Family] = {
    "mathematics": MATH | BASES,
    "statistics": STATISTICS | ORDERED,
    "conditions": CRITERIA,
    "logic": LOGIC,
    "information": INFORMATION,
    "text": TEXT,
    "date and time": DATES,
    "lookup": LOOKUP,
    "arrays": ARRAYS,
    "financial": FINANCIAL,
    "securities": BONDS,
    "distributions": DISTRIBUTIONS,
    "regression": REGRESSION,
    "significance": SIGNIFICANCE,
    "conversions": CONVERSIONS,
    "complex numbers": COMPLEX,
    "Bessel functions": BESSEL,
}

SPECIAL = CHOOSING | COMPUTED_REFERENCES | LAMBDAS

#: The least and the greatest number of arguments of special functions.
_COUNTS: dict[str, tuple[int, float]] = {
    "AREAS": (1, 1), "BYCOL": (2, 2), "BYROW": (2, 2), "CHOOSE": (2, inf), "COLUMN": (0, 1),
    "COLUMNS": (1, 1), "HYPERLINK": (1, 2), "IF": (1, 3), "IFERROR": (2, 2), "IFNA": (2, 2),
    "IFS": (2, inf), "INDIRECT": (1, 2), "ISFORMULA": (1, 1), "ISREF": (1, 1),
    "LAMBDA": (1, inf), "LAMBDA.CALL": (1, inf), "LET": (3, inf), "MAKEARRAY": (3, 3),
    "MAP": (2, inf), "OFFSET": (3, 5), "REDUCE": (3, 3), "ROW": (0, 1), "ROWS": (1, 1),
    "SCAN": (3, 3), "SHEET": (0, 1), "SHEETS": (0, 1), "SINGLE": (1, 1), "SWITCH": (3, inf),
}  # fmt: skip

#: Functions that give names to things: with each how many arguments.
NAMING = {"LET": 2, "LAMBDA": 1}

FUNCTIONS: Family = {name: known for family in FAMILIES.values() for name, known in family.items()}

#: The functions of streams; they are taken out of formulas before these are evaluated.
STREAM_FUNCTIONS = frozenset({"WINDOW", "WINDOWROWS", "PRE", "SELECT"})

_CHANCE = "its value would be another one each time"
_CLOCK = "its value depends on the clock; bind the time of a stream to a cell instead"
VOLATILE: dict[str, str] = {
    "RAND": _CHANCE,
    "RANDARRAY": _CHANCE,
    "RANDBETWEEN": _CHANCE,
    "NOW": _CLOCK,
    "TODAY": _CLOCK,
    "CELL": "it depends on where the cursor is and how cells look",
    "INFO": "it depends on the machine",
}


def is_known(function: str) -> bool:
    return function in FUNCTIONS or function in SPECIAL or function in STREAM_FUNCTIONS


def misuse(call: Call) -> str | None:
    """What is wrong with the arguments of a known function, whatever their values."""
    wrong = _miscount(call.function, len(call.arguments))
    step = NAMING.get(call.function)
    if wrong or not step or all(isinstance(a, Name) for a in call.arguments[:-1:step]):
        return wrong
    return f"{call.function} takes names, each {'before its value' if step == 2 else 'a parameter'}"


@cache
def _miscount(function: str, count: int) -> str | None:
    known = FUNCTIONS.get(function)
    least, most = _COUNTS.get(function, (0, inf))
    if not least <= count <= most or (known is not None and not known.accepts(count)):
        return f"{function} does not take {count} argument{'' if count == 1 else 's'}"
    if function == "IFS" and count % 2:
        return "IFS takes pairs of a condition and a value"
    if function == "LET" and count % 2 == 0:
        return "LET takes pairs of a name and a value, and a formula"
    return None


def why_unknown(function: str) -> str:
    """One sentence on a function that is not there."""
    if function in VOLATILE:
        return f"{function} is volatile and not supported: {VOLATILE[function]}"
    if function in STREAM_FUNCTIONS:
        return f"{function} cannot stand here"
    near = suggest(function, (*FUNCTIONS, *SPECIAL, *STREAM_FUNCTIONS))
    return f"the function {function} is not supported" + (f". {near}" if near else "")


__all__ = ["FAMILIES", "FUNCTIONS", "NAMING", "SPECIAL", "STREAM_FUNCTIONS", "VOLATILE", "is_known",
           "misuse", "why_unknown"]  # fmt: skip
