"""The words of CQL and what they are called in the calculus: types, functions, aggregates."""

from __future__ import annotations

from millstream.calculus.types import BOOLEAN, DURATION, INTEGER, NUMBER, TEXT, TIME, Type

TYPES: dict[str, Type] = {
    **dict.fromkeys(("integer", "int", "bigint", "smallint", "tinyint", "long", "byte"), INTEGER),
    **dict.fromkeys(
        ("number", "float", "double", "real", "numeric", "decimal", "double precision"), NUMBER
    ),
    **dict.fromkeys(("text", "char", "varchar", "string", "character"), TEXT),
    **dict.fromkeys(("boolean", "bool"), BOOLEAN),
    **dict.fromkeys(("time", "timestamp", "datetime", "timestamptz"), TIME),
    **dict.fromkeys(("duration", "interval"), DURATION),
}
#: Types of numbers that say how many digits there are, and how many of them after the point.
DECIMALS = ("numeric", "decimal")
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
            "boolean", "time", "duration", "if", "regexp_like", "regexp_extract",
            "regexp_replace", "split_part", "split", "json_value", "json_query", "json_text",
            "local_time", "zoned_time",
        )
    },
    "regexp_matches": "regexp_like",
    "to_json": "json",
    "json_extract_string": "json_text",
    "json_extract": "json_query",
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
    "iif": "if",
}  # fmt: skip

#: Functions with a grammar of their own.
GRAMMATICAL = ("extract", "cast", "position", "trim", "substring", "if")

#: `/` in scripts of the prototype's style: of integers an integer, else a number.
QUOTIENT = "quotient"

#: Aggregates that look at the order of their rows, and what they are called in
#: `ordered_totals`.
ORDERED_TOTALS: dict[str, str] = {
    "median": "percentile_cont",
    "percentile": "percentile_cont",
    "percentile_cont": "percentile_cont",
    "quantile_cont": "percentile_cont",
    "percentile_disc": "percentile_disc",
    "quantile_disc": "percentile_disc",
    "string_agg": "string_agg",
    "listagg": "string_agg",
    "array_agg": "array_agg",
    "first": "first",
    "last": "last",
}

#: Aggregates, and what they are called in the calculus or, made of others, in `spread`.
AGGREGATES: dict[str, str] = {
    "sum": "sum",
    "count": "count",
    "avg": "avg",
    "mean": "avg",
    "min": "min",
    "max": "max",
    "bool_and": "min",
    "every": "min",
    "bool_or": "max",
    "stddev": "stddev",
    "stddev_samp": "stddev",
    "stddev_pop": "stddev_pop",
    "variance": "variance",
    "var_samp": "variance",
    "var_pop": "var_pop",
    **ORDERED_TOTALS,
}

#: Aggregates of conditions, which are the least or the greatest of 0 and 1.
TRUTHS = ("bool_and", "every", "bool_or")

#: What may be extracted from a time.
TIME_PARTS = ("year", "quarter", "month", "week", "day", "doy", "dow", "isodow", "hour",
              "minute", "second", "epoch")  # fmt: skip

#: Words that begin something else where a name without AS could stand.
RESERVED = frozenset(
    (
        "select", "distinct", "from", "where", "group", "having", "order", "limit", "union",
        "except", "intersect", "on", "using", "join", "inner", "left", "right", "full", "cross",
        "natural", "outer", "as", "and", "or", "not", "in", "is", "like", "ilike", "between",
        "case", "when", "then", "else", "end", "exists", "null", "true", "false", "with", "asc",
        "desc", "nulls", "all", "any", "some",
    )
)  # fmt: skip

_PATTERNS = "use LIKE, REGEXP, contains, starts_with or ends_with"
_ROWS = "use a window in the FROM clause, and GROUP BY"
_SAMPLE = "use a condition on a column, such as WHERE id % 10 = 0"

#: Words of SQL that are not part of CQL, and what to write instead.
ABSENT: dict[str, str | None] = {
    **dict.fromkeys(("within", "respect", "ignore"), _ROWS),
    "window": "it stands after WHERE, GROUP BY and HAVING, and before QUALIFY",
    **dict.fromkeys(("similar", "glob"), _PATTERNS),
    **dict.fromkeys(("sample", "tablesample"), _SAMPLE),
    **dict.fromkeys(("pivot", "unpivot"), "use GROUP BY and FILTER (WHERE ...)"),
    **dict.fromkeys(("lateral", "apply"), "put the subquery into the select list, or join it"),
    **dict.fromkeys(("semi", "anti"), "use EXISTS (SELECT ...) or NOT EXISTS (SELECT ...)"),
    **dict.fromkeys(("asof", "positional"), "use JOIN ... ON condition"),
    **dict.fromkeys(("~~", "!~~"), _PATTERNS),
    **dict.fromkeys(("**", "^"), "write power(a, b)"),
    **dict.fromkeys(("&", "|", "<<", ">>", "@>", "<@", "&&", "!", ":=", "=>")),
    "//": "write a DIV b",
    "<=>": "write a IS NOT DISTINCT FROM b",
    "at": "write time AT TIME ZONE 'Europe/Amsterdam'",
    "collate": "texts are ordered by their characters",
    "escape": "it stands after LIKE and its pattern",
    "fetch": "write ORDER BY ... LIMIT 3",
    "for": None,
    "into": "write CREATE OUTPUT name AS SELECT ...",
    "offset": "ORDER BY ... LIMIT keeps the first rows",
    "qualify": "it stands after WHERE, GROUP BY and HAVING",
    "over": "it stands after a function, and parentheses or the name of a window after it",
    "sets": "group by one list of columns; tie several queries with UNION ALL",
}
