"""Whole programs: what they print, reject and leave in their tables, on reference and local."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import millstream
from millstream.api import Finished
from millstream.errors import AllRejected, MillstreamError, UsageError
from tests.languages.sawzall.programs import Kept, printed, run_text

HERE = Path(__file__).parent
both = pytest.mark.parametrize("engine", ["reference", "local"])


@both
@pytest.mark.parametrize("name", ["closures", "values"])
def test_what_programs_assert_holds(tmp_path: Path, name: str, engine: str) -> None:
    finished = run_text(tmp_path, (HERE / f"{name}.szl").read_text(), engine=engine)
    assert printed(finished).startswith(("ok\n", "x\nall\n"))
    assert finished.report.inputs["input"].rejected == 0


@both
def test_record_without_a_value_is_rejected_whole(tmp_path: Path, engine: str) -> None:
    text = """
        n: table sum of int;
        emit n <- 1;
        emit n <- int(string(input));
    """
    finished = run_text(tmp_path, text, ["1", "x", "3"], engine=engine)
    counts = finished.report.inputs["input"]
    assert (3, 2, 1) == (counts.read, counts.processed, counts.rejected)
    assert counts.is_conserved
    assert "n[] = 6\n" == printed(finished)
    (reason,) = finished.report.first_rejections
    assert "program.szl:4:9: " in reason


@both
def test_ignored_statements_leave_the_record(tmp_path: Path, engine: str) -> None:
    text = 'n: table sum of int; emit n <- 1; emit n <- int(string(input)); emit stdout <- "on";'
    names = {"ignore-undefs": "true"}
    finished = run_text(tmp_path, text, ["1", "x"], engine=engine, names=names)
    assert "on\non\n" == printed(finished).split("_undef")[0]
    assert "_undef_cnt[] = 1\n" in printed(finished)
    assert "n[] = 3\n" in printed(finished)


@both
def test_emits_are_printed_as_source(tmp_path: Path, engine: str) -> None:
    text = """
        t: table top(3)[k: string][n: int] of v: float weight w: int;
        emit t["a\\"b"][7] <- 2.0 weight 3;
        emit stdout <- "x";
    """
    finished = run_text(tmp_path, text, engine=engine, names={"emits": "true"})
    assert 'emit t["a\\"b"][7] <- 2.0 weight 3;\nemit stdout <- "x\\n";\n' == printed(finished)


@both
def test_endless_loops_and_calls_are_bounded(
    tmp_path: Path, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("meaning.scripts", "kernels.scripts.runtime"):
        monkeypatch.setattr(f"millstream.{module}.MOST_ROUNDS", 1000)
    text = """
        s: string = input;
        if (s == "loop") while (true) ;
        f := function(n: int): int { return f(n + 1); };
        if (s == "call") f(0);
        emit stdout <- s;
    """
    finished = run_text(tmp_path, text, ["loop", "call", "fine"], engine=engine)
    assert "fine\n" == printed(finished)
    assert 2 == finished.report.inputs["input"].rejected
    assert any("does not come to an end" in r for r in finished.report.first_rejections)
    assert any("do not come to an end" in r for r in finished.report.first_rejections)


@both
def test_what_is_printed_keeps_the_order_of_emits(tmp_path: Path, engine: str) -> None:
    text = """
        to: table collection[k: string] of n: int file("/dev/stdout") format("%d\\n", n);
        emit stdout <- "a"; emit output <- B"b\\n"; emit to["x"] <- 3; emit stdout <- "d";
    """
    assert "a\nb\n3\nd\n" * 2 == printed(run_text(tmp_path, text, ["", ""], engine=engine))


@both
def test_terrible_pattern_does_not_stop_a_run(tmp_path: Path, engine: str) -> None:
    text = 's: string = input; emit stdout <- string(match("^(a+)+$", s));'
    finished = run_text(tmp_path, text, ["a" * 50 + "b", "aaa"], engine=engine)
    assert "false\ntrue\n" == printed(finished)


@both
def test_bytes_that_are_no_text(tmp_path: Path, engine: str) -> None:
    program = "emit stdout <- string(len(input)) + string(input, `latin-1`);"
    finished = run_text(tmp_path, program, ["", "aü"], engine=engine)
    assert "0\n3aÃ¼\n" == printed(finished)


def test_static_is_worked_out_once(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("a\nb\n")
    text = """
        static words: array of string = sawzall(string(load("words.txt")), `\\w+`);
        static f := function(n: int): int { return n + len(words); };
        emit stdout <- string(f(int(string(input))));
    """
    assert "3\n4\n" == printed(run_text(tmp_path, text, ["1", "2"]))


def test_files_outside_of_the_folder_are_refused(tmp_path: Path) -> None:
    text = 'emit stdout <- string(load("/etc" + "/passwd"));'
    with pytest.raises(AllRejected, match="outside of the project's folder"):
        run_text(tmp_path, text, ["x"])
    for name in ("/etc/passwd", "../x", "a/../../b"):
        with pytest.raises(MillstreamError, match=r"1:28: this file lies outside of the project"):
            run_text(tmp_path, f'emit stdout <- string(load("{name}"));')
    with pytest.raises(MillstreamError, match="outside of the project's folder"):
        run_text(tmp_path, 'include "../x.szl"\nemit stdout <- "a";')


def test_lines_of_any_text_are_records(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text('a,1\n"b,c",2\n')
    (tmp_path / "rows.jsonl").write_text('{"a": 1}\n')
    (tmp_path / "rows").write_text("x\n")
    program = tmp_path / "p.szl"
    program.write_text("emit stdout <- string(splitcsvline(input)[0]);")
    for name, expected in (("rows.csv", "a\nb,c\n"), ("rows", "x\n")):
        compiled = millstream.compile(program)
        kept = Kept()
        compiled.run({"input": str(tmp_path / name)}, {"printed": kept}, engine="local")
        assert expected == printed(Finished(None, {"printed": kept}))  # type: ignore[arg-type]


def test_unknown_zone_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="time zone"):
        run_text(tmp_path, 'emit stdout <- "a";', names={"timezone": "Mars/Olympus"})


def test_zone_is_that_of_the_run(tmp_path: Path) -> None:
    text = "emit stdout <- string(time(0)) + string(hourof(time(0)));"
    shown = printed(run_text(tmp_path, text, names={"timezone": "America/Los_Angeles"}))
    assert "Wed Dec 31 16:00:00 PST 196916\n" == shown


def test_rows_of_tables_can_be_had_by_name(tmp_path: Path) -> None:
    text = "t: table sum[k: string] of {n: int, f: float}; emit t[string(input)] <- {1, 0.5};"
    rows = run_text(tmp_path, text, ["a", "b", "a"]).rows("t")
    assert [("a", "{ 2, 1 }"), ("b", "{ 1, 0.5 }")] == sorted((r["k"], r["value"]) for r in rows)


@both
def test_weights_that_cannot_be_are_those_of_a_rejected_record(tmp_path: Path, engine: str) -> None:
    text = """
        heavy: table top(2) of s: string weight w: float;
        drawn: table weightedsample(9) of s: string weight w: float;
        s: string = input;
        w: float = s;
        emit drawn <- s weight w;
        if (w < inf || s == "x") emit heavy <- s weight w - 1.0;
    """
    finished = run_text(tmp_path, text, ["2.5", "-1", "nan", "inf", "0.5", "1"], engine=engine)
    assert "heavy[] = 2.5, 1.5, 0\nheavy[] = 1, 0, 0\ndrawn[] = 1, 1\ndrawn[] = 2.5, 2.5\n" in (
        printed(finished)
    )
    assert "drawn[] = inf, inf\n" in printed(finished)
    assert 3 == finished.report.inputs["input"].rejected
    assert any("a weight must not be -0.5" in r for r in finished.report.first_rejections)


@both
def test_program_that_emits_nothing_still_asserts(tmp_path: Path, engine: str) -> None:
    finished = run_text(tmp_path, "assert(len(input) < 3);", ["a", "long"], engine=engine)
    assert "" == printed(finished)
    assert 1 == finished.report.inputs["input"].rejected


@pytest.mark.parametrize("engine", ["reference", "local"])
def test_emits_can_name_the_files_they_go_to(tmp_path: Path, engine: str) -> None:
    (tmp_path / "program.szl").write_text(
        """
        t: table collection[k: string] of s: string file("of_%s.txt", k) format("%s %s\\n", k, s);
        w := sawzall(string(input), `\\S+`);
        for (i := 1; i < len(w); i++) emit t[w[0]] <- w[i];
        """
    )
    (tmp_path / "lines.txt").write_text("a 1 2\nb 3\n../x 9\na 4\nno/folder 5\n")
    compiled = millstream.compile(tmp_path / "program.szl")
    report = compiled.run({"input": str(tmp_path / "lines.txt")}, engine=engine)
    assert (tmp_path / "of_a.txt").read_text() == "a 1\na 2\na 4\n"
    assert (tmp_path / "of_b.txt").read_text() == "b 3\n"
    assert sorted(p.name for p in tmp_path.glob("of_*")) == ["of_a.txt", "of_b.txt"]
    assert report.report.inputs["input"].rejected == 2


@pytest.mark.parametrize("engine", ["reference", "local"])
def test_formats_see_indexes_and_weights_and_call_functions_once(
    tmp_path: Path, engine: str
) -> None:
    text = """
    calls: table sum of int;
    shown: table collection[i: int] of s: string file("/dev/stdout") format("%d:%s;", i, s);
    heavy: table maximum(1) of s: string weight w: int format("%s of %d", s, w);
    f := function(x: int): int { emit calls <- 1; return x + 1; };
    emit shown[f(1)] <- string(f(2));
    emit heavy <- "x" weight f(6);
    """
    assert printed(run_text(tmp_path, text, engine=engine)) == (
        "2:3;calls[] = 3\nheavy[] = x of 7, 7\n"
    )


def test_switch_runs_on_columns(tmp_path: Path) -> None:
    text = """
    out: table sum[k: string] of int;
    last: table sum[c: int] of int;
    s := string(input);
    n: int = s;
    switch (len(s)) {
      case 0: emit out["empty"] <- 1; return;
      case 1, 2:
        if (s == "x") break;
        emit out["short"] <- 1;
        if (!def(n)) break;
        emit out["both"] <- n;
      case n: emit out["itself"] <- 1;
      default:
        for (i := 0; i < len(s); i++) {
          switch (s[i]) {
            case 'a', 'b': continue;
            case 'x': if (i > 2) break; emit out["x"] <- i;
            default: emit out["other"] <- 1;
          }
          emit out["round"] <- 1;
          if (i == 5) break;
        }
    }
    emit last[s[$ - 1]] <- 1;
    switch (s[0:1]) {
      case "a", "b": emit out[s[0:1]] <- 1;
      case s[$ - 1:$]: emit out["same"] <- 1;
      default: ;
    }
    """
    chance = random.Random(3)
    lines = ["".join(chance.choices("abxyz0189 ,", k=n % 9)) for n in range(300)] + ["003", "3"]
    meant = printed(run_text(tmp_path, text, lines, engine="reference"))
    assert meant == printed(run_text(tmp_path, text, lines, engine="local"))
    assert "round" in meant
    compiled = millstream.compile(tmp_path / "program.szl")
    assert "on whole columns" in compiled.explain("kernels")


@pytest.mark.parametrize("engine", ["reference", "local"])
def test_sizes_of_numbers_in_formats_say_nothing(tmp_path: Path, engine: str) -> None:
    text = """
    n := len(string(input)) * 4000000000;
    emit stdout <- format("%ld %5lld|%hx %Lf %zu %t", n, n, n, 2.5, uint(n), 0t);
    """
    shown = printed(run_text(tmp_path, text, ["", "a"], engine=engine))
    when = "Thu Jan  1 00:00:00 UTC 1970"
    assert (
        shown == f"0     0|0 2.500000 0 {when}\n{(n := 4 * 10**9)} {n}|{n:x} 2.500000 {n} {when}\n"
    )
