"""`millstream doctor`: is this machine ready, and if not, which command mends it?

Versions are read from package metadata: importing numba or pyspark takes seconds and may
be the very thing that fails.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import socket
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib import metadata
from operator import eq, ge, gt, le, lt, ne
from pathlib import Path

from millstream.cache import cache_directory
from millstream.engine.spark.archive import archive_path, cannot_be_made
from millstream.engine.spark.java import CACHE_FIX, Java, find_java
from millstream.errors import SetupError

OLDEST_PYTHON = (3, 11)
LEAST_FREE_BYTES = 10**9
RESOLVER_PATIENCE_SECONDS = 0.5
_ORDERS = {"<": lt, "<=": le, ">": gt, ">=": ge, "==": eq, "!=": ne}

# package, versions that work, why others do not
REQUIREMENTS = (
    ("pyspark", ">=4.3", "Millstream uses what Spark has since 4.3"),
    ("pandas", "<3", "pyspark 4.3 does not support pandas 3"),
    ("protobuf", "", "Spark's stateful operators need it"),
    ("pyarrow", ">=19", "every kernel works on Arrow columns"),
)


#: What only Spark needs.
_OF_SPARK = frozenset(("pyspark", "pandas", "protobuf", "Java"))


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at; `fix` is the command that mends a fault."""

    name: str
    ok: bool
    found: str
    fix: str | None = None


def run(arguments: argparse.Namespace) -> int:
    """Print what was found; 0 if all is well, 1 if something needs mending."""
    checks = examine()
    if arguments.format == "json":
        print(json.dumps([asdict(check) for check in checks], indent=2))
    else:
        print("\n".join(_table(checks)))
        missing = {check.name for check in checks if not check.ok}
        if missing & _OF_SPARK:
            print(
                "What is missing is for Spark: pip install 'millstream[spark]'. "
                "Without it programs run on --engine local."
                if missing <= _OF_SPARK
                else "Without Spark programs run on --engine local."
            )
    return 0 if all(check.ok for check in checks) else 1


def examine() -> list[Check]:
    """Look at everything; a check that fails itself is a fault, never a traceback."""
    return [check for examination in EXAMINATIONS for check in _guarded(examination)]


def installed_version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def is_within(version: str, specifier: str) -> bool:
    """Whether `4.3.0` satisfies `>=4.3,<5`; enough of the packaging rules for our table."""
    ours = _numbers(version)
    for operator, bound in re.findall(r"(<=|>=|==|!=|<|>)\s*([\d.]+)", specifier):
        theirs = _numbers(bound)
        if not _ORDERS[operator](ours, theirs):
            return False
    return True


def _numbers(version: str) -> tuple[int, ...]:
    release = re.match(r"[\d.]*", version)
    numbers = [int(part) for part in (release[0] if release else "").split(".") if part]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def _guarded(examination: Callable[[], Iterator[Check]]) -> list[Check]:
    try:
        return list(examination())
    except Exception as fault:  # noqa: BLE001 - a doctor must not fall ill
        name = examination.__name__.removeprefix("_examine_").replace("_", " ")
        description = f"cannot be examined: {type(fault).__name__}: {fault}"
        return [Check(name, ok=False, found=description, fix="make clean setup")]


def _examine_python() -> Iterator[Check]:
    version = ".".join(str(number) for number in sys.version_info[:3])
    ok = sys.version_info[:2] >= OLDEST_PYTHON
    fix = "rm -rf .venv && make PYTHON=/path/to/python3.11 setup"
    yield Check("Python", ok, f"{version} at {sys.executable}", None if ok else fix)


def _examine_java() -> Iterator[Check]:
    try:
        java = find_java()
    except SetupError as fault:
        (cause,) = fault.faults
        fix = (cause.hint or "").removeprefix("run: ")
        yield Check("Java", ok=False, found=cause.message, fix=fix)
    else:
        description = f"{java.version} from {java.origin}, at {java.home}"
        yield Check("Java", ok=True, found=description)
        if installed_version("pyspark"):
            yield _start_of_spark(java)


def _start_of_spark(java: Java) -> Check:
    """Not a fault: without its archive Spark works, and starts slower."""
    if archive_path(java).exists():
        return Check("start of Spark", ok=True, found="quick, from an archive of its classes")
    if cannot_be_made(java):
        description = "slow; an archive of its classes could not be made for this Java"
        return Check("start of Spark", ok=True, found=description)
    command = f"{shlex.quote(sys.executable)} -m millstream.engine.spark.archive"
    return Check("start of Spark", ok=True, found=f"slow; quicker after: {command}")


