"""The translation of the calculus paper: what its example becomes, and what broken words say."""

from __future__ import annotations

from pathlib import Path

import pytest

import millstream
from millstream.calculus.work import Work
from millstream.errors import RunError
from millstream.languages.streamit.build import _Builder
from millstream.languages.streamit.load import load
from millstream.languages.streamit.read import read
from millstream.languages.streamit.scope import Program
from millstream.optimiser.fold_constants import fold_constants
from millstream.source import Source
from tests.examples.folders import ROOT
from tests.languages.streamit.test_meaning import out

DECODER = ROOT / "streamit" / "mpeg_decoder" / "mpeg_decoder.str"


def test_the_decoder_of_the_paper_becomes_its_five_operators() -> None:
    program = millstream.compile(DECODER).program
    split, frequencies, vectors, join, motion = program.operators
    # The queues of 4.2.3: qin to (qf, qm), these to (qfd, qmd), joined to qd, then qout.
    assert program.input_names == split.inputs
    assert split.outputs == (*frequencies.inputs, *vectors.inputs)
    assert join.inputs == (*frequencies.outputs, *vectors.outputs)
    assert motion.inputs == join.outputs
    assert program.outputs == motion.outputs
    # A cursor; a buffer each; a cursor and two buffers; the picture `s` and a buffer.
    counts = [len(operator.variables) for operator in program.operators]
    assert [1, 1, 1, 3, 2] == counts


def test_explain_prints_the_names_of_the_paper() -> None:
    text = millstream.compile(DECODER).explain()
    for line in (
        "(q3, q5, $q3) <- wrapRRSplit-2[1, 1](items, $q3);",
        "(q4, $q4) <- wrapFilter-FrequencyDecode(q3, $q4);",
        "(q6, $q6) <- wrapFilter-MotionVecDecode(q5, $q6);",
        "(q2, $q2, $q22, $q23) <- wrapRRJoin-2[1, 1](q4, q6, $q2, $q22, $q23);",
        "(out, $s, $q) <- wrapFilter-MotionComp(q2, $s, $q);",
    ):
        assert line in text


@pytest.mark.parametrize("engine", ["reference", "local"])
def test_what_breaks_its_word_is_told_with_instance_firing_and_line(
    engine: str, tmp_path: Path
) -> None:
    path = tmp_path / "bad.str"
    path.write_text("""int->int filter Bad(int k) {
    work pop 1 push 1 { int[3] a; push(a[pop() + k]); }
}
int->int pipeline Main { add Bad(0); add Bad(2); }""")
    items = [{"_time": n, "value": v} for n, v in enumerate((0, 1, 0, 3))]
    with pytest.raises(RunError, match=r"bad.str:2:40: Main\[0\].Bad: index 3 .* at firing 4"):
        millstream.compile(path).run({"items": items}, engine=engine)


def test_a_broken_rate_is_told_with_the_place_of_the_filter() -> None:
    text = "int->int filter F { work push 2 pop 1 { push(pop()); } }"
    with pytest.raises(RunError, match=r"test.str:1:1: F: it pushes 1 items, but declares 2"):
        out(text, [5])


def test_streams_that_are_made_meanwhile_are_kept_for_as_long_as_their_numbers_count() -> None:
    """A stream that is gone gives its number to another, which was then taken for it."""
    file = ROOT / "streamit" / "fibonacci" / "fibonacci.str"
    source = Source(str(file), file.read_text())
    builder = _Builder(source, Program(read(source)), file.parent)
    builder.built()
    assert builder.made
    assert {number for number, *_ in builder.made} <= {id(kept) for kept in builder.alive}


def test_instances_share_their_code_when_constants_in_it_are_worked_out() -> None:
    text = """int->int filter Add { work pop 1 push 1 { push(pop() + 2 * 3); } }
    int->int pipeline Main { add Add; add Add; add Add; }"""
    program = fold_constants(load(Source("adds.str", text)).program)
    codes = {id(op.function.code) for op in program.operators if isinstance(op.function, Work)}
    assert (3, 1) == (len(program.operators), len(codes))
    assert "6" in str(program) and "2 * 3" not in str(program)
