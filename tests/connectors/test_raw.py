"""Raw files: 32 bits per number and nothing else."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import millstream
from millstream.calculus.types import Value
from millstream.errors import MillstreamError

PROGRAM = """output same; input items(value number, count integer);
(same) <- Filter[count > 0](items);"""


def test_numbers_and_integers_are_read_and_written_as_32_bits(tmp_path: Path) -> None:
    stored = np.dtype([("value", "<f4"), ("count", "<i4")])
    items = np.array([(0.1, 1), (2.5, -7), (-3.0, 2**31 - 1)], stored)
    (tmp_path / "items.in").write_bytes(items.tobytes())
    job = millstream.compile(text=PROGRAM)
    for engine in ("reference", "local"):
        out = tmp_path / f"{engine}.out"
        job.run({"items": f"raw:{tmp_path}/items.in"}, {"same": f"raw:{out}"}, engine=engine)
        assert items[[0, 2]].tobytes() == out.read_bytes()


def test_rows_have_their_number_as_time_and_can_be_limited(tmp_path: Path) -> None:
    (tmp_path / "items.in").write_bytes(np.arange(1, 9, dtype="<i4").tobytes())
    text = "output same; input items(n integer); (same) <- Filter[n > 0](items);"
    rows = millstream.compile(text=text).run({"items": f"raw:{tmp_path}/items.in?rows=3"})
    assert [{"_time": n, "n": n} for n in (1, 2, 3)] == rows.rows("same")


@pytest.mark.parametrize(
    ("size", "message"),
    [(7, "expected items of 8 bytes, but 7 bytes are left over of 7"), (None, "items.in")],
)
def test_what_is_no_raw_file_is_told(tmp_path: Path, size: int | None, message: str) -> None:
    if size is not None:
        (tmp_path / "items.in").write_bytes(b"\0" * size)
    with pytest.raises(MillstreamError, match=message):
        millstream.compile(text=PROGRAM).run({"items": f"raw:{tmp_path}/items.in"})


def test_text_is_written_as_it_is(tmp_path: Path) -> None:
    text = 'output said; input items(text text); (said) <- Filter[text != ""](items);'
    rows: list[dict[str, Value]] = [{"_time": 1, "text": "a, "}, {"_time": 2, "text": 'b"\n'}]
    millstream.compile(text=text).run({"items": rows}, {"said": f"raw:{tmp_path}/said.txt"})
    assert 'a, b"\n' == (tmp_path / "said.txt").read_text()
