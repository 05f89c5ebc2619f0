"""Arrays of Arrow that are made without pandas are those that Arrow makes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from millstream.plan.batch import booleans_of, integer_array, text_array


@pytest.mark.parametrize(
    "texts", [[], [""], ["a", "", "日本"], [None], ["x", None, "yy", None] * 5, ["z"] * 10_001]
)
def test_texts(texts: list[str | None]) -> None:
    made = text_array(texts)
    made.validate(full=True)
    assert pa.array(texts, pa.string()) == made
    assert texts.count(None) == made.null_count


def test_integers_and_booleans() -> None:
    assert pa.array([3, -1, 2**62], pa.int64()) == integer_array(np.array([3, -1, 2**62]))
    assert pa.array([1, 0], pa.int64()) == integer_array(np.array([True, False]))
    flags = [n % 3 == 0 for n in range(20)]
    assert flags[3:] == booleans_of(pa.array(flags).slice(3)).tolist()
    assert [] == booleans_of(pa.array([], pa.bool_())).tolist()


def test_a_program_that_prints_does_not_load_pandas(tmp_path: Path) -> None:
    """It is a third of a second of every start, and nothing of it is used."""
    program = tmp_path / "said.str"
    program.write_text(
        """void->void pipeline Main {
            add void->float filter { work push 1 { push(iter() / 2.0); } };
            add float->void filter { work pop 1 { println("x: " + pop()); } };
        }"""
    )
    code = (
        "import sys; from millstream.cli.main import main\n"
        f"main(['run', {str(program)!r}, '--engine', 'local', '--iterations', '3'])\n"
        "assert 'pandas' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "x: 0.0\nx: 0.5\nx: 1.0\n"
