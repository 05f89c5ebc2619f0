"""What the examples are said to give is what plain Python works out."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.languages.cql.recompute import EXAMPLES, Row, read

ROOT = Path(__file__).parents[3] / "examples" / "cql"


def test_every_example_is_recomputed() -> None:
    assert set(EXAMPLES) == {p.name for p in ROOT.iterdir()}


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_expected_output_is_what_plain_python_says(name: str) -> None:
    def said(path: Path) -> list[Row]:
        return [tuple(None if v == "" else v for v in row.values()) for row in read(path)]

    folder = ROOT / name
    expected = EXAMPLES[name](folder)
    files = {path.stem: said(path) for path in (folder / "expected").glob("*.csv")}
    assert expected == files
