"""Streams in Python: the program of the paper, with functions instead of their names."""

from __future__ import annotations

from typing import Any

import pytest

from millstream import streamit
from millstream.api import Compiled
from millstream.errors import UsageError
from millstream.languages.streamit.load import load
from millstream.source import Source
from millstream.streamit import Value, call, where


def frequency_decode(code: Any) -> Any:
    return (code - 128) * 3 / 2


def motion_vec_decode(code: Any) -> Any:
    return (code >> 4) - (code & 15)


def motion_comp(s: Any, difference: Any, vector: Any) -> Any:
    new = call("max", 0, call("min", 255, s + vector + difference))
    return new, new


def decoder() -> Compiled:
    both = streamit.splitjoin(
        "roundrobin",
        streamit.filter(frequency_decode, name="FrequencyDecode"),
        streamit.filter(motion_vec_decode, name="MotionVecDecode"),
    )
    return streamit.pipeline(
        both, streamit.filter(motion_comp, name="MotionComp", pop=2, state={"s": 0})
    ).compile()


def values(compiled: Compiled, items: list[Any], engine: str) -> list[Any]:
    rows = [{"_time": n, "value": value} for n, value in enumerate(items)]
    return [row["value"] for row in compiled.run({"items": rows}, engine=engine).rows("out")]


def test_the_program_of_the_paper_is_five_operators() -> None:
    """Section 4.2.3: $sc, $f, $m, ($fd, $md, $jc) and ($s, $mc), and the queues between them."""
    program = decoder().program
    split, frequencies, vectors, join, motion = program.operators
    titles = [op.function.title for op in (frequencies, vectors, motion)]
    assert titles == ["wrapFilter-FrequencyDecode", "wrapFilter-MotionVecDecode",
                      "wrapFilter-MotionComp"]  # fmt: skip
    assert program.input_names == split.inputs
    assert split.outputs == (*frequencies.inputs, *vectors.inputs)
    assert join.inputs == (*frequencies.outputs, *vectors.outputs)
    assert (motion.inputs, motion.outputs) == (join.outputs, program.outputs)
    assert [1, 1, 1, 3, 2] == [len(op.variables) for op in program.operators]
    assert "s" == motion.variables[0]


@pytest.mark.parametrize("engine", ["reference", "local"])
def test_it_decodes_as_its_functions_do_in_python(engine: str) -> None:
    codes = [(37 * n + 11) % 256 for n in range(40)]
    picture, pictures = 0, []
    for code, vector in zip(codes[::2], codes[1::2], strict=True):
        difference = int((code - 128) * 3 / 2)
        picture = max(0, min(255, picture + (vector >> 4) - (vector & 15) + difference))
        pictures.append(picture)
    assert pictures == values(decoder(), codes, engine)


def test_loops_windows_and_choices() -> None:
    def echoed(new: Value, old: Value) -> Any:
        both = new + old * 0.5
        return both, both

    echo = streamit.feedbackloop(
        body=streamit.filter(echoed, takes="float", pop=2), enqueue=[0.0, 0.0]
    ).compile()
    assert [1.0, 0.0, 0.5, 0.0, 0.25] == values(echo, [1.0, 0.0, 0.0, 0.0, 0.0], "reference")
    peak = streamit.filter(
        lambda a, b, c: where((b > a) & (b > c), b, 0), takes="int", peek=3, pop=1
    ).compile()
    assert [0, 5, 0, 7] == values(peak, [1, 2, 5, 3, 7, 4], "reference")


def test_it_is_what_the_same_text_is() -> None:
    text = "int->int filter Twice { work pop 1 push 1 { push(pop() * 2); } }"
    written = load(Source("twice.str", text)).program
    made = streamit.filter(lambda x: x * 2).compile().program
    assert written.queue_types() == made.queue_types()


def test_what_cannot_be_known_yet_is_told() -> None:
    with pytest.raises(UsageError, match="not known yet"):
        streamit.filter(lambda x: x if x > 0 else -x)
    with pytest.raises(UsageError, match="must give 1 values for its state"):
        streamit.filter(lambda _, x: (x,)[1:], state={"s": 0})