def _examine_worker_python() -> Iterator[Check]:
    declared = os.environ.get("PYSPARK_PYTHON")
    name = "Python of workers"
    if not declared:
        yield Check(name, ok=True, found="the same as this one")
    elif _is_this_python(declared):
        yield Check(name, ok=True, found=f"PYSPARK_PYTHON is this one: {declared}")
    else:
        description = f"PYSPARK_PYTHON is {declared}, not {sys.executable}"
        yield Check(name, ok=False, found=description, fix="unset PYSPARK_PYTHON")


def _is_this_python(command: str) -> bool:
    path = shutil.which(command)
    if path is None:
        return False
    # Every virtual environment links to the same file; only the folder tells them apart.
    theirs, ours = Path(path).absolute(), Path(sys.executable)
    return theirs.parent.resolve() == ours.parent.resolve() and theirs.samefile(ours)


def _examine_packages() -> Iterator[Check]:
    for package, specifier, reason in REQUIREMENTS:
        yield _examine_package(package, specifier, reason)
    yield _examine_package("numba", "", "kernels are compiled with it")
    yield _examine_package("numpy", _numpy_for_numba(), "the installed numba needs it")


def _examine_package(package: str, specifier: str, reason: str) -> Check:
    version = installed_version(package)
    if version is not None and is_within(version, specifier):
        return Check(package, ok=True, found=version)
    requirement = f"{package}{specifier}"
    trouble = "not installed" if version is None else f"{version}, not {requirement}"
    fix = f"{shlex.quote(sys.executable)} -m pip install {shlex.quote(requirement)}"
    return Check(package, ok=False, found=f"{trouble}: {reason}", fix=fix)


def _numpy_for_numba() -> str:
    requirements = metadata.requires("numba") if installed_version("numba") else None
    for requirement in requirements or ():
        if match := re.match(r"numpy\s*\(?([<>=!\d.,\s]*)", requirement):
            return match[1].replace(" ", "")
    return ""


def _examine_disk() -> Iterator[Check]:
    yield _examine_room("disk, working folder", Path.cwd, "cd /a/folder/with/room")
    yield _examine_room(
        "disk, temporary files",
        lambda: Path(tempfile.gettempdir()),
        "export TMPDIR=/a/folder/with/room",
    )


def _examine_room(name: str, locate: Callable[[], Path], fix: str) -> Check:
    try:
        folder = locate()
        free = shutil.disk_usage(folder).free
    except OSError as fault:
        return Check(name, ok=False, found=f"cannot be used: {fault}", fix=fix)
    ok = free >= LEAST_FREE_BYTES
    return Check(name, ok, f"{free / 10**9:.1f} GB free at {folder}", None if ok else fix)


def _examine_cache() -> Iterator[Check]:
    folder = cache_directory()
    nearest = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    ok = nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK)
    description = f"{'can' if ok else 'cannot'} write to {folder}"
    yield Check("cache", ok, description, None if ok else CACHE_FIX)


def _examine_network() -> Iterator[Check]:
    yield _examine_loopback_port()
    mend = "echo '127.0.0.1 localhost' | sudo tee -a /etc/hosts"
    yield _examine_host("localhost", "localhost", mend)
    # Spark looks up the name of the machine unless it is told an address.
    if "SPARK_LOCAL_IP" not in os.environ:
        mend = "export SPARK_LOCAL_IP=127.0.0.1"
        yield _examine_host("host name", socket.gethostname(), mend)


def _examine_loopback_port() -> Check:
    try:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            description = f"can listen on 127.0.0.1, for example on {probe.getsockname()[1]}"
    except OSError as fault:
        description = f"cannot listen on 127.0.0.1: {fault}"
        return Check("ports", ok=False, found=description, fix="sudo ip link set lo up")
    return Check("ports", ok=True, found=description)


def _examine_host(name: str, host: str, fix: str) -> Check:
    address = _resolve(host)
    if address is None:
        return Check(name, ok=False, found=f"{host} does not resolve", fix=fix)
    return Check(name, ok=True, found=f"{host} is {address}")


def _resolve(host: str) -> str | None:
    """The address of a host; None also if the resolver takes too long to say."""
    addresses: list[str] = []

    def ask() -> None:
        try:
            addresses.append(socket.gethostbyname(host))
        except (OSError, UnicodeError):
            return

    # A resolver cannot be told to hurry; a daemon thread can be left behind.
    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(RESOLVER_PATIENCE_SECONDS)
    return addresses[0] if addresses else None


def _table(checks: list[Check]) -> Iterator[str]:
    width = max(len(check.name) for check in checks)
    for check in checks:
        yield f"{'ok   ' if check.ok else 'FAULT'}  {check.name:<{width}}  {check.found}"
        if check.fix:
            yield f"       {'':<{width}}  mend it with: {check.fix}"


EXAMINATIONS: tuple[Callable[[], Iterator[Check]], ...] = (
    _examine_python,
    _examine_java,
    _examine_worker_python,
    _examine_packages,
    _examine_disk,
    _examine_cache,
    _examine_network,
)
