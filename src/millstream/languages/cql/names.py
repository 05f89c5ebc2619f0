"""The words of CQL and what they are called in the calculus: types, functions, aggregates."""

from __future__ import annotations

from millstream.calculus.types import BOOLEAN, DURATION, INTEGER, NUMBER, TEXT, TIME, Type

TYPES: dict[str, Type] = {
    **dict.fromkeys(("integer", "int", "bigint", "smallint", "tinyint", "long"), INTEGER),
    **dict.fromkeys(
        ("number", "float", "double", "real", "numeric", "decimal", "double precision"), NUMBER
    ),
    **dict.fromkeys(("text", "char", "varchar", "string", "character"), TEXT),
    **dict.fromkeys(("boolean", "bool"), BOOLEAN),
    **dict.fromkeys(("time", "timestamp", "datetime", "timestamptz"), TIME),
    **dict.fromkeys(("duration", "interval"), DURATION),
}
SHOWN_TYPES = ("integer", "number", "text", "boolean", "time", "duration")

#: The functions that may be written as calls, and the scalar each of them is.
FUNCTIONS: dict[str, str] = {
    **{
        name: name
        for name in (
            "abs", "floor", "ceil", "round", "sqrt", "exp", "ln", "power", "div", "least",
            "greatest", "coalesce", "length", "upper", "lower", "trim", "substring",
            "starts_with", "ends_with", "contains", "replace", "year", "month", "day", "hour",
            "minute", "second", "weekday", "floor_time", "seconds", "number", "integer", "text",
            "boolean", "time", "duration", "if",
        )
    },
    "ceiling": "ceil",
    "pow": "power",
    "mod": "%",
    "len": "length",
    "char_length": "length",
    "character_length": "length",
    "substr": "substring",
    "ucase": "upper",
    "lcase": "lower",
    "ifnull": "coalesce",
    "nvl": "coalesce",
    "dayofweek": "weekday",
    "day_of_week": "weekday",
    "iff": "if",
}  # fmt: skip

#: Functions with a grammar of their own.
GRAMMATICAL = ("extract", "cast", "position", "trim", "substring", "if")

#: Aggregates, and what they are called in the calculus or, made of others, in `spread`.
AGGREGATES: dict[str, str] = {
    "sum": "sum",
    "count": "count",
    "avg": "avg",
    "mean": "avg",
    "min": "min",
    "max": "max",
    "stddev": "stddev",
    "stddev_samp": "stddev",
    "stddev_pop": "stddev_pop",
    "variance": "variance",
    "var_samp": "variance",
    "var_pop": "var_pop",
}

#: What may be extracted from a time.
TIME_PARTS = ("year", "month", "day", "hour", "minute", "second", "epoch")
