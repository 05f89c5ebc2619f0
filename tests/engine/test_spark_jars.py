"""Classes that a user brings for Spark, from a command or a project, and how sessions start."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import pytest

import millstream
from millstream.cli.main import main
from millstream.engine.spark import run as spark_run
from millstream.engine.spark import session
from millstream.engine.spark.session import brought_by_user
from millstream.errors import CheckError, Stopped, UsageError

PROGRAM = "output out; input trades(n integer); (out) <- Filter[n >= 0](trades);"


def project(folder: Path, spark: str) -> Path:
    (folder / "a.brook").write_text(PROGRAM)
    (folder / "millstream.toml").write_text(
        f'[stream.trades]\nsource = "trades.csv"\n[node.a]\nbrook = "a.brook"\n{spark}'
    )
    (folder / "mine.jar").write_bytes(b"")
    return folder


def test_settings_of_spark_name_them(tmp_path: Path) -> None:
    jar = tmp_path / "a.jar"
    jar.write_bytes(b"")
    brought = brought_by_user([str(jar), "https://host/b.jar"], ["g:a:1", "g:b:2"])
    assert {
        "spark.jars": f"{jar},https://host/b.jar", "spark.jars.packages": "g:a:1,g:b:2"
    } == brought  # fmt: skip
    assert {} == brought_by_user([], [])
    with pytest.raises(UsageError, match="there is no jar"):
        brought_by_user(["none.jar"], [])
    with pytest.raises(UsageError, match="is no package"):
        brought_by_user([], ["g:a"])


@pytest.mark.parametrize("is_on_command", [False, True])
def test_a_project_and_a_command_bring_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_on_command: bool
) -> None:
    given: list[dict[str, object]] = []

    def started(*_: object, brought: dict[str, object], **__: object) -> None:
        given.append(brought)
        raise UsageError("as far as this")

    monkeypatch.setattr(spark_run, "start_session", started)
    folder = project(tmp_path, '[spark]\njars = ["mine.jar"]\npackages = ["g:a:1"]\n')
    (folder / "trades.csv").write_text("_time,n\n1,1\n")
    asked = ["run", str(folder)]
    if is_on_command:
        (folder / "other.jar").write_bytes(b"")
        asked += ["--jars", str(folder / "other.jar")]
    assert 2 == main([*asked, "--engine", "spark"])
    name = "other.jar" if is_on_command else "mine.jar"
    assert [{"spark.jars": str(folder / name), "spark.jars.packages": "g:a:1"}] == given


def test_what_a_project_says_of_spark_is_checked(tmp_path: Path) -> None:
    for text, message in (('[spark]\njars = "a.jar"\n', "a list of texts"),
                          ('[spark]\njar = ["a.jar"]\n', 'unknown.*"jar"')):  # fmt: skip
        with pytest.raises(CheckError, match=message):
            millstream.compile(project(tmp_path, text))


def test_a_session_starts_also_before_its_checkpoint_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It starts beside what plans batches, which makes the folder when it comes to it."""
    was_there: list[bool] = []

    def settings(_: object, checkpoint: Path, *__: object, **___: object) -> NoReturn:
        was_there.append(checkpoint.is_dir())
        raise Stopped("far enough")

    monkeypatch.setattr(session, "find_java", object)
    monkeypatch.setattr(session, "java_environment", lambda _: {})
    monkeypatch.setattr(session, "_settings", settings)
    with pytest.raises(Stopped):
        session.start_session("local[1]", tmp_path / "new" / "state", 1)
    assert [True] == was_there
