"""The tool that compares with the values kept in workbooks."""

from __future__ import annotations

import zipfile
from pathlib import Path

from tests.languages.sheets.books import save
from tests.languages.sheets.corpus import compared, guarded


def with_values(path: Path, **values: str) -> Path:
    """The workbook with values kept in the cells of its formulas, as Excel leaves them."""
    target = path.with_name("kept.xlsx")
    with zipfile.ZipFile(path) as book, zipfile.ZipFile(target, "w") as out:
        for name in book.namelist():
            data = book.read(name)
            for cell, kept in values.items():
                old = f'<c r="{cell}"><f>'.encode()
                if name == "xl/worksheets/sheet1.xml" and old in data:
                    before, _, after = data.partition(old)
                    data = before + old + after.replace(b"<v />", f"<v>{kept}</v>".encode(), 1)
            out.writestr(name, data)
    return target


def test_what_differs_is_told_where_it_begins(tmp_path: Path) -> None:
    path = save(
        tmp_path / "b.xlsx", {"A1": 2, "B1": "=A1+1", "B2": "=A1*2", "B3": "=B2+1", "B4": "=NOW()"}
    )
    found = compared(with_values(path, B1="3", B2="5", B3="6", B4="44000"))
    assert (3, 1, 1) == (found.compared, found.agreed, found.following)
    assert [("S!B2", "A1*2", 4.0, 5.0)] == found.differing
    assert ["S!B4"] == [place for place, _ in found.refused]


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    path = tmp_path / "no.xlsx"
    path.write_text("hello")
    assert "this is not a workbook" in guarded(path).problem
