"""Generated programs: the function that is made of a script does what its statements mean.

Sums are compared with plain dictionaries too.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.calculus.tables import RunScript, tables_told
from millstream.kernels.scripts.run import runner, why_walked
from millstream.languages.sawzall.translate import ProgramSettings, script_of
from millstream.meaning.scripts import Machine
from millstream.source import Source
from millstream.values.records.running import Emitted, Rejected
from tests.languages.sawzall.programs import printed, run_text

START = """
a: array of int = {3, 1, 2};
m: map[string] of int = {"a": 1, "b": 2};
s: string = input;
x := len(s); y := 2; t: {p: int, q: string} = {5, "q"};
f := function(n: int): int { if (n > 3) return a[n]; x = x + 1; return n * 2; };
out: table collection of int;
"""
LEAVES = ["x", "y", "1", "0", "-3", "7", "a[x]", "a[$-1]", "len(s)", "s[0]", "t.p", 'm["a"]',
          'm["z"]', "f(x)", "f(1)", "int(s)", "len(a)", "9223372036854775807"]  # fmt: skip


@st.composite
def integers(draw: st.DrawFn, depth: int = 2) -> str:
    if depth == 0 or draw(st.booleans()):
        return draw(st.sampled_from(LEAVES))
    left, right = draw(integers(depth - 1)), draw(integers(depth - 1))
    operator = draw(st.sampled_from(["+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>"]))
    return f"({left} {operator} {right})"


@st.composite
def conditions(draw: st.DrawFn) -> str:
    form = draw(st.sampled_from(["{} < {}", "{} == {}", "def({}) && {} > 0", "!({} >= {})"]))
    return form.format(draw(integers(1)), draw(integers(1)))


@st.composite
def statements(draw: st.DrawFn, depth: int = 2) -> str:
    value = draw(integers())
    plain = [
        f"x = {value};", "y++;", f"emit out <- {value};", f"a[x] = {value};", "a = a + {y};",
        "a[x:y] = {7, x};", "a[1:$] = a[0:y];",
        f'm["c"] = {value};', f"t.p = {value};", f"z := {value}; if (def(z)) emit out <- z;",
        f"assert({draw(conditions())});", "t.q[0] = 97 + y; emit out <- len(t.q);",
        f"emit out <- ?{{ if ({draw(conditions())}) result {value}; result y; }};",
    ]  # fmt: skip
    if depth == 0:
        return "{ " + draw(st.sampled_from(plain)) + " }"
    inner = draw(statements(depth - 1))
    other = draw(statements(depth - 1))
    blocks = [
        *plain, f"if ({draw(conditions())}) {inner} else {other}",
        f"for (i := 0; i < 3; i++) {{ if (i == y) continue; {inner} }}",
        f"while (x < 3) {{ x++; if (x == 2) break; {inner} }}",
        f"do {{ y--; {inner} }} while (y > 0);",
        f"when (i: each int; a[i] > {value}) {{ emit out <- a[i]; {inner} }}",
        f"when (k: some string; m[k] == 2) {inner}",
        "when (i: each int; j: some int; a[i] < a[j]) emit out <- i;",
        f"when (i: all int; a[i] > 0) {inner}",
        f"switch (x) {{ case 1, {value}: {inner} break; case 2: {other} default: emit out <- 9; }}",
    ]  # fmt: skip
    return "{ " + draw(st.sampled_from(blocks)) + " }"


def outcome(run: object, record: bytes) -> list[Emitted] | str:
    try:
        return list(run(record, (), 0))  # type: ignore[operator]
    except Rejected as rejected:
        return str(rejected)


@settings(max_examples=60, deadline=None)
@given(st.lists(statements(), min_size=1, max_size=4), st.lists(st.text("017ab", max_size=3)))
def test_function_of_a_script_does_what_its_statements_mean(
    body: list[str], records: list[str]
) -> None:
    script = script_of(Source("p.szl", START + "\n".join(body)), Path(), ProgramSettings())
    function = RunScript(script, False, tables_told(script))
    assert why_walked(function, ("line",)) is None
    made, machine = runner(function, ("line",)), Machine(script)
    for record in [*records, "1"]:
        raw = record.encode()
        expected = outcome(lambda r, _row, seed: machine.run(r, {}, seed), raw)
        assert expected == outcome(made, raw)


@settings(max_examples=6, deadline=None)
@given(lines=st.lists(st.text("ab c", max_size=6), min_size=1, max_size=30))
def test_sums_are_those_of_plain_dictionaries(tmp_path_factory: object, lines: list[str]) -> None:
    tmp_path: Path = tmp_path_factory.mktemp("sums")  # type: ignore[attr-defined]
    text = """
        n: table sum[w: string] of int;
        size: table sum of float;
        words: array of string = sawzall(string(input), `[a-c]+`);
        for (i := 0; i < len(words); i++) { emit n[words[i]] <- 1; emit size <- 0.5; }
    """
    words = [word for line in lines for word in line.split()]
    counts = Counter(words)
    expected = "".join(f"n[{w}] = {counts[w]}\n" for w in sorted(counts))
    if words:
        expected += f"size[] = {len(words) * 0.5:g}\n"
    assert expected == printed(run_text(tmp_path, text, lines))
