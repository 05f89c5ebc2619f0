"""Ctrl-C at many moments of real processes, each of which interrupts itself at one of them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
output out, more; input in(n integer);
(a, more) <- Duplicate(in);
(out) <- Filter[n >= 0](a);
"""

#: What is done before the command runs, so that it is interrupted at some moment.
MOMENTS = {
    "import": """
        class Finder:
            def find_spec(name, path, target=None):
                name == "pyarrow" and interrupt()
        sys.meta_path.insert(0, Finder)
        """,
    "reading": """
        from millstream.connectors import ordered
        ordered.in_order = interrupt
        """,
    "a finaliser": """
        from millstream.connectors import ordered
        class Dying:
            def __del__(self):
                interrupt()
        def reading(reader, input_, before=ordered.in_order):
            Dying()
            import time
            time.sleep(60)
        ordered.in_order = reading
        """,
    "another error": """
        from millstream.connectors import ordered
        def reading(*_):
            try:
                interrupt()
            except KeyboardInterrupt:
                raise RuntimeError("not ready")
        ordered.in_order = reading
        """,
    "swallowed": """
        from millstream.connectors import ordered
        def reading(*args, before=ordered.in_order):
            try:
                interrupt()
            except KeyboardInterrupt:
                pass
            return before(*args)
        ordered.in_order = reading
        """,
    "swallowed for good": """
        from millstream.connectors import ordered
        def reading(*_):
            import time
            for _ in range(2):
                try:
                    interrupt()
                except KeyboardInterrupt:
                    pass
                time.sleep(60)
        ordered.in_order = reading
        """,
    "code of a text": """
        from millstream.connectors import ordered
        def reading(*_):
            exec("interrupt()", {"interrupt": interrupt})
        ordered.in_order = reading
        """,
    "the first import": """
        class Finder:
            def find_spec(name, path, target=None):
                name == "millstream.interrupts" and interrupt()
        sys.meta_path.insert(0, Finder)
        """,
    "a library that does not say so": """
        class Finder:
            def find_spec(name, path, target=None):
                if name == "millstream.cli.main":
                    try:
                        interrupt()
                    except KeyboardInterrupt:
                        raise ImportError("a bad install")
        sys.meta_path.insert(0, Finder)
        """,
    "pressed again": """
        from millstream.connectors import ordered
        def reading(*_):
            try:
                interrupt()
            finally:
                interrupt()
        ordered.in_order = reading
        """,
}
SCRIPT = """
import signal, sys

def interrupt(*_):
    signal.raise_signal(signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)
from millstream.__main__ import main
{moment}
sys.exit(main())
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "job.brook").write_text(PROGRAM)
    (tmp_path / "in.csv").write_text("_time,n\n1,1\n2,2\n")
    for name in ("out.csv", "more.csv"):
        (tmp_path / name).write_text("as it was")
    return tmp_path


def interrupted(folder: Path, moment: str, *more: str) -> tuple[int, str]:
    lines = moment.strip("\n").splitlines()
    indent = len(lines[0]) - len(lines[0].lstrip())
    script = SCRIPT.format(moment="\n".join(line[indent:] for line in lines))
    outputs = ["--out", "out=out.csv", "--out", "more=more.csv"]
    done = subprocess.run(
        [sys.executable, "-c", script, "run", "job.brook", "--engine", "local", *outputs, *more],
        cwd=folder, env=os.environ | {"MILLSTREAM_SMALL": "inf"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.returncode, done.stderr


@pytest.mark.parametrize("moment", MOMENTS.values(), ids=MOMENTS)
def test_whenever_it_comes_nothing_is_published(folder: Path, moment: str) -> None:
    there = sorted(path.name for path in folder.iterdir())
    assert interrupted(folder, moment) == (130, "stopped\n")
    assert sorted(path.name for path in folder.iterdir()) == there
    assert {(folder / name).read_text() for name in ("out.csv", "more.csv")} == {"as it was"}


def test_with_a_checkpoint_it_stops_at_once_too_before_anything_runs(folder: Path) -> None:
    moment = """
        from millstream import api
        def job(*_, **__):
            interrupt()
            import time
            time.sleep(60)
        api.Compiled._job = job
        """
    assert interrupted(folder, moment, "--checkpoint", "kept") == (130, "stopped\n")
    assert {(folder / name).read_text() for name in ("out.csv", "more.csv")} == {"as it was"}


def test_what_is_being_published_is_published_as_a_whole(folder: Path) -> None:
    moment = """
        from millstream.connectors import write
        from pathlib import Path
        def replace(self, target, before=Path.replace):
            interrupt()
            return before(self, target)
        Path.replace = replace
        """
    assert interrupted(folder, moment) == (130, "stopped\n")
    assert sorted(p.name for p in folder.iterdir()) == [
        "in.csv",
        "job.brook",
        "more.csv",
        "out.csv",
    ]
    assert (
        (folder / "out.csv").read_text()
        == (folder / "more.csv").read_text()
        == "_time,n\n1,1\n2,2\n"
    )
