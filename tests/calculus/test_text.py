from hypothesis import given, settings

from millstream.calculus.graph import Program
from millstream.calculus.text import load, render
from millstream.source import Source
from tests.generate import programs


@settings(max_examples=150, deadline=None)
@given(programs(from_python=False))
def test_what_is_printed_parses_back_to_an_equal_program(program: Program) -> None:
    assert program == load(Source("printed.brook", render(program)))
