"""Sheets as nodes of projects: bindings, checks, chains."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import millstream
from millstream.errors import ProgramError
from tests.languages.sheets.books import save

STREAM = """
[stream.Trades]
source = "trades.csv"
columns = { sym = "text", price = "number" }
time = "ts"
"""
TRADES: list[dict[str, Any]] = [
    {"ts": 1_000_000, "sym": "A", "price": 1.0},
    {"ts": 2_000_000, "sym": "B", "price": 10.0},
    {"ts": 3_000_000, "sym": "A", "price": 3.0},
]


def project(folder: Path, cells: dict[str, Any], node: str, stream: str = STREAM) -> Path:
    save(folder / "book.xlsx", cells)
    (folder / "millstream.toml").write_text(f"{stream}\n[node.n]\nsheet = 'book.xlsx'\n{node}")
    return folder


NODE = """
inputs.Trades = { A1 = "sym", B1 = "price" }
partition = "sym"
outputs.Means = { sym = "A1", mean = "C1" }
"""


@pytest.mark.parametrize("engine", ["reference", "local"])
def test_a_sheet_runs_for_every_key(tmp_path: Path, engine: str) -> None:
    cells = {"C1": "=AVERAGE(WINDOW(B1,60))"}
    job = millstream.compile(project(tmp_path, cells, NODE))
    found = job.run({"Trades": TRADES}, engine=engine).rows("Means")
    assert [("A", 1.0), ("B", 10.0), ("A", 2.0)] == [(r["sym"], r["mean"]) for r in found]


@pytest.mark.parametrize("engine", ["reference", "local"])
def test_a_sheet_fires_once_per_instant_if_told_to(tmp_path: Path, engine: str) -> None:
    node = 'inputs.Trades = { B1 = "price" }\noutputs.Out = { x = "C1" }\nfiring = "instant"'
    job = millstream.compile(project(tmp_path, {"C1": "=PRE(C1,B1,0)+B1"}, node))
    rows: list[dict[str, Any]] = [{"ts": 1, "sym": "A", "price": p} for p in (1.0, 2.0)]
    rows.append({"ts": 2, "sym": "A", "price": 5.0})
    found = job.run({"Trades": rows}, engine=engine).rows("Out")
    assert [2.0, 7.0] == [r["x"] for r in found]


def test_one_sheet_feeds_another_with_another_key(tmp_path: Path) -> None:
    save(tmp_path / "one.xlsx", {"C1": "=SUM(WINDOW(B1,60))"})
    save(tmp_path / "two.xlsx", {"B1": "=MAX(WINDOW(A1,60))"})
    (tmp_path / "millstream.toml").write_text(
        f"""{STREAM}
