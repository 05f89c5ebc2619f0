"""All functions in one table, those that are refused, and what to say about unknown ones."""

from __future__ import annotations

from millstream.errors import suggest
from millstream.values.excel.distributions import DISTRIBUTIONS
from millstream.values.excel.functions_arrays import ARRAYS
from millstream.values.excel.functions_bessel import BESSEL
from millstream.values.excel.functions_bonds import BONDS
from millstream.values.excel.functions_complex import COMPLEX
from millstream.values.excel.functions_convert import CONVERSIONS
from millstream.values.excel.functions_criteria import CRITERIA
from millstream.values.excel.functions_date import DATES
from millstream.values.excel.functions_financial import FINANCIAL
from millstream.values.excel.functions_lookup import LOOKUP
from millstream.values.excel.functions_math import MATH
from millstream.values.excel.functions_regression import REGRESSION
from millstream.values.excel.functions_significance import SIGNIFICANCE
from millstream.values.excel.functions_statistics import STATISTICS
from millstream.values.excel.functions_text import TEXT
from millstream.values.excel.lambdas import LAMBDAS
from millstream.values.excel.registry import Family
from millstream.values.excel.special import CHOOSING, INFORMATION, LOGIC

FAMILIES: dict[str, Family] = {
    "mathematics": MATH,
    "statistics": STATISTICS,
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

SPECIAL = CHOOSING | LAMBDAS

FUNCTIONS: Family = {name: found for family in FAMILIES.values() for name, found in family.items()}

#: The functions of streams; they are taken out of formulas before these are evaluated.
STREAM_FUNCTIONS = frozenset({"WINDOW", "WINDOWROWS", "PRE", "SELECT"})

_CHANCE = "its value would be another one each time"
_CLOCK = "its value depends on the clock; bind the time of a stream to a cell instead"
_COMPUTED = "what it refers to is not known before it runs; use INDEX, MATCH or CHOOSE"
VOLATILE: dict[str, str] = {
    "RAND": _CHANCE,
    "RANDARRAY": _CHANCE,
    "RANDBETWEEN": _CHANCE,
    "NOW": _CLOCK,
    "TODAY": _CLOCK,
    "INDIRECT": _COMPUTED,
    "OFFSET": _COMPUTED,
    "CELL": "it depends on where the cursor is and how cells look",
    "INFO": "it depends on the machine",
}


def is_known(function: str) -> bool:
    return function in FUNCTIONS or function in SPECIAL or function in STREAM_FUNCTIONS


def why_unknown(function: str) -> str:
    """One sentence on a function that is not there."""
    if function in VOLATILE:
        return f"{function} is volatile and not supported: {VOLATILE[function]}"
    if function in STREAM_FUNCTIONS:
        return f"{function} cannot stand here"
    near = suggest(function, (*FUNCTIONS, *SPECIAL, *STREAM_FUNCTIONS))
    return f"the function {function} is not supported" + (f". {near}" if near else "")


__all__ = ["FAMILIES", "FUNCTIONS", "SPECIAL", "STREAM_FUNCTIONS", "VOLATILE", "is_known",
           "why_unknown"]  # fmt: skip
