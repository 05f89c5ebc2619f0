"""Each bucket asks for its own rows: what holds for that, and what goes wrong where it does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from millstream.calculus.graph import Operator, Program
from millstream.connectors.location import parse_location
from millstream.engine import layout
from millstream.kernels import build
from millstream.languages.brook.load import load
from millstream.plan import covering
from millstream.plan.covering import questions
from millstream.source import Source
from tests.engine.bench import Bench

#: Vessels and what is known of their berths, with nulls where nothing is.
ASKING = """
output out;
input vessels(id integer, berth integer), berths(name integer, depth integer);
(v, $v) <- Latest[by id](vessels, $v);
(b, $b) <- Latest[by name](berths, $b);
(v1, v2) <- Duplicate(v);
(b1, b2) <- Duplicate(b);
(keys) <- Map[key = berth](v1);
(asked, $asked) <- Distinct(keys, $asked);
(there) <- Map[key = name](b1);
(table) <- Map[key = name, depth](b2);
(known, $k1, $k2) <- Lookup[found; on key; nulls](asked, there, $k1, $k2);
(alone) <- Filter[not found](known);
(padded) <- Map[key, depth = -1](alone);
(total, $t1, $t2) <- Merge(table, padded, $t1, $t2);
(out, $o1, $o2) <- Join[on berth = key; nulls](v2, total, $o1, $o2);
"""


def asking(*changes: tuple[str, str]) -> Program:
    text = ASKING
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return load(Source("asking.brook", text))


def test_what_rows_ask_of_a_table_is_known() -> None:
    (question,) = questions(asking()).values()
    assert "keys" == question.asked
    assert ("there", "table") == question.tables


#: Each guard, with a program that only it stops.
GUARDED = {
    "others ask than are joined": [
        ("(keys) <- Map[key = berth](v1);",
         "(few) <- Filter[id > 2](v1); (keys) <- Map[key = berth](few);"),
    ],
    "another column is asked for": [("Map[key = berth](v1)", "Map[key = id](v1)")],
    "the join compares less than is asked": [
        ("Map[key = berth](v1)", "Map[key = berth, more = id](v1)"),
        ("Map[key = name](b1)", "Map[key = name, more = 1](b1)"),
        ("Map[key = name, depth](b2)", "Map[key = name, more = 1, depth](b2)"),
        ("Map[key, depth = -1]", "Map[key, more, depth = -1]"),
    ],
    "something else is made on the way": [
        ("(known, $k1, $k2) <- Lookup[found; on key; nulls](asked, there, $k1, $k2);",
         ("(n, $n) <- Aggregate[by key; n = count()](asked, $n); (again) <- Map[key](n);"
         "(known, $k1, $k2) <- Lookup[found; on key; nulls](again, there, $k1, $k2);")),
    ],
}  # fmt: skip


@pytest.mark.parametrize("changes", GUARDED.values(), ids=GUARDED)
def test_where_a_guard_does_not_hold_nothing_is_asked_in_each_bucket(
    changes: list[tuple[str, str]],
) -> None:
    assert not questions(asking(*changes))


def answers(program: Program, folder: Path, copied: frozenset[str]) -> list[object]:
    folder.mkdir()
    vessels = "".join(f"{t},{t},{t % 3}\n" for t in range(1, 13))
    (folder / "vessels.csv").write_text("_time,id,berth\n" + vessels)
    (folder / "berths.csv").write_text("_time,name,depth\n2,1,10\n20,2,30\n")
    locations = {name: parse_location(f"{name}.csv", folder) for name in program.input_names}
    job = Bench(program, locations, folder / "state", copied=copied, is_following=False)
    job.planner.freeze()
    while job.batch():
        pass
    return list(job.sinks["out"].items())


BERTHS = frozenset(("berths",))


def test_what_a_bucket_has_asked_for_stays_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that something without a kernel must see in one place are not where they were asked."""
    program = asking(("Join[on berth = key; nulls](v2,", "Join[on berth = key; nulls](v3,"),
                     ("(keys)", "(v3) <- Filter[id > 0](v2); (keys)"))  # fmt: skip
    compiled = build.why_not

    def why_not(whole: Program, operators: tuple[Operator, ...]) -> str | None:
        is_filter = any(op.outputs == ("v3",) for op in operators)
        return "it has none here" if is_filter else compiled(whole, operators)

    expected = answers(program, tmp_path / "cut", frozenset())
    monkeypatch.setattr(layout, "why_not", why_not)
    assert questions(program)
    assert expected == answers(program, tmp_path / "copied", BERTHS)


@pytest.mark.parametrize("changes", [[], *GUARDED.values()], ids=["as it should be", *GUARDED])
def test_with_the_table_copied_the_answer_is_the_same(
    changes: list[tuple[str, str]], tmp_path: Path
) -> None:
    program = asking(*changes)
    expected = answers(program, tmp_path / "cut", frozenset())
    assert expected and expected == answers(program, tmp_path / "copied", BERTHS)


@pytest.mark.parametrize("changes", list(GUARDED.values())[:3], ids=list(GUARDED)[:3])
def test_without_its_guard_the_answer_is_another_one(
    changes: list[tuple[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = asking(*changes)
    expected = answers(program, tmp_path / "cut", frozenset())
    monkeypatch.setattr(covering._Walk, "_is_asked", lambda *_: True)
    assert questions(program)
    assert expected != answers(program, tmp_path / "forced", BERTHS)
