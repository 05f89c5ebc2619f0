"""Programs that take items and have sources of their own, against plain Python."""

from __future__ import annotations

from itertools import accumulate, islice
from pathlib import Path

import numpy as np
import pytest

import millstream
from millstream.cli.main import main
from millstream.errors import CheckError

ENGINES = ("reference", "local")

COUNTED = """int->int splitjoin Main {
    split roundrobin(2, 0);
    add int->int filter { work pop 2 push 1 { push(pop() * 100 + pop()); } };
    add void->int filter { int i; work push 1 { push(i++); } };
    join roundrobin(1, 3);
}"""
LOOKING_AHEAD = """int->int splitjoin Main {
    split roundrobin(1, 0);
    add int->int filter { work pop 1 peek 3 push 1 { push(peek(0) + peek(2)); pop(); } };
    add pipeline {
        add void->int filter { int i;
            prework push 2 { push(-1); push(-2); }
            work push 1 { push(i++); }
        };
        add int->int filter { work pop 1 peek 4 push 1 { push(peek(0) * 10 + peek(3)); pop(); } };
    };
    join roundrobin;
}"""
A_LOOP = """
void->int feedbackloop Fib {
    join roundrobin(0, 1);
    body int->int filter { work push 1 pop 1 peek 2 { push(peek(0) + peek(1)); pop(); } };
    loop Identity<int>;
    split duplicate;
    enqueue 0; enqueue 1;
}
int->int splitjoin Main { split roundrobin(1, 0); add Identity<int>; add Fib; join roundrobin; }
"""


def out_of(text: str, items: list[int], engine: str) -> list[tuple[int, int]]:
    rows = [{"_time": 10 * n, "value": value} for n, value in enumerate(items, 1)]
    result = millstream.compile(text=text, language="streamit").run({"items": rows}, engine=engine)
    return [(int(str(row["_time"])) // 10, int(str(row["value"]))) for row in result.rows("out")]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_source_fires_as_often_as_the_items_allow(engine: str) -> None:
    items = [5, 7, 1, 2, 9, 9, 4]
    pairs = list(zip(items[::2], items[1::2], strict=False))
    expected = [
        (2 * n + 2, value)
        for n, (a, b) in enumerate(pairs)
        for value in (a * 100 + b, 3 * n, 3 * n + 1, 3 * n + 2)
    ]
    assert expected == out_of(COUNTED, items, engine)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_source_with_a_prework_gives_what_others_look_ahead_at(engine: str) -> None:
    items = [3, 1, 4, 1, 5, 9, 2, 6]
    made = [-1, -2, *range(20)]
    expected = [
        value
        for n in range(len(items) - 2)
        for value in (items[n] + items[n + 2], made[n] * 10 + made[n + 3])
    ]
    got = out_of(LOOKING_AHEAD, items, engine)
    assert expected == [value for _, value in got]
    assert [n for n in range(3, len(items) + 1) for _ in range(2)] == [time for time, _ in got]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_loop_that_feeds_itself_is_such_a_source(engine: str) -> None:
    items = list(range(30, 42))
    sums = accumulate(range(len(items)), lambda pair, _: (pair[1], sum(pair)), initial=(0, 1))
    expected = [
        v for item, (a, b) in zip(items, islice(sums, 12), strict=True) for v in (item, a + b)
    ]
    assert expected == [value for _, value in out_of(A_LOOP, items, engine)]


def test_how_often_a_source_fires_must_be_known() -> None:
    text = COUNTED.replace("work push 1 {", "work push [1, 2] {")
    with pytest.raises(CheckError, match="is a source in a program that takes items"):
        millstream.compile(text=text, language="streamit")


def test_a_file_beside_items_is_read_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    np.array([7, 8, 9], "<i4").tofile(tmp_path / "own.in")
    (tmp_path / "mix.str").write_text("""int->int splitjoin Main {
        split roundrobin(1, 0); add Identity<int>; add FileReader<int>("own.in"); join roundrobin;
    }""")
    (tmp_path / "items.csv").write_text("_time,value\n10,1\n20,2\n")
    for engine in ENGINES:
        assert 0 == main(["run", "mix.str", "--engine", engine])
        assert "_time,value\n10,1\n10,7\n20,2\n20,8\n" == capfd.readouterr().out


@pytest.mark.parametrize("engine", ENGINES)
def test_every_key_may_have_a_source_of_its_own(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "count.str").write_text(COUNTED.replace("2, 0", "1, 0").replace(
        "work pop 2 push 1 { push(pop() * 100 + pop()); }", "work pop 1 push 1 { push(pop()); }"
    ).replace("1, 3", "1, 1"))  # fmt: skip
    (tmp_path / "items.csv").write_text("_time,k,value\n1,a,5\n2,b,6\n3,a,7\n")
    (tmp_path / "millstream.toml").write_text("""
        [stream.items]
        source = "items.csv"
        columns = { k = "text", value = "integer" }
        [node.count]
        streamit = "count.str"
        partition = "k"
    """)
    assert 0 == main(["run", ".", "--engine", engine])
    lines = ["_time,k,value", "1,a,5", "1,a,0", "2,b,6", "2,b,0", "3,a,7", "3,a,1"]
    assert lines == capfd.readouterr().out.splitlines()
