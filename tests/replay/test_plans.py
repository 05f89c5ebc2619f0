"""What becomes of every example at every stage, byte for byte.

`make replay-plans` compares; `make replay-plans UPDATE=1` or `make golden` writes the texts
anew, for you to read the difference. A change that only moves code must not show here.
"""

from __future__ import annotations

import difflib
import os
from pathlib import Path

import pytest

from millstream.explain import STAGES
from tests.examples.folders import example_folders, name_of, program_of
from tests.replay.texts import texts, without_modules

KEPT = Path(__file__).parent / "kept"
SHOWN = 60


def _path(example: str, stage: str) -> Path:
    return KEPT / f"{example}.{stage}.txt"


def _difference(path: Path, text: str) -> str:
    """Where a text is not the kept one, as a diff of some lines."""
    kept = path.read_text().splitlines() if path.exists() else []
    name = str(path.relative_to(KEPT))
    lines = list(difflib.unified_diff(kept, text.splitlines(), name, "now", lineterm="", n=1))
    more = [f"... {len(lines) - SHOWN} lines more"] if len(lines) > SHOWN else []
    return "\n".join(lines[:SHOWN] + more)


@pytest.mark.parametrize("folder", example_folders(), ids=name_of)
def test_golden_plans_of_example(folder: Path) -> None:
    example = name_of(folder)
    now = texts(program_of(folder))
    if os.environ.get("MILLSTREAM_UPDATE_GOLDEN"):
        _path(example, "").parent.mkdir(parents=True, exist_ok=True)
        for stage, text in now.items():
            _path(example, stage).write_text(text)
    differences = [_difference(_path(example, stage), now[stage]) for stage in STAGES]
    if any(differences):
        pytest.fail("\n".join(filter(None, differences)), pytrace=False)


def test_nothing_is_kept_of_examples_that_are_gone() -> None:
    expected = {_path(name_of(f), stage) for f in example_folders() for stage in STAGES}
    assert expected == set(KEPT.rglob("*.txt"))


def test_texts_name_no_module_and_no_folder_of_this_machine() -> None:
    root = str(Path(__file__).parents[2])
    for path in KEPT.rglob("*.txt"):
        text = path.read_text()
        assert "millstream." not in text, path
        assert root not in text, path


def test_a_moved_function_leaves_the_text_of_a_loop_as_it_was() -> None:
    loop = "def run():\n    pass\n"
    before = f"from millstream.a import y, x\nfrom millstream.b.c import z\n\n{loop}"
    after = f"from millstream.d import z, x, y\n\n{loop}"
    assert f"# calls x, y, z\n\n{loop}" == without_modules(before)
    assert without_modules(before) == without_modules(after)
