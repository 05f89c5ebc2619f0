"""What is kept of plans that are deleted: as much as it takes to read the log again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from millstream.engine import history
from millstream.engine.storage.files import LocalFiles
from millstream.engine.storage.records import write_record


def piece(path: str, first: int, last: int) -> list[Any]:
    return [path, first, last, first + 1, last + 1, last - first, first]


def plan(files: LocalFiles, number: int, one: list[Any], *silent: str) -> None:
    pieces = {"a": [one] if one[0] == "a" else [], "b": [one] if one[0] == "b" else []}
    record = {"pieces": pieces, "refused": {"a": [], "b": []},
              "silent": {name: name in silent for name in ("a", "b")}}  # fmt: skip
    write_record(files, f"sources/{number:09}.plan", record)


def test_batches_of_a_file_that_grows_are_one_piece(tmp_path: Path) -> None:
    files = LocalFiles(tmp_path)
    for number in range(10):
        plan(files, number, piece("a", number, number + 1))
    assert [{"a": [piece("a", 0, 10)], "b": []}] == [
        one.pieces for one in history.history(files, 10) or ()
    ]
    assert [{"a": [piece("a", 0, 7)], "b": []}] == [
        one.pieces for one in history.history(files, 7) or ()
    ]


def test_where_an_input_goes_on_that_was_silent_time_has_come_further(tmp_path: Path) -> None:
    files = LocalFiles(tmp_path)
    plan(files, 0, piece("a", 0, 1), "b")
    plan(files, 1, piece("a", 1, 2), "b")  # nothing came of b, so its silence is one
    plan(files, 2, piece("b", 0, 1))
    plan(files, 3, piece("a", 2, 3), "a", "b")
    plan(files, 4, piece("a", 3, 4), "a", "b")  # of a run that came after the end of another
    stretches = history.history(files, 5) or []
    assert [{"a": [piece("a", 0, 2)], "b": []},
            {"a": [piece("a", 2, 3)], "b": [piece("b", 0, 1)]},
            {"a": [piece("a", 3, 4)], "b": []}] == [one.pieces for one in stretches]  # fmt: skip
    assert [["b"], ["a", "b"], ["a", "b"]] == [
        [name for name, is_silent in one.silent.items() if is_silent] for one in stretches
    ]


@pytest.mark.parametrize("files_per_batch", [1, 100])
def test_plans_that_are_gone_are_known_all_the_same(tmp_path: Path, files_per_batch: int) -> None:
    files, other = LocalFiles(tmp_path / "folded"), LocalFiles(tmp_path / "whole")
    for number in range(30):
        for here in (files, other):
            pieces = [piece(f"{number}-{n}", 0, 5) for n in range(files_per_batch)]
            record = {"pieces": {"a": pieces}, "refused": {"a": []}, "silent": {"a": False}}
            write_record(here, f"sources/{number:09}.plan", record)
        if number % 7 == 6:
            history.fold(files, number - 2)
            for old in range(number - 2):
                files.delete(f"sources/{old:09}.plan")
    folded, whole = history.history(files, 30), history.history(other, 30)
    assert whole == history.together(folded or [])
    kept = [name for name in files.names("sources") if name.endswith(history.HISTORY)]
    assert len(kept) == (1 if files_per_batch == 1 else 4)


def test_what_is_missing_is_not_guessed(tmp_path: Path) -> None:
    files = LocalFiles(tmp_path)
    for number in range(6):
        plan(files, number, piece("a", number, number + 1))
    files.delete("sources/000000002.plan")
    assert history.history(files, 6) is None
    history.fold(files, 5)
    assert history.history(files, 6) is None


def test_what_was_to_be_replaced_when_a_run_was_killed_is_not_counted_twice(tmp_path: Path) -> None:
    files = LocalFiles(tmp_path)
    for number in range(400):
        plan(files, number, piece(f"a{number}", 0, 1))
    whole = history.history(files, 400)
    history.fold(files, 10)
    replaced = "sources/000000010.history"
    content = files.read(replaced)
    for until in (300, 350):  # full, so that nothing is put to it any more; and begun again
        history.fold(files, until)
        files.write(replaced, content)
    for old in range(350):
        files.delete(f"sources/{old:09}.plan")
    assert whole == history.history(files, 400)


def test_a_long_history_is_not_read_again_with_every_batch(tmp_path: Path) -> None:
    read: list[str] = []

    class Watched(LocalFiles):
        def read(self, name: str) -> bytes:
            read.append(name)
            return super().read(name)

    files = Watched(tmp_path)
    for number in range(20):
        pieces = [piece(f"{number}-{n}", 0, 5) for n in range(history.PIECES_PER_FILE)]
        record = {"pieces": {"a": pieces}, "refused": {"a": []}, "silent": {"a": False}}
        write_record(files, f"sources/{number:09}.plan", record)
        read.clear()
        history.fold(files, number + 1)
        assert len([name for name in read if name.endswith(history.HISTORY)]) <= 2
