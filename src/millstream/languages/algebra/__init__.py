"""The algebra of streams and tables, written in Python.

    >>> import millstream
    >>> from millstream import algebra
    >>> vessels = algebra.table("vessels", key="mmsi", mmsi="integer", draught="number")
    >>> deep = vessels.filter(lambda v: v.draught >= 15)
    >>> job = millstream.compile_flow(deep=deep)
    >>> events = [{"_time": 1, "mmsi": 7, "draught": 16.0}, {"_time": 2, "mmsi": 7, "draught": 9.0}]
    >>> job.run({"vessels": events}).rows("deep")
    [{'_time': 1, '_weight': 1, 'mmsi': 7, 'draught': 16.0}, {'_time': 2, '_weight': -1, 'mmsi': 7, 'draught': 16.0}]

A `Stream` carries rows; a `Table` holds one row for each key. `changelog` and `to_table` turn
one into the other and cost nothing. Expressions are trees; nothing runs before
`millstream.compile_flow` makes a program of them.
"""  # noqa: E501 - a doctest shows its result as it is

from __future__ import annotations

from millstream.languages.algebra.derived import (
    buffer,
    combine_latest,
    debounce,
    distinct_until_changed,
    group_by,
    key_by,
    pairwise,
    sample,
    scan,
    skip_while,
    start_with,
    switch,
    take_while,
    window,
    with_latest_from,
    zip,  # noqa: A004 - the word of the thesis
)
from millstream.languages.algebra.groups import (
    Group,
    average,
    count,
    maximum,
    minimum,
    product,
    total,
)
from millstream.languages.algebra.stream import (
    Stream,
    Table,
    never,
    now,
    relation,
    stream,
    table,
)
from millstream.languages.algebra.translate import program_of
from millstream.tracing.lambdas import call, if_
from millstream.tracing.rows import when

__all__ = [
    "Group",
    "Stream",
    "Table",
    "average",
    "buffer",
    "call",
    "combine_latest",
    "count",
    "debounce",
    "distinct_until_changed",
    "group_by",
    "if_",
    "key_by",
    "maximum",
    "minimum",
    "never",
    "now",
    "pairwise",
    "product",
    "program_of",
    "relation",
    "sample",
    "scan",
    "skip_while",
    "start_with",
    "stream",
    "switch",
    "table",
    "take_while",
    "total",
    "when",
    "window",
    "with_latest_from",
    "zip",
]  # fmt: skip
