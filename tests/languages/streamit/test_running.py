"""Programs as people run them: from the command line, with files, in projects."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from millstream.cli.main import main

COUNT = """void->void pipeline Main {
    add void->int filter { work push 1 { push(iter() * 10); } };
    add int->void filter { work pop 1 { println(pop()); } };
}"""
SUMS = """void->void pipeline Main {
    add FileReader<float>("samples.in");
    add float->float filter { work peek 3 pop 2 push 1 { push(peek(0) + peek(2)); pop(); pop(); } };
    add FileWriter<float>("sums.out");
}"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_so_many_steady_states_are_printed_as_they_are(
    folder: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    (folder / "count.str").write_text(COUNT)
    for engine in ("reference", "local"):
        assert 0 == main(["run", "count.str", "--engine", engine, "--iterations", "3"])
        assert b"0\n10\n20\n" == capfdbinary.readouterr().out


def test_files_are_read_from_the_folder_of_the_program_and_written_there(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    inner = folder / "inner"
    inner.mkdir()
    (inner / "sums.str").write_text(SUMS)
    np.arange(12, dtype="<f4").tofile(inner / "samples.in")
    for engine in ("reference", "local"):
        assert 0 == main(["run", "inner/sums.str", "--engine", engine])
        sums = np.fromfile(inner / "sums.out", "<f4")
        assert [2.0, 6.0, 10.0, 14.0, 18.0] == sums.tolist()
    assert (
        "1 of the 12 items of samples.in are left over: 5 steady states" in capfd.readouterr().err
    )
    assert 0 == main(["run", "inner/sums.str", "--engine", "local", "--iterations", "2"])
    assert [2.0, 6.0] == np.fromfile(inner / "sums.out", "<f4").tolist()


def test_structs_and_bits_are_read_from_files_field_by_field(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (folder / "points.str").write_text("""struct P { int n; float x; }
    void->void pipeline Main {
        add FileReader<P>("points.in");
        add P->void filter { work pop 1 { P p = pop(); println(p.n + ": " + p.x); } };
    }""")
    points = np.array([(1, 0.5), (-2, 0.1)], [("n", "<i4"), ("x", "<f4")])
    points.tofile(folder / "points.in")
    assert 0 == main(["run", "points.str", "--engine", "reference"])
    assert "1: 0.5\n-2: 0.1\n" == capfd.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--iterations", "some"], 'expected --iterations and a number, got "some"'),
        (["--iterations", "-1"], 'expected --iterations and a number, got "-1"'),
    ],
)
def test_what_is_no_number_of_steady_states_is_told(
    folder: Path, capfd: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    (folder / "count.str").write_text(COUNT)
    assert 2 == main(["run", "count.str", "--engine", "local", *arguments])
    assert message in capfd.readouterr().err


def test_a_program_with_an_input_goes_on_for_as_long_as_it_does(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (folder / "twice.str").write_text(
        "int->int filter Twice { work pop 1 push 1 { push(pop() * 2); } }"
    )
    (folder / "items.csv").write_text("_time,value\n1,5\n2,7\n")
    assert 0 == main(["run", "twice.str", "--engine", "local"])
    assert "_time,value\n1,10\n2,14\n" == capfd.readouterr().out
    assert 2 == main(["run", "twice.str", "--engine", "local", "--iterations", "3"])
    assert "goes on for as long as its input does" in capfd.readouterr().err


def test_nodes_of_a_project_take_and_give_what_other_languages_give_and_take(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (folder / "twice.str").write_text(
        "float->float filter Twice { work pop 1 push 1 { push(pop() * 2); } }"
    )
    (folder / "count.str").write_text(COUNT)
    (folder / "prices.brook").write_text(
        "output Prices; input Trades(sym text, price number);\n"
        "(Prices) <- Map[value = price](Trades);"
    )
    (folder / "trades.csv").write_text("_time,sym,price\n1,A,1.5\n2,B,2.5\n")
    (folder / "millstream.toml").write_text("""[stream.Trades]
source = "trades.csv"
columns = { sym = "text", price = "number" }
[node.prices]
brook = "prices.brook"
[node.twice]
streamit = "twice.str"
inputs.items = "Prices"
outputs.Doubled = "out"
[node.count]
streamit = "count.str"
[sink.Doubled]
to = "doubled.csv"
""")
    assert 0 == main(["run", ".", "--engine", "local", "--iterations", "2"])
    assert "0\n10\n" == capfd.readouterr().out
    assert "_time,value\n1,3\n2,5\n" == (folder / "doubled.csv").read_text()


def test_what_is_left_of_an_input_is_told_at_the_end(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (folder / "sums.str").write_text(
        "int->int filter Sums { work pop 3 peek 4 push 1 { push(pop() + pop() + pop()); } }"
    )
    (folder / "items.csv").write_text("_time,value\n" + "".join(f"{n},{n}\n" for n in range(9)))
    for engine in ("reference", "local"):
        assert 0 == main(["run", "sums.str", "--engine", engine])
        told = capfd.readouterr()
        assert "_time,value\n3,3\n6,12\n" == told.out
        assert (
            "2 of the 9 items of items are left over: a steady state takes 3, after 1" in told.err
        )
    (folder / "items.csv").write_text("_time,value\n" + "".join(f"{n},{n}\n" for n in range(7)))
    assert 0 == main(["run", "sums.str", "--engine", "local"])
    assert "left over" not in capfd.readouterr().err


def test_files_of_a_node_lie_beside_its_program(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    inner = folder / "inner"
    inner.mkdir()
    (inner / "sums.str").write_text(SUMS)
    np.arange(11, dtype="<f4").tofile(inner / "samples.in")
    (folder / "millstream.toml").write_text('[node.sums]\nstreamit = "inner/sums.str"\n')
    assert 0 == main(["run", ".", "--engine", "local"])
    assert [2.0, 6.0, 10.0, 14.0, 18.0] == np.fromfile(inner / "sums.out", "<f4").tolist()
    assert 0 == main(["run", ".", "--engine", "local", "--iterations", "1"])
    assert [2.0] == np.fromfile(inner / "sums.out", "<f4").tolist()


def test_time_has_passed_for_what_a_source_gives(folder: Path) -> None:
    """The n-th firing is at time n, however many there are in a steady state."""
    (folder / "thirds.str").write_text("""void->int pipeline Thirds {
        add void->int filter { int i; work push 1 { push(i++); } };
        add int->int filter { work pop 3 peek 5 push 1 { push(peek(4)); pop(); pop(); pop(); } };
    }""")
    (folder / "window.brook").write_text("""output W; input Given(value integer);
        (r, $a) <- Range[6 us](Given, $a);
        (W, $b) <- Aggregate[n = count(), s = sum(value)](r, $b);""")
    (folder / "millstream.toml").write_text("""[node.thirds]
streamit = "thirds.str"
outputs.Given = "out"
[node.window]
brook = "window.brook"
[sink.W]
to = "w.csv"
[sink.Given]
to = "given.csv"
""")
    sums = ["5,1,1,4", "8,-1,1,4", "8,1,2,11", "11,-1,2,11", "11,1,3,21"]
    later = ["12,-1,3,21", "12,1,2,17"]
    for engine in ("reference", "local"):
        assert 0 == main(["run", ".", "--engine", engine, "--iterations", "3"])
        assert sums == (folder / "w.csv").read_text().split()[1:]
        assert 0 == main(["run", ".", "--engine", engine, "--iterations", "4"])
        assert sums + later == (folder / "w.csv").read_text().split()[1:8]


def test_oddities_are_told_and_the_program_runs(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (folder / "odd.str").write_text("""void->void pipeline Main {
        println("building");
        add Halves();
        add float->void filter { init { print("begins"); } work pop 1 { println(pop()); } };
    }
    int->int pipeline Halves {
        add void->int filter { int i; work push 1 { push(i++); } };
        add int->float filter { work pop 1 push 1 { push(pop() * 0.5); } };
    }""")
    assert 0 == main(["run", "odd.str", "--engine", "reference", "--iterations", "2"])
    told = capfd.readouterr()
    assert "building\nbegins0.0\n0.5\n" == told.out
    assert "odd.str:6:5: Halves is said to take int, but takes void" in told.err


SAYS = """static { int N = 2; init { println("constants: " + N); } }
helper numbers { int twice(int x) { println("twice " + x); return 2 * x; } }
int->int filter Add(int k) {
    int w;
    init { println("Add " + k); w = doubled(k); }
    int doubled(int x) { println("doubled " + x); return 2 * x; }
    work pop 1 push 1 { push(pop() + w); }
}
void->void pipeline Main {
    println("begin");
    int z = numbers.twice(N);
    add void->int filter { int n; work push 1 { push(n++); } };
    for (int i = 0; i < N; i++) { print(i + " "); add Add(i); }
    println("z " + z);
    add int->void filter { work pop 1 { println(pop()); } };
}"""


@pytest.mark.parametrize("rate", ["pop 1", "pop [1, 1]"])
def test_what_is_printed_while_a_program_is_built_comes_first(
    folder: Path, capfd: pytest.CaptureFixture[str], rate: str
) -> None:
    (folder / "says.str").write_text(SAYS.replace("work pop 1 {", f"work {rate} {{"))
    first = ["constants: 2", "begin", "twice 2", "0 1 z 4", "Add 0", "doubled 0", "Add 1"]
    for engine in ("reference", "local"):
        assert 0 == main(["run", "says.str", "--engine", engine, "--iterations", "3"])
        assert [*first, "doubled 1", "2", "3", "4"] == capfd.readouterr().out.splitlines()


def test_a_node_warns_of_what_it_prints_while_it_is_built(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (folder / "node.str").write_text("""int->int filter Node {
        init { println("begins"); }
        work pop 1 push 1 { push(pop()); }
    }""")
    assert 0 == main(["check", "node.str"])
    assert "what is printed while this is built is not shown" in capfd.readouterr().err


HEARD = """void->void pipeline Main {
    portal<Out> p;
    add void->int filter { int n; work push 1 { n++; if (n == 2) p.shift(10); push(n); } };
    add Out to p;
}
int->void filter Out { int by; handler shift(int b) { by += b; } work pop 1 { print(pop() + by); } }
"""
CHANGING = """void->void pipeline Main {
    add void->int filter { int n; work push 1 { n++; push(n % 3); } };
    add int->int filter { work pop [1, 3] push 1 {
        int k = pop(); int s = k; for (int i = 0; i < k; i++) s += pop(); push(s); } };
    add int->void filter { work pop 1 { println(pop()); } };
}"""


@pytest.mark.parametrize("text", [COUNT, HEARD, CHANGING])
def test_every_interleaving_of_a_few_steady_states_gives_the_same(
    folder: Path, capfd: pytest.CaptureFixture[str], text: str
) -> None:
    (folder / "few.str").write_text(text)
    assert 0 == main(["explore", "few.str", "--iterations", "3"])
    assert "the result is unique" in capfd.readouterr().out
    assert 2 == main(["explore", "few.str"])
    assert "say how often\n    a small number, such as --iterations 2" in capfd.readouterr().err


def test_messages_to_a_filter_before_their_sender_come_when_they_should(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """They go round a cycle of queues, which no pass of the optimiser may trip over."""
    (folder / "up.str").write_text("""void->void pipeline Main {
        portal<Adder> p;
        add void->int filter { int i; work push 1 { push(i++); if (i == 10) i = 0; } }
        add Adder to p;
        add int->int filter {
            int i = 1, k = 0;
            work pop 1 push 1 { if (i++ % 10 == 0) p.reset(k++) [1:1]; push(pop()); }
        }
        add int->void filter { work pop 1 { print(pop() + " "); } }
    }
    int->int filter Adder {
        int s = 1;
        work pop 1 push 1 { push(s + pop()); s++; }
        handler reset(int i) { s = i & 0x1; }
    }""")
    expected = [2 * n + s for s in (1, 0, 1) for n in range(10)]
    for engine in ("reference", "local"):
        assert 0 == main(["run", "up.str", "--engine", engine, "--iterations", "30"])
        assert expected == [int(number) for number in capfd.readouterr().out.split()]


def test_faults_of_streams_without_names_are_told_with_those_around_them(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (folder / "bad.str").write_text("""float->float filter Low(int n) {
        work pop 1 push 1 { push(pop() + x); } }
    void->void pipeline Main {
        add void->float filter { float3 v; work push 1 { push(1); } };
        add float->float filter { work pop 1 push 1 { push(sqroot(pop())); } };
        add Missing(3);
        add Low();
        add Low(1, 2);
    }""")
    assert 2 == main(["check", "bad.str"])
    errors = [line for line in capfd.readouterr().err.splitlines() if line.startswith("error:")]
    assert [
        'bad.str:2:42: unknown name "x"', 'bad.str:4:34: unknown type "float3"',
        'bad.str:5:60: unknown function "sqroot"', 'bad.str:6:13: unknown stream "Missing"',
        "bad.str:7:13: Low takes 1 argument, got 0", "bad.str:8:13: Low takes 1 argument, got 2",
    ] == [error.removeprefix("error: ") for error in errors]  # fmt: skip
