"""Files that are no workbooks, or mean harm: one clear message, and quickly."""

from __future__ import annotations

import time
import zipfile
from pathlib import Path

import pytest

from millstream.errors import MillstreamError, ProgramError, UsageError
from millstream.sheets import load
from tests.languages.sheets.books import save


def rewritten(path: Path, part: str, old: bytes, new: bytes) -> Path:
    """A copy of a workbook in which a part says something else."""
    target = path.with_name("rewritten.xlsx")
    with zipfile.ZipFile(path) as book, zipfile.ZipFile(target, "w") as out:
        for name in book.namelist():
            data = book.read(name)
            out.writestr(name, data.replace(old, new) if name == part else data)
    return target


def refused(path: Path, what: str) -> None:
    with pytest.raises(ProgramError, match=what):
        load(path)


def test_not_a_workbook(tmp_path: Path) -> None:
    path = tmp_path / "text.xlsx"
    path.write_text("hello")
    refused(path, "this is not a workbook")


def test_an_archive_that_is_no_workbook(tmp_path: Path) -> None:
    path = tmp_path / "archive.xlsx"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.txt", "a")
    refused(path, "not one of Excel's")


def test_a_truncated_workbook(tmp_path: Path) -> None:
    path = save(tmp_path / "whole.xlsx", {"A1": 1})
    path.write_bytes(path.read_bytes()[:-200])
    refused(path, "cannot be read")


def test_an_encrypted_workbook(tmp_path: Path) -> None:
    path = tmp_path / "secret.xlsx"
    path.write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600))
    refused(path, "encrypted")


def test_a_zip_bomb(tmp_path: Path) -> None:
    path = save(tmp_path / "bomb.xlsx", {"A1": 1})
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as book:
        book.writestr("xl/media/x", bytes(50_000_000))
    refused(path, "zip bomb")


def test_a_document_type(tmp_path: Path) -> None:
    path = save(tmp_path / "doctype.xlsx", {"A1": 1})
    doctype = b'<!DOCTYPE x [<!ENTITY a "aaaa">]><worksheet '
    refused(rewritten(path, "xl/worksheets/sheet1.xml", b"<worksheet ", doctype), "DOCTYPE")


SHEET = "xl/worksheets/sheet1.xml"


@pytest.mark.parametrize("value", ["inf", "-INF", "nan", "1e999", "abc", "1,5"])
def test_a_value_that_is_no_number(tmp_path: Path, value: str) -> None:
    path = save(tmp_path / "value.xlsx", {"B2": 17})
    bad = rewritten(path, SHEET, b"<v>17</v>", f"<v>{value}</v>".encode())
    refused(bad, f'S!B2 holds "{value}", which is no number')


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        (b'<row r="1"', b'<row r="x"', 'r="x" is no number'),
        (b't="n"', b't="s"', None),
        (b'<row r="1"', b'<row r="99999999"', None),
        (b'r="A1" t', b"t", None),
        (b'<row r="1"><c r="A1" t="n">', b'<row r="1048577"><c>', "outside a worksheet"),
        (b'<c r="A1" t="n"><v>17</v>', b'<c r="A1" t="s"><v>x</v>', "no number"),
    ],
)
def test_a_worksheet_with_strange_tags(
    tmp_path: Path, old: bytes, new: bytes, what: str | None
) -> None:
    path = rewritten(save(tmp_path / "tags.xlsx", {"A1": 17}), SHEET, old, new)
    if what is None:
        load(path)
    else:
        refused(path, what)


def test_a_cell_without_an_address_is_the_next_one_of_its_row(tmp_path: Path) -> None:
    path = save(tmp_path / "next.xlsx", {"B4": 1, "C4": 2})
    bare = rewritten(path, SHEET, b' r="C4"', b"")
    assert (2.0, False) == load(bare).get("C4")
    assert (1.0, False) == load(rewritten(path, SHEET, b'<c r="B4"', b"<c")).get("A4")


def test_a_workbook_of_too_many_cells_is_refused_soon(tmp_path: Path) -> None:
    rows = "".join(f'<row r="{n}">{{}}</row>' for n in range(1, 4))
    cells = "<c><v>1</v></c><c><v>2.75</v></c><c><f>A1+1</f><v/></c>" * 450_000
    path = save(tmp_path / "small.xlsx", {"A1": 1})
    target = path.with_name("large.xlsx")
    with zipfile.ZipFile(path) as book, zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as out:
        for name in book.namelist():
            head, _, tail = book.read(name).partition(b"<sheetData>")
            out.writestr(name, head + (
                b"<sheetData>" + rows.format(cells, cells, cells).encode() + tail
                if name == SHEET else b""))  # fmt: skip
    start = time.process_time()
    refused(target, "more than 3,000,000 cells")
    assert time.process_time() - start < 2


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        load(tmp_path / "none.xlsx")


def test_a_link_to_another_workbook_is_told_with_its_cell(tmp_path: Path) -> None:
    found = load(save(tmp_path / "link.xlsx", {"A1": "=[1]Sheet1!A1+1", "A2": "=1+1"}))
    assert (2.0, False) == found.get("A2")
    with pytest.raises(ProgramError, match=r"link.xlsx S!A1.*\n?.*links to other workbooks"):
        found.get("A1")


def test_an_unknown_worksheet_in_a_reference_is_told_with_its_cell(tmp_path: Path) -> None:
    found = load(save(tmp_path / "sheet.xlsx", {"B7": "=Nowhere!A1"}))
    with pytest.raises(ProgramError, match=r'S!B7.*unknown worksheet "Nowhere"'):
        found.get("B7")


def test_a_formula_that_is_too_long(tmp_path: Path) -> None:
    found = load(save(tmp_path / "long.xlsx", {"A1": "=1" + "+1" * 5000}))
    with pytest.raises(ProgramError, match=r"S!A1: this formula has 10,001 characters"):
        found.get("A1")


def test_a_long_formula_that_is_not_too_long(tmp_path: Path) -> None:
    found = load(save(tmp_path / "long.xlsx", {"A1": "=1" + "+1" * 4000}))
    assert (4001.0, False) == found.get("A1")


def test_deep_parentheses(tmp_path: Path) -> None:
    found = load(save(tmp_path / "deep.xlsx", {"A1": "=" + "(" * 3000 + "1" + ")" * 3000}))
    with pytest.raises(ProgramError, match="nested deeper"):
        found.get("A1")


def test_one_stray_cell_at_the_end_of_a_worksheet(tmp_path: Path) -> None:
    cells = {"A1": 1, "A2": 2, "XFD1048576": 3, "B1": "=SUM(A:A)", "B2": "=SUM(1:1048576)-B1",
             "B3": "=COUNTIF(A:A,1)", "B4": "=MATCH(2,A:A,0)"}  # fmt: skip
    found = load(save(tmp_path / "stray.xlsx", {k: v for k, v in cells.items() if k != "B2"}))
    assert (3.0, False) == found.get("B1")
    assert (1.0, False) == found.get("B3")
    assert (2.0, False) == found.get("B4")


def test_a_broken_formula_points_at_its_place(tmp_path: Path) -> None:
    found = load(save(tmp_path / "broken.xlsx", {"C3": "=SUM(1,2"}))
    with pytest.raises(MillstreamError) as caught:
        found.get("C3")
    assert 'broken.xlsx S!C3:1:9: expected ")", got the end' in str(caught.value)
