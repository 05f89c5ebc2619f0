from hypothesis import given, settings

import millstream
from millstream.calculus.graph import Program
from millstream.calculus.text import render
from millstream.languages.brook.load import load
from millstream.source import Source
from tests.generate import programs


@settings(max_examples=150, deadline=None)
@given(programs(from_python=False))
def test_what_is_printed_parses_back_to_an_equal_program(program: Program) -> None:
    assert program == load(Source("printed.brook", render(program)))


def test_the_unit_of_times_is_told_so_that_a_checkpoint_sees_it() -> None:
    job = millstream.compile(
        text="output big; input xs(x integer) time at;\n(big) <- Filter[x > 1](xs);\n"
    )
    seconds = job.with_units("xs=s").program
    assert "/* its times count s */" in render(seconds)
    assert len({render(p) for p in (job.program, seconds, job.with_units("ms").program)}) == 3
    assert job.program == load(Source("text", render(seconds)))
