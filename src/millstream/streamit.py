"""StreamIt inside Python: streams of functions, the same tree as a `.str` file.

>>> from millstream import streamit
>>> def average(a, b, c):
...     return (a + b + c) / 3.0
>>> smooth = streamit.filter(average, takes="float", peek=3, pop=1)
>>> smooth.compile().program.outputs
('out',)
"""

from __future__ import annotations

from millstream.languages.streamit.embedded import (
    Stream,
    Value,
    call,
    feedbackloop,
    filter,  # noqa: A004 - as the language calls it
    pipeline,
    splitjoin,
    where,
)

__all__ = [
    "Stream", "Value", "call", "feedbackloop", "filter", "pipeline", "splitjoin", "where",
]  # fmt: skip
