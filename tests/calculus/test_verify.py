"""Programs that are not built by a language are held to the same rules."""

from __future__ import annotations

import pytest

from millstream.calculus.functions import Assign, Filter, Function, Map
from millstream.calculus.graph import Input, Operator, Program
from millstream.calculus.terms import Column
from millstream.calculus.types import BOOLEAN, INTEGER, TEXT, QueueType, Schema
from millstream.calculus.verify import verify


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (Filter(Column("is_large", BOOLEAN)), 'no column "is_large" here'),
        (Map((Assign("a", Column("x", TEXT)),)), '"x" is integer here, not text'),
    ],
)
def test_what_works_row_by_row_reads_columns_that_there_are(function: Function, said: str) -> None:
    given = Input("in", QueueType(Schema.of(x=INTEGER)))
    program = Program((given,), ("out",), (Operator(function, ("in",), ("out",)),))
    assert [said] == [fault.message for fault in verify(program)]
