"""Tables that functions are given, and what may be done with a table besides emitting to it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from millstream.errors import ParseError
from tests.languages.sawzall.programs import printed, run_text

_COUNTS = """
type Counts = table sum[string][int] of int;
days: Counts;
nights: Counts;
long: table top(2) of word: string weight n: int;
other: table top(2) of word: string weight n: int;
shout: table collection of s: string format("<%s>", s);
plain: table collection of string;

count := function(t: Counts, s: string) { emit t[s][len(s)] <- 1; };
weigh := function(n: int, t: table top(2) of string weight int, s: string) {
  if (n == 0) return;
  emit t <- s weight n;
  weigh(n - 1, t, s);
};
say := function(t: table collection of string, s: string): int {
  within := function(s: string) { emit t <- s; };
  within(s);
  return len(s);
};

assert(def(days));
days;
w: array of string = sawzall(string(input), `[a-z]+`);
for (i := 0; i < len(w); i++) {
  if (i % 2 == 0) count(days, w[i]); else count(nights, w[i]);
  if (len(w[i]) > 3) weigh(2, long, w[i]); else weigh(1, other, w[i]);
}
n := say(shout, string(input)) + say(plain, "n");
function(t: Counts) { emit t["n"][n] <- 1; }(nights);
"""

_LINES = ["a bee sees a bear", "", "bees see bears see bees", "one"]


def _expected() -> list[str]:
    days: Counter[tuple[str, int]] = Counter()
    nights: Counter[tuple[str, int]] = Counter()
    heavy: Counter[str] = Counter()
    light: Counter[str] = Counter()
    for line in _LINES:
        for i, word in enumerate(line.split()):
            (nights if i % 2 else days)[word, len(word)] += 1
            if len(word) > 3:
                heavy[word] += 3  # 2, then 1
            else:
                light[word] += 1
        nights["n", len(line) + 1] += 1
    shown = [f"days[{w}][{n}] = {days[w, n]}" for w, n in sorted(days)]
    shown += [f"nights[{w}][{n}] = {nights[w, n]}" for w, n in sorted(nights)]
    for name, weights in (("long", heavy), ("other", light)):
        best = sorted(weights.items(), key=lambda item: (-item[1], item[0]))[:2]
        shown += [f"{name}[] = {word}, {n}, 0" for word, n in best]
    shown += [f"shout[] = <{line}>" for line in sorted(_LINES)]
    return shown + ["plain[] = n"] * len(_LINES)


@pytest.mark.parametrize("engine", ["reference", "local"])
def test_functions_emit_to_the_tables_they_are_given(tmp_path: Path, engine: str) -> None:
    finished = run_text(tmp_path, _COUNTS, _LINES, engine=engine)
    assert _expected() == printed(finished).splitlines()
    assert finished.report.inputs["input"].rejected == 0


_EMITS = "f := function(t: table sum of int) { emit t <- 1; };"


@pytest.mark.parametrize(
    ("program", "fault"),
    [
        ("f := function(t: table sum of int) { emit t <- 1; };\nt: table sum of float;\nf(t);",
         "to be of type table sum of int, got table sum of float"),
        (f"a: table sum of int;\n{_EMITS}\nb: table sum of int;\nf(b);",
         '"b" is declared behind a function that emits to tables like it'),
        ("a: table sum of int;\nf := function(t: table sum of int) { emit t[1] <- 1; };\nf(a);",
         '"a" has 0 indexes, got 1'),
        ("a: table sum of int;\nb := a;\nemit b <- 1;", "a table has one name"),
        ("a: table sum of int;\nx: int = a;", "table sum of int"),
        ("a: table sum of int;\nemit stdout <- string(a);", "table sum of int"),
        ("a: table sum of int;\nb := a + a;", "table sum of int"),
        ("x: array of table sum of int;", "or is a parameter of a function"),
        ("a: table sum;\nf := function(t: table sum) { emit t <- 1; };", "expected `of`"),
    ],
)  # fmt: skip
def test_tables_in_other_places_are_told(tmp_path: Path, program: str, fault: str) -> None:
    with pytest.raises(ParseError) as caught:
        run_text(tmp_path, program, [])
    assert fault in str(caught.value)


def test_a_fault_of_a_table_or_a_quantifier_brings_no_others(tmp_path: Path) -> None:
    program = """
t: table collection of bytes proc("ls %d", 1);
emit t <- input;
when (i: any int; input[i] == 1) emit t <- input;
when (j: int; input[j] == 1) emit t <- input;
"""
    with pytest.raises(ParseError) as caught:
        run_text(tmp_path, program, [])
    messages = [fault.message for fault in caught.value.faults]
    assert messages == [
        "a table cannot start other programs",
        "expected some, each or all, got `any`",
        "expected some, each or all, got `int`",
    ]
