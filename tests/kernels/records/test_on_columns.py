"""Scripts on columns emit what scripts on single records emit, in the same order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.calculus.tables import RunScript
from millstream.calculus.types import QueueType
from millstream.kernels.runtime.kernel import Round
from millstream.kernels.scripts.on_columns import ColumnsKernel, known, why_not
from millstream.kernels.scripts.run import RunScriptKernel
from millstream.languages.sawzall.load import load
from millstream.plan.batch import batch_of
from millstream.source import Source

PROGRAMS = {
    "lines": """
        hits: table sum[method: string][status: int] of int;
        sizes: table sum of {n: int, total: float};
        long: table collection of line: string;
        line := string(input);
        m := matchstrs(`^(\\w+) (\\d+)(?: (-?[0-9.e]+))?`, line);
        if (len(m) > 0 && m[1] != "PUT") {
          status := int(m[2]);
          emit hits[uppercase(m[1])][status / 100] <- status % 7;
          size: float = float(m[3]);
          if (def(size)) emit sizes <- {1, size * 2.0};
        } else if (match(`x+y`, line) || len(line) > 8) emit long <- line[1:4];
    """,
    "numbers": """
        total: table sum of float;
        n: table sum[sign: int] of int;
        best: table maximum(2) of x: float weight w: int;
        clamp := function(a: float): float {
          if (a > 100.0) return 100.0;
          if (a < -100.0) return -100.0;
          return a;
        };
        x: float = input;
        y := clamp(x);
        i: int = int(y);
        emit total <- y;
        if (i != 0) emit n[abs(i) / i] <- 12 / i;
        emit best <- max(y, 0.5) weight i & 3;
    """,
    "pieces": """
        counts: table sum[key: string] of int;
        static kPattern: string = `[a-z]+`;
        p := saw(string(input), kPattern, skip `=`, regex(int));
        assert(len(p) != 1);
        k: string = p[0];
        v: int = int(p[1], 10);
        if (strfind("b", k) >= 0) v = v + 1;
        emit counts[k] <- v;
    """,
    "words": """
        count: table sum[word: string][place: int] of int;
        first: table collection of string;
        line := string(input);
        words := sawzall(line, `[a-zA-Z]+`);
        for (i := 0; i < len(words); i++) {
          if (words[i] == "x") continue;
          if (words[i] == "PUT") break;
          emit count[lowercase(words[i])][i] <- len(words[i]);
        }
        when (i: some int; words[i] != "GET") emit first <- words[i];
        when (i: each int; words[i + 1] == words[i]) emit first <- words[i];
        n := 0;
        while (n * n < len(line)) { n++; if (n == 3) return; }
        emit first <- line[0:n];
    """,
    "sawn": """
        out: table collection of string;
        sums: table sum[n: int] of int;
        a := sawzall(string(input), `[a-zA-Z]*`, skip `[= ]`, submatch `([0-9])([0-9.]*)`);
        when (i: each int; def(a[i])) emit out <- a[i];
        b := sawn(2, string(input), `x*`);
        for (i := len(b) - 1; i >= 0; i--) emit sums[i] <- len(b[i]);
        c := sawzall(string(input), `[ab]*`);
        f := function(t: string): int { j := 0; do { j++; } while (j < len(t)); return j; };
        for (i := 0; i < len(c); i++) { emit sums[-1] <- f(c[i]); emit out <- c[i]; }
        d := sawzall(string(input), `^.`);
        emit sums[100 + len(d)] <- 1;
    """,
    "long": """
        sums: table sum[n: int] of int;
        n := len(input);
        if (n == 7) n = 3000;
        for (i := 0; i < n; i++) { if (i % 2 == 0) continue; emit sums[n] <- i; }
    """,
    "at once": """
        out: table collection of string;
        sums: table sum[n: int] of int;
        line := string(input);
        n := 0;
        words := sawzall(line, `[a-zA-Z0-9]+`);
        for (i := 0; i < len(words); i++) {
          if (words[i] == "x" || strfind("1", line) == i) continue;
          short := words[i][0:2];
          switch (len(words[i])) { case 1: short = "one"; default: emit sums[i] <- 12 / (i - 2); }
          emit out <- short + words[len(words) - 1 - i];
        }
        when (i: each int; int(words[i]) > i) { emit out <- string(i) + words[i + 1]; }
        for (j := 0; j <= len(line) - 3; j++) emit sums[line[j]] <- j;
        for (i := 0; i < len(words); i++) n += len(words[i]);
        k: int = 1;
        for (k = 0; k < len(words); k++) emit sums[k] <- 1;
        emit sums[100 + k] <- n;
    """,
    "fields": """
        parts: table collection of bytes;
        shown: table sum[year: int][month: int][day: int][hour: int] of int;
        since: table collection of {second: time, hour: time, day: time, week: time, month: time,
                                    year: time};
        f := splitcsvline(input);
        for (i := 0; i < len(f); i++) emit parts <- f[i];
        t := time(int(f[0]) * 86399999);
        emit shown[yearof(t)][monthof(t)][dayofmonth(t)][hourof(t, "UTC")] <- dayofyear(t);
        emit shown[0][dayofweek(t)][minuteof(t)][secondof(t)] <- 1;
        emit since <- {trunctosecond(t), trunctohour(t), trunctoday(t), trunctoweek(t),
                       trunctomonth(t), trunctoyear(t)};
    """,
    "made": """
        keys: table sum[key: string] of int;
        shown: table collection of string;
        marks: table sum[mark: fingerprint][big: uint] of int;
        static names: map[string] of string = {"GET": "get", "xxy": "x"};
        static weights: array of int = {3, 1, 4};
        line := string(input);
        n := len(line);
        key := string(n) + ":" + line[0:3] + "/" + string(n % 2 == 0) + string(-n);
        emit keys[key] <- weights[n];
        emit shown <- format("%s|%d|%05d|%-4s|%x", line, n, n, line[0:2], n);
        emit shown <- format("%q|%5.2f%%", line, float(n) / 3.0);
        emit shown <- lookup(names, line[0:3], "?") + string(float(n) * 0.1) + string(time(n));
        emit marks[fingerprintof(line)][uint(n) * 3u] <- (n << 2) >> 1;
        emit keys[strreplace(line, "1", "eins", true)] <- int(line[0:1], 16);
        if (match(`(.)\\1`, line)) emit shown <- string(trunctomonth(time(n), "America/New_York"));
    """,
}
#: Programs of which some statements are done record by record.
MIXED = {
    "counted": """
        count: table sum[word: string] of int;
        lines: table collection of string;
        line := string(input);
        words := sawzall(line, `[a-zA-Z]+`);
        emit lines <- line + "!";
        seen: map[string] of int = {:};
        most := 0;
        for (i := 0; i < len(words); i++) {
          seen[words[i]] = lookup(seen, words[i], 0) + 1;
          most = max(most, seen[words[i]]);
        }
        when (k: each string; def(seen[k])) { emit count[k] <- seen[k]; emit lines <- k; }
        emit lines <- line + string(most);
        if (most > 1) return;
        emit count[""] <- len(seen);
        emit count["x"] <- most;
    """,
    "sorted": """
        out: table collection of string;
        tops: table maximum(2)[n: int] of array of string weight w: int;
        twice := function(a: array of int): array of int {
          b: array of int = new(array of int, len(a), 0);
          for (i := 0; i < len(a); i++) b[i] = 2 * a[i];
          return b;
        };
        line := string(input);
        p := sawzall(line, `[0-9]`);
        a: array of int = new(array of int, len(p), 0);
        if (len(line) > 3) {
          for (i := 0; i < len(p); i++) a[i] = int(p[i]);
          a = sort(twice(a));
          first: int = a[0];
          if (def(first)) emit out <- format("%d of %d", first, len(a));
        } else {
          emit out <- line;
          t: {s: string, n: int} = {line, len(line)};
          if (t.n == 2) emit out <- t.s + "?";
        }
        emit tops[len(p)] <- p weight a[0];
        last: int = a[$ - 1];
        emit out <- string(last);
    """,
}
PROGRAMS |= MIXED
FIELDS = ["1772323200, a ,", "-99999999,b,,c", '7,"x, y"', ",", "999999999999,z", " 20 \t,\t"]
LINES = st.lists(
    st.sampled_from(["GET 200 1.5", "get 404", "PUT 500 3", "POST 12 1e3", "xxy", "GET 007 -2.25"])
    | st.sampled_from(["1.5", "-7", "1e400", "250", "0", "", "-0.5", "99999999999999999999", "3 "])
    | st.sampled_from(["ab=5", "b=007", "b=-3", "z=", "=1", "abc", "ü=1", "a=9223372036854775808"])
    | st.sampled_from(FIELDS)
    | st.text(st.sampled_from("GET 123.ab=xyü,\x00\n"), max_size=12),
    max_size=12,
)


def compiled(name: str) -> tuple[RunScript, tuple[QueueType, ...]]:
    program = load(Source(f"{name}.szl", PROGRAMS[name])).program
    types = program.queue_types()
    (operator,) = [op for op in program.operators if isinstance(op.function, RunScript)]
    assert isinstance(operator.function, RunScript)
    return operator.function, tuple(types[q] for q in operator.inputs)


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_these_programs_run_on_columns(name: str) -> None:
    function, inputs = compiled(name)
    assert why_not(function, inputs) is None
    parts = known(function, inputs).parts
    assert (name in MIXED) == bool(parts)


@pytest.mark.parametrize("name", sorted(PROGRAMS))
@given(LINES)
@settings(max_examples=60)
def test_columns_and_single_records_agree(name: str, lines: list[str]) -> None:
    function, inputs = compiled(name)
    rows = [(line.encode().decode("latin-1"),) for line in lines]
    batch = batch_of(inputs[0], list(range(len(rows))), rows)
    round_ = Round(len(rows), np.zeros(0, np.int64))
    outputs = len(function.told)
    fast, slow = (kernel(function, inputs, outputs) for kernel in (ColumnsKernel, RunScriptKernel))
    expected, made = slow.process((batch,), round_), fast.process((batch,), round_)
    assert [(b.rows(), b.time.tolist()) for b in expected] == [
        (b.rows(), b.time.tolist()) for b in made
    ]
    assert slow.faults() == fast.faults()