[node.second]
sheet = "two.xlsx"
inputs.Sums = {{ A1 = "sum" }}
outputs.Largest = {{ x = "B1" }}
[node.first]
sheet = "one.xlsx"
inputs.Trades = {{ A1 = "sym", B1 = "price" }}
partition = {{ Trades = "sym" }}
outputs.Sums = {{ sym = "A1", sum = "C1" }}
"""
    )
    found = millstream.compile(tmp_path).run({"Trades": TRADES}).rows("Largest")
    assert [1.0, 10.0, 10.0] == [r["x"] for r in found]


def test_a_workbook_that_binds_its_own_cells_needs_no_project(tmp_path: Path) -> None:
    rows = [
        ("stream", "direction", "attribute", "cell", "type", "role"),
        ("Trades", "input", "sym", "A1", "text", "partition"),
        ("Trades", "input", "price", "B1", "number", None),
        ("Trades", "input", "ts", None, None, "time"),
        ("Means", "output", "sym", "A1", None, None),
        ("Means", "output", "mean", "C1", None, None),
    ]
    cells: dict[str, Any] = {"C1": "=AVERAGE(WINDOW(B1,60))"}
    for number, row in enumerate(rows, 1):
        cells |= {
            f"streams!{letter}{number}": value
            for letter, value in zip("ABCDEF", row, strict=True)
            if value is not None
        }
    job = millstream.compile(save(tmp_path / "alone.xlsx", cells))
    found = job.run({"Trades": TRADES}).rows("Means")
    assert [1.0, 10.0, 2.0] == [r["mean"] for r in found]


def faults(folder: Path) -> list[str]:
    with pytest.raises(ProgramError) as caught:
        millstream.compile(folder)
    return [fault.render() for fault in caught.value.faults]


def test_all_that_is_wrong_with_the_cells_is_told_at_once(tmp_path: Path) -> None:
    cells = {
        "C1": "=D1+1", "D1": "=E1*2", "E1": "=C1", "F1": "=WINDOW(B1,5)", "G1": "=F1+1",
        "H1": "=NOSUCH(B1)", "I1": "=RAND()+B1", "J1": "=C1+G1+H1+I1",
    }  # fmt: skip
    node = 'inputs.Trades = { B1 = "price" }\noutputs.Out = { x = "J1" }'
    found = "\n".join(faults(project(tmp_path, cells, node)))
    assert "S!C1: these cells depend on each other: S!C1 -> S!D1 -> S!E1 -> S!C1" in found
    assert "S!G1: the window S!F1: windows flow only into aggregations" in found
    assert "S!H1: the function NOSUCH is not supported" in found
    assert "S!I1: RAND is volatile" in found


def test_all_that_is_wrong_with_the_bindings_is_told_at_once(tmp_path: Path) -> None:
    node = """
inputs.Trades = { B1 = "prise", C1 = "price" }
partition = "symbol"
outputs.Out = { x = "Z9", y = "Nowhere!A1", z = "C1" }
"""
    found = "\n".join(faults(project(tmp_path, {"C1": "=B1"}, node)))
    assert 'Trades has no attribute "prise" for S!B1' in found
    assert 'Did you mean "price"?' in found
    assert "Trades.price is bound to S!C1, which has a formula" in found
    assert 'Trades has no attribute "symbol" to be partitioned by' in found
    assert "Out.x is read from S!Z9, which is empty" in found
    assert 'has no worksheet "Nowhere"' in found


def test_a_key_that_one_input_lacks(tmp_path: Path) -> None:
    stream = STREAM + STREAM.replace("Trades", "Quotes").replace("trades", "quotes")
    node = """
inputs.Trades = { B1 = "price" }
inputs.Quotes = { B2 = "price" }
partition = { Trades = "sym" }
outputs.Out = { x = "C1" }
"""
    found = faults(project(tmp_path, {"C1": "=B1+B2"}, node, stream))
    assert ["Quotes has no partitioning key, but Trades has"] == [
        f.split(": ", 1)[1].split("\n")[0] for f in found
    ]


def test_a_defined_name_that_is_defined_by_itself(tmp_path: Path) -> None:
    import openpyxl
    from openpyxl.workbook.defined_name import DefinedName

    folder = project(tmp_path, {"C1": "=ONE+B1"},
                     'inputs.Trades = { B1 = "price" }\noutputs.Out = { x = "C1" }')  # fmt: skip
    book = openpyxl.load_workbook(folder / "book.xlsx")
    book.defined_names["ONE"] = DefinedName("ONE", attr_text="TWO+1")
    book.defined_names["TWO"] = DefinedName("TWO", attr_text="ONE+1")
    book.save(folder / "book.xlsx")
    assert "S!C1: the defined name ONE is defined by itself: one -> two -> one" in faults(folder)[0]


def test_errors_in_output_cells_are_null_and_counted(tmp_path: Path) -> None:
    node = 'inputs.Trades = { B1 = "price" }\noutputs.Out = { x = "C1" }'
    job = millstream.compile(project(tmp_path, {"C1": "=1/(B1-1)"}, node))
    done = job.run({"Trades": TRADES})
    assert [None, 1 / 9, 0.5] == [r["x"] for r in done.rows("Out")]
    assert {"#DIV/0! in S!C1": 1} == dict(done.report.faults)
