"""Corners of the language that programs of others come to, each with what it must print."""

from __future__ import annotations

from pathlib import Path

import pytest

from millstream.errors import MillstreamError
from tests.languages.sawzall.programs import printed, run_text

#: A program, and the lines it prints.
PROGRAMS: dict[str, tuple[str, list[str]]] = {
    "assignments that work with what is there": (
        """
        x := 5; x += 3; x *= 2; x -= 1; x /= 2; x %= 4; x <<= 3; x |= 1; x ^= 3; x &= 254; x >>= 1;
        words: array of string = {"a"}; words += {"b"}; words[0] += "c";
        emit stdout <- string(x) + string(words);
        """,
        ['13{ "ac", "b" }'],
    ),
    "calls that are nested deeply": (
        """
        sum: function(n: int): int { if (n == 0) return 0; return n + sum(n - 1); };
        emit stdout <- string(sum(1500));
        """,
        ["1125750"],
    ),
    "a rest in the middle and at the end": (
        """
        middle: string; last: string;
        words := saw("one two three", `\\w+`, rest middle, `\\w+`, rest last);
        emit stdout <- string(words) + middle + "|" + last;
        """,
        ['{ "one", "two" } two three| three'],
    ),
    "quantifiers after all": (
        """
        ones: array of int = {1, 1}; more: array of int = {1, 1, 1};
        mixed: array of int = {3, 1, 4, 1};
        when (x, y: all int; ones[x] == more[y]) emit stdout <- "equal";
        when (x: all int; ones[x] == more[x]) emit stdout <- "of one length";
        when (x: all int; y: each int; ones[x] == mixed[y]) emit stdout <- format("each %d", y);
        when (x: all int; y: some int; ones[x] == mixed[y]) emit stdout <- format("some %d", y);
        when (x: all int; y: some int; mixed[x] == ones[y]) emit stdout <- "all are one";
        when (y: some int; x: all int; mixed[x] < 5 && ones[y] == 1) emit stdout <- string(def(x));
        """,
        ["equal", "each 1", "each 3", "some 1", "false"],
    ),
    "messages with nothing in them": (
        """
        type Hit = proto { url: string = "none" @ 1,
                           part: { n: int @ 1, more: array of int @ 2 } @ 2 };
        h: Hit = {};
        emit stdout <- h.url + string(inprotocount(h)) + string(len(bytes(h)));
        h.part.n = 3;
        emit stdout <- string(inprotocount(h)) + string(bytes(h), "hex");
        """,
        ["none00", "212020803"],
    ),
    "fingerprints of two": (
        """
        a := fingerprintof("a"); b := fingerprintof("b");
        emit stdout <- string(a + b == b + a) + string(a + b == a + b) + string(int(3p));
        """,
        ["falsetrue3"],
    ),
    "bytes that are compressed": (
        """
        text := B"to be or not to be";
        emit stdout <- string(gunzip(gzip(text)));
        emit stdout <- string(zlibuncompress(zlibcompress(text)));
        emit stdout <- string(zlibuncompress(zlibcompress(text, true), true));
        emit stdout <- string(def(gunzip(text))) + string(int(bytes(258, "saw"), "fixed64-big"));
        """,
        ["to be or not to be"] * 3 + ["false258"],
    ),
    "weeks begin on Mondays": (
        """
        emit stdout <- string(trunctoweek(T"Sun Mar  8 15:00:00 PDT 2026", "America/Los_Angeles"));
        emit stdout <- string(trunctoweek(T"Mon Mar  9 00:00:00 UTC 2026"));
        """,
        ["Mon Mar  2 08:00:00 UTC 2026", "Mon Mar  9 00:00:00 UTC 2026"],
    ),
    "maps, messages and what contains itself as indexes": (
        """
        type Tree = { v: int, kids: array of Tree };
        bags: table sum[bag: map[string] of int] of int;
        trees: table sum[Tree] of int;
        numbers: table sum[float] of int;
        pairs: table sum[{float, string}] of int;
        emit bags[{"b": 2, "a": 1}] <- 1; emit bags[{"a": 1, "b": 2}] <- 1; emit bags[{:}] <- 1;
        emit trees[{1, {{2, {}}}}] <- 5;
        emit numbers[0.0] <- 1; emit numbers[-0.0] <- 1;
        emit numbers[nan] <- 1; emit numbers[-nan] <- 1;
        emit pairs[{0.0, "a"}] <- 1; emit pairs[{-0.0, "a"}] <- 1;
        """,
        ['bags[{ "a": 1, "b": 2 }] = 2', "bags[{:}] = 1", "trees[{ 1, { { 2, {} } } }] = 5",
         "numbers[0] = 2", "numbers[nan] = 2", 'pairs[{ 0, "a" }] = 2'],
    ),
    "types of tables": (
        """
        type Counter = table sum[string] of int;
        type Best = table maximum(1) of s: string weight int format("<%s>", s);
        a: Counter; b: Counter; best: Best;
        emit a["x"] <- 1; emit b["x"] <- 2; emit best <- "y" weight 3;
        prints: table recordio(0) of int;
        emit prints <- 7;
        """,
        ["a[x] = 1", "b[x] = 2", "best[] = <y>, 3", "prints[] = 7"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("engine", ["reference", "local"])
@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_program_prints(tmp_path: Path, name: str, engine: str) -> None:
    program, lines = PROGRAMS[name]
    finished = run_text(tmp_path, program, engine=engine)
    assert {} == dict(finished.report.faults)
    assert sorted(lines) == sorted(printed(finished).splitlines())


def test_file_is_included_once(tmp_path: Path) -> None:
    (tmp_path / "limits.szl").write_text('include "limits.szl"\nstatic LIMIT := 5;\n')
    program = 'include "limits.szl"\ninclude "limits.szl"\nemit stdout <- string(LIMIT);\n'
    assert "5\n" == printed(run_text(tmp_path, program))


def test_names_of_a_file_that_is_not_there_are_no_faults_of_their_own(tmp_path: Path) -> None:
    with pytest.raises(MillstreamError) as told:
        run_text(
            tmp_path, 'include "nowhere.szl"\nx: Far = near(1);\ny := 1 + 1.0;\nemit t <- y;\n'
        )
    messages = [fault.message for fault in told.value.faults]
    assert [
        'there is no file "nowhere.szl"',
        "`+` takes two values of one type, got int and float",
    ] == messages


@pytest.mark.parametrize("engine", ["reference", "local"])
def test_calls_without_end_are_rejected_where_they_are_made(
    tmp_path: Path, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also those that are not nested deeply, and those whose result may have no value."""
    for module in ("meaning.scripts", "kernels.scripts.runtime"):
        monkeypatch.setattr(f"millstream.{module}.MOST_ROUNDS", 3000)
    text = """
    fib: function(n: int): int { if (n < 2) return n; return fib(n - 1) + fib(n - 2); };
    down: function(n: int): int { return down(n + 1); };
    if (string(input) == "0" && def(down(0))) emit stdout <- "no";
    if (string(input) == "1") emit stdout <- string(fib(40));
    emit stdout <- "out";
    """
    finished = run_text(tmp_path, text, ["0", "1", "2"], engine=engine)
    told = [r.replace(f"{tmp_path}/", "") for r in finished.report.first_rejections]
    assert [
        "program.szl:3:35: these calls do not come to an end",
        "program.szl:2:55: these calls do not come to an end",
    ] == told
    assert "out\n" == printed(finished)


@pytest.mark.parametrize("engine", ["reference", "local"])
def test_emit_with_a_format_says_why_it_has_no_value(tmp_path: Path, engine: str) -> None:
    text = """
    none: function(n: int): int { x: int; return x; };
    twice: table collection of v: int format("%d %d", v, v);
    if (string(input) == "a") emit stdout <- string(none(1));
    if (string(input) == "b") emit twice <- none(1) / 0;
    """
    finished = run_text(tmp_path, text, ["a", "b", "c"], engine=engine)
    told = [r.replace(f"{tmp_path}/", "") for r in finished.report.first_rejections]
    assert ['program.szl:4:31: "x" has no value', 'program.szl:5:31: "x" has no value'] == told
