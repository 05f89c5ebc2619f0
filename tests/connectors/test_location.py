from __future__ import annotations

from pathlib import Path

import pytest

from millstream.connectors.location import Format, matching_files, parse_location
from millstream.connectors.settings import GeneratorSettings
from millstream.errors import UsageError


def message(text: str, base: Path) -> str:
    with pytest.raises(UsageError) as caught:
        matching_files(parse_location(text, base))
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "format_"),
    [
        ("x.csv", Format.CSV),
        ("X.CSV", Format.CSV),
        ("x.csv.gz", Format.CSV),
        ("x.jsonl", Format.JSONL),
        ("x.ndjson.gz", Format.JSONL),
        ("trades/*.parquet", Format.PARQUET),
        ("x.pq", Format.PARQUET),
        ("csv:x.dat", Format.CSV),
        ("jsonl:x.csv", Format.JSONL),
        ("odd:name.csv", Format.CSV),
        ("-", Format.CSV),
        ("jsonl:-", Format.JSONL),
        ("generator", Format.GENERATOR),
    ],
)
def test_the_format_is_told_by_name_or_prefix(text: str, format_: Format, tmp_path: Path) -> None:
    assert format_ is parse_location(text, tmp_path).format


def test_a_dash_is_standard_input_or_output(tmp_path: Path) -> None:
    assert parse_location("jsonl:-", tmp_path).path is None


def test_generator_settings_are_read(tmp_path: Path) -> None:
    text = "generator:rows=1_000,seed=7,start=2024-01-01,interval=5 ms"
    expected = GeneratorSettings(1000, 7, 1_704_067_200_000_000, 5_000)
    assert expected == parse_location(text, tmp_path).generator


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "x.dat",
            (
                'cannot tell the format of "x.dat"\n'
                "    end its name in .parquet, .csv or .jsonl, or say it, such as csv:x.dat"
            ),
        ),
        (
            "json:-",
            (
                'unknown format "json"\n'
                "    formats are: parquet, csv, jsonl, raw, lines, generator, spark. "
                'Did you mean "jsonl"?'
            ),
        ),
        ("", "expected a file, got an empty name"),
        ("csv:", "csv:: expected a file, got an empty name"),
        ("parquet:-", "Parquet needs a file\n    csv:- and jsonl:- take none"),
        (
            "generator:row=5",
            (
                'unknown setting "row" of the generator\n'
                "    settings are: rows, seed, start, interval, size, rate, columns. "
                'Did you mean "rows"?'
            ),
        ),
        ("generator:rows", 'expected a setting such as rows=1000, got "rows"'),
        (
            "generator:rows=x",
            'the generator\'s "rows": expected an integer, got "x"',
        ),
        ("generator:rows=-1", 'the generator\'s "rows" must not be negative'),
    ],
)
def test_what_is_wrong_with_a_location(text: str, expected: str, tmp_path: Path) -> None:
    assert expected == message(text, tmp_path)


def test_a_missing_file_is_told_with_the_near_miss(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "trades.csv").touch()
    (tmp_path / "data" / ".hidden.csv").touch()
    expected = 'there is no file "data/trads.csv"\n    Did you mean "data/trades.csv"?'
    assert expected == message("data/trads.csv", tmp_path)


def test_a_missing_file_without_near_miss_lists_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "b.csv").touch()
    (tmp_path / "a.csv").touch()
    expected = 'there is no file "quotes.csv"\n    there are: a.csv, b.csv'
    assert expected == message("quotes.csv", tmp_path)


def test_a_missing_folder_is_told(tmp_path: Path) -> None:
    assert 'dta/x.csv: there is no folder "dta"' == message("dta/x.csv", tmp_path)


def test_a_pattern_that_matches_nothing_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.csv").touch()
    expected = 'no file matches "*.parquet"\n    there are: a.csv'
    assert expected == message("*.parquet", tmp_path)
    assert 'no file matches "*/x.parquet"' == message("*/x.parquet", tmp_path)


def test_a_pattern_gives_files_by_name(tmp_path: Path) -> None:
    for name in ("b.csv", "a.csv", "c.txt", ".d.csv"):
        (tmp_path / name).touch()
    (tmp_path / "folder.csv").mkdir()
    files = matching_files(parse_location("*.csv", tmp_path))
    assert ["a.csv", "b.csv"] == [f.name for f in files]


def test_a_file_whose_name_looks_like_a_pattern_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "a[1].csv").touch()
    (tmp_path / "a1.csv").touch()
    assert ["a[1].csv"] == [f.name for f in matching_files(parse_location("a[1].csv", tmp_path))]


def test_a_folder_stands_for_its_files_of_one_format(tmp_path: Path) -> None:
    for name in ("b.csv", "a.csv.gz", "README"):
        (tmp_path / name).touch()
    location = parse_location(f"{tmp_path}/", tmp_path)
    assert Format.CSV is location.format
    assert ["a.csv.gz", "b.csv"] == [f.name for f in matching_files(location)]


def test_a_folder_of_several_formats_must_be_told_which(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "a.csv").touch()
    (tmp_path / "d" / "a.parquet").touch()
    expected = (
        'the folder "d" holds files of several formats: csv, parquet\n'
        "    take one of them, such as csv:d"
    )
    assert expected == message("d", tmp_path)
    assert ["a.csv"] == [f.name for f in matching_files(parse_location("csv:d", tmp_path))]


def test_a_folder_without_data_is_told(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "notes.md").touch()
    expected = 'the folder "d" holds no Parquet, CSV or JSON Lines file\n    it has: notes.md'
    assert expected == message("d", tmp_path)


def test_notes_beside_data_are_no_data(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    for name in ("README.txt", "a.csv"):
        (tmp_path / "d" / name).touch()
    location = parse_location("d", tmp_path)
    assert (Format.CSV, ["a.csv"]) == (location.format, [p.name for p in matching_files(location)])


def test_files_are_named_as_the_user_wrote_them(tmp_path: Path) -> None:
    relative = parse_location("d/*.csv", tmp_path)
    absolute = parse_location(f"{tmp_path}/d/*.csv", tmp_path)
    path = tmp_path / "d" / "x.csv"
    assert "d/x.csv" == relative.name_of(path)
    assert str(path) == absolute.name_of(path)
