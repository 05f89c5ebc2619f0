"""Which compiled function means which scalar function, by the shapes of its arguments.

A shape is how a value is held in a loop: `f` a float, `i` a 64-bit integer (times and
durations too), `b` a boolean, `s` the code of a text in a pool.
"""

from __future__ import annotations

from dataclasses import dataclass

from millstream.calculus.types import Kind, Type

_SHAPES = {
    Kind.NUMBER: "f",
    Kind.INTEGER: "i",
    Kind.TIME: "i",
    Kind.DURATION: "i",
    Kind.BOOLEAN: "b",
    Kind.TEXT: "s",
}


def shape_of(type_: Type) -> str:
    return _SHAPES[type_.kind]


@dataclass(frozen=True, slots=True)
class Operation:
    """A compiled function of `scalar_*`.

    `plain` is the same as an expression for plain values; shorter code compiles sooner.
    `faults` are messages; `{}` stands for the type of the result.
    """

    name: str
    plain: str | None = None
    faults: tuple[str, ...] = ()


_OVERFLOW = "{} overflow"
_ZERO = "division by zero"

#: The value is held alike before and after: nothing is computed.
SAME = Operation("same", "{0}")

_OPERATIONS: dict[tuple[str, str], Operation] = {
    ("+", "ii"): Operation("add_integers", faults=(_OVERFLOW,)),
    ("-", "ii"): Operation("subtract_integers", faults=(_OVERFLOW,)),
    ("*", "ii"): Operation("multiply_integers", faults=(_OVERFLOW,)),
    ("div", "ii"): Operation("divide_integers", faults=(_ZERO, _OVERFLOW)),
    ("%", "ii"): Operation("remainder_of_integers", faults=(_ZERO,)),
    ("neg", "i"): Operation("negate_integer", faults=(_OVERFLOW,)),
    ("abs", "i"): Operation("abs_integer", faults=(_OVERFLOW,)),
    ("+", "ff"): Operation("add_numbers", "{0} + {1}"),
    ("-", "ff"): Operation("subtract_numbers", "{0} - {1}"),
    ("*", "ff"): Operation("multiply_numbers", "{0} * {1}"),
    ("/", "ff"): Operation("divide_numbers", faults=(_ZERO,)),
    ("%", "ff"): Operation("remainder_of_numbers", faults=(_ZERO,)),
    ("neg", "f"): Operation("negate_number", "-{0}"),
    ("abs", "f"): Operation("abs_number", "abs({0})"),
    ("floor", "f"): Operation("floor_number"),
    ("ceil", "f"): Operation("ceil_number"),
    ("round", "f"): Operation("round_number"),
    ("sqrt", "f"): Operation("root", faults=("square root of a negative number",)),
    ("exp", "f"): Operation("exponential"),
    ("ln", "f"): Operation("logarithm", faults=("logarithm of a number that is not positive",)),
    ("power", "ff"): Operation("power", faults=("power outside its domain",)),
    ("*", "if"): Operation("scale", faults=(_OVERFLOW,)),
    ("*", "fi"): Operation("scale_by", faults=(_OVERFLOW,)),
    ("/", "if"): Operation("share", faults=(_ZERO, _OVERFLOW)),
    ("/", "ii"): Operation("ratio_of_durations", faults=(_ZERO,)),
    ("seconds", "i"): Operation("seconds"),
    ("number", "f"): SAME,
    ("number", "i"): Operation("number_of_integer", "float({0})"),
    ("number", "b"): Operation("number_of_boolean"),
    ("integer", "i"): SAME,
    ("integer", "f"): Operation("truncate", faults=(_OVERFLOW,)),
    ("integer", "b"): Operation("integer_of_boolean"),
    ("boolean", "b"): SAME,
    ("boolean", "i"): Operation("boolean_of_integer", "{0} != 0"),
    ("time", "i"): SAME,
    ("duration", "i"): SAME,
    ("floor_time", "ii"): Operation(
        "floor_time", faults=("a step that is not positive", _OVERFLOW)
    ),
    **{
        (part, "i"): Operation(part)
        for part in ("year", "month", "day", "hour", "minute", "second", "weekday")
    },
    ("not", "b"): Operation("negation", "not {0}"),
    ("and", "bb"): Operation("both", "{0} & {1}"),
    ("or", "bb"): Operation("either", "{0} | {1}"),
}

_COMPARISONS = {
    "==": "equal",
    "!=": "differ",
    "<": "less",
    "<=": "at_most",
    ">": "more",
    ">=": "at_least",
}
for _symbol, _name in _COMPARISONS.items():
    _OPERATIONS[_symbol, "ff"] = Operation(f"{_name}_numbers")
    _OPERATIONS[_symbol, "ii"] = Operation(f"{_name}_integers", f"{{0}} {_symbol} {{1}}")
    _OPERATIONS[_symbol, "bb"] = Operation(f"{_name}_booleans")
# Texts are held as codes: equal texts have equal codes, but their order is lost.
_OPERATIONS["==", "ss"] = _OPERATIONS["==", "ii"]
_OPERATIONS["!=", "ss"] = _OPERATIONS["!=", "ii"]

#: Functions of any number of arguments, computed two at a time from the left.
CHAINED: dict[tuple[str, str], str] = {
    ("least", "f"): "least_number",
    ("least", "i"): "least_integer",
    ("least", "b"): "least_boolean",
    ("greatest", "f"): "greatest_number",
    ("greatest", "i"): "greatest_integer",
    ("greatest", "b"): "greatest_boolean",
    **{("coalesce", shape): "first" for shape in "fibs"},
}

#: Functions of texts held as codes; all else that touches text is computed before the loop.
ON_CODES = frozenset({"==", "!=", "is_null", "if", "coalesce"})


def operation(function: str, args: tuple[Type, ...]) -> Operation:
    """The compiled function for these arguments."""
    return _OPERATIONS[function, "".join(map(shape_of, args))]


def fault_messages(function: str, args: tuple[Type, ...], result: Type) -> tuple[str, ...]:
    """What can go wrong in a call that does not touch text."""
    found = _OPERATIONS.get((function, "".join(map(shape_of, args))))
    return tuple(m.format(result) for m in found.faults) if found else ()
