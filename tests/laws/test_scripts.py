"""Laws 1, 2 and 7 for scripts and their tables: generated programs on generated lines.

Reference, local, and local cut into batches, stopped anywhere and taken up again give the same, of
several files too. With windows and with tables that are told while time passes.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from millstream.api import Compiled
from millstream.calculus.graph import Program
from millstream.connectors.location import Location, parse_location
from millstream.errors import AllRejected
from millstream.languages.sawzall.translate import ProgramSettings, translated
from millstream.source import Source
from tests.laws.runs import Collector, Rows
from tests.laws.test_checkpoints import in_many_goes, in_one_go
from tests.seeds import campaign, seeded

START = """
line := string(input);
words := sawzall(line, `[a-z]+`);
n: int = saw(line, `[0-9]+`)[0];
x: float = saw(line, `[0-9.]+`)[0];
m: map[string] of int = {:};
for (i := 0; i < len(words); i++) m[words[i]] = lookup(m, words[i], 0) + 1;
"""
#: A declaration of a table, and what is emitted to it.
TABLES = (
    ("sum[w: string][k: int] of int", "[w][len(line)] <- k"),
    ("sum of {c: int, f: float}", " <- {k, 0.5}"),
    ("sum[w: string] of map[string] of int", "[w] <- {w: k}"),
    ("collection[k: int] of string", "[k] <- w"),
    ("maximum(2)[w: string] of string weight int", "[w] <- line weight k"),
    ("minimum(1) of {string, int} weight float", " <- {w, k} weight x"),
    ("set(2)[k: int] of string", "[k] <- w"),
    ("top(2) of string weight int", " <- w weight k"),
    ("top(1)[k: int] of string weight float", "[k] <- w weight x"),
    ("unique(3) of int", " <- k"),
    ("unique(100)[w: string] of string", "[w] <- line"),
    ("quantile(4)[w: string] of float", "[w] <- x"),
    ("distinctsample(2) of string weight int", " <- w weight k"),
    ("inversehistogram(50) of string", " <- w"),
    ("sample(2)[w: string] of int", "[w] <- k"),
    ("weightedsample(3) of string weight float", " <- w weight x"),
    ("bootstrapsum(2) of int weight string", " <- k weight w"),
    ("mrcounter of int", " <- k"),
)
#: How emits come about: `w` is a word, `k` a number.
FORMS = (
    "w := line[0:1]; k := n; {}",
    'w := "all"; k := len(line); if (k % 2 == 0) {{ {} }} else if (def(x)) {{ {} }}',
    "when (i: each int; def(words[i])) {{ w := words[i]; k := i; {} }}",
    "for (i := 0; i < len(words); i++) {{ if (i == 3) break; w := words[i]; k := m[w]; {} }}",
    "when (w: some string; m[w] > 1) {{ k := m[w]; {} }}",
    'switch (len(words)) {{ case 0: w := "none"; k := n; {} default: w := words[0]; k := 1; {} }}',
)


@st.composite
def scripts(draw: st.DrawFn) -> str:
    chosen = draw(st.lists(st.sampled_from(TABLES), min_size=1, max_size=3))
    text, body = "", START
    for number, (table, emit) in enumerate(chosen):
        text += f"t{number}: table {table};\n"
        form = draw(st.sampled_from(FORMS))
        emits = f"emit t{number}{emit};"
        body += "{ " + form.format(*[emits] * form.count("{}")) + " }\n"
    if draw(st.booleans()):
        body += "emit stdout <- line;\n"
    return text + body


LINES = st.lists(
    st.lists(st.sampled_from(["a", "b", "ab", "7", "12", "2.5", "0", "ü", "-"]), max_size=5).map(
        " ".join
    ),
    min_size=1, max_size=25,
)  # fmt: skip


def local(program: Program, locations: dict[str, Location]) -> tuple[dict[str, Rows], object]:
    collectors = {name: Collector() for name in program.outputs}
    finished = Compiled(program).run(locations, collectors, engine="local")
    return {name: c.rows for name, c in collectors.items()}, finished.report.inputs


def case_of(
    text: str, lines: list[str], folder: Path, chance: random.Random
) -> tuple[Program, dict[str, Location]]:
    """A script with some settings, and its lines in two files."""
    given = ProgramSettings(
        ignores_undefined=chance.random() < 0.3,
        window=chance.choice((None, None, 7)), every=chance.choice((None, 5)),
    )  # fmt: skip
    if given.window is not None:
        given = ProgramSettings(ignores_undefined=given.ignores_undefined, window=given.window)
    program = translated(Source("p.szl", text), folder, given, {}).program
    cut = chance.randrange(len(lines) + 1)
    for name, part in (("a", lines[:cut]), ("b", lines[cut:])):
        (folder / f"{name}.txt").write_text("".join(f"{line}\n" for line in part))
    return program, {"input": parse_location("*.txt", folder)}


def agree(text: str, lines: list[str], folder: Path, seed: int) -> None:
    chance = random.Random(seed)
    program, locations = case_of(text, lines, folder, chance)
    try:
        expected = in_one_go(program, locations)
    except AllRejected:
        with pytest.raises(AllRejected):
            in_many_goes(program, locations, folder / "checkpoint", chance)
        return
    assert expected == local(program, locations)
    assert expected == in_many_goes(program, locations, folder / "checkpoint", chance)


@settings(
    max_examples=8, deadline=None, derandomize=True, database=None, phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
@given(scripts(), LINES, st.integers(0, 1000))
def test_engines_cuts_and_restarts_agree(
    tmp_path_factory: pytest.TempPathFactory, text: str, lines: list[str], seed: int
) -> None:
    agree(text, lines, tmp_path_factory.mktemp("case"), seed)


@pytest.mark.proof
@pytest.mark.parametrize("number", campaign(500, 20))
def test_engines_cuts_and_restarts_agree_in_a_campaign(
    tmp_path_factory: pytest.TempPathFactory, number: int
) -> None:
    @seeded(number, 20)
    @given(scripts(), LINES, st.integers(0, 1000))
    def law(text: str, lines: list[str], seed: int) -> None:
        agree(text, lines, tmp_path_factory.mktemp("case"), seed)

    law()
