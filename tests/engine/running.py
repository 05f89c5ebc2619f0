"""Jobs in processes of their own: started, watched, killed, and compared.

Rows are compared one by one and in order, never as sets: lost = duplicated = wrong = 0.
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from millstream.engine.points import VARIABLE

#: On a busy machine Spark takes long to start.
PATIENCE = 400.0

#: Windows, groups, one counter that sees every row in order, and what is newest by key.
PROGRAM = """
output sums, last;
input trades(symbol text, volume integer, note text),
      prices(symbol text, price number, note text);
variable $n(n integer = 0);
(plain)        <- Map[symbol, volume](trades);
(recent, $w)   <- Range[50 us](plain, $w);
(totals, $t)   <- Aggregate[by symbol; volume = sum(volume), n = count()](recent, $t);
(changes, $i)  <- Istream(totals, $i);
(sums, $n)     <- Fold[set $n.n = $n.n + 1; emit symbol, volume, n, seen = $n.n](changes, $n);
(last, $l)     <- Latest[by symbol](prices, $l);
"""
INPUTS = {"trades": "volume", "prices": "price"}
OUTPUTS = ("sums", "last")


@dataclass(frozen=True)
class Process:
    """A process as /proc tells of it."""

    pid: int
    parent: int
    session: int
    command: str

    @property
    def is_java(self) -> bool:
        return "/java " in f"{self.command} "


def processes() -> Iterator[Process]:
    """All that are alive; the dead that nobody has waited for do not count."""
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            status = (folder / "stat").read_text()
            words = (folder / "cmdline").read_bytes().split(b"\0")
        except (FileNotFoundError, ProcessLookupError):
            continue
        # The name in brackets may hold anything; what comes after it does not.
        state, parent, _, session = status.rpartition(")")[2].split()[:4]
        if state not in "ZX":
            command = b" ".join(words).decode(errors="replace")
            yield Process(int(folder.name), int(parent), int(session), command)


def of_session(session: int) -> list[Process]:
    """Python's workers leave the process group of the driver, but not its session."""
    return [p for p in processes() if p.session == session]


def workers_among(some: Iterable[Process]) -> list[Process]:
    """Python processes that run tasks: forks of a daemon."""
    known = {p.pid: p for p in some}
    return [
        p
        for p in known.values()
        if p.command.endswith("pyspark.worker ")
        and p.parent in known
        and known[p.parent].command == p.command
    ]


def wait_for(what: str, condition: Callable[[], bool], seconds: float = PATIENCE) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited {seconds} s for {what}"
        time.sleep(0.02)


@dataclass
class Running:
    """Mutable: a run of the command line, in a session of its own."""

    process: subprocess.Popen[bytes]
    log: Path

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def is_over(self) -> bool:
        return self.process.poll() is not None

    def errors(self) -> str:
        return self.log.read_text(errors="replace")

    def progress(self) -> list[dict[str, Any]]:
        """What `--progress json` has told so far, in whole lines."""
        lines = self.errors().split("\n")[:-1]
        return [json.loads(line) for line in lines if line.startswith("{")]

    def finish(self, seconds: float = PATIENCE) -> int:
        """Wait for the end; answers the exit status."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill_all()
            raise AssertionError(f"still running after {seconds} s:\n{self.errors()}") from None

    def succeed(self, seconds: float = PATIENCE) -> Running:
        assert 0 == self.finish(seconds), self.errors()
        return self

    def interrupt(self) -> None:
        """Ctrl-C on a terminal goes to the whole group."""
        os.killpg(self.pid, signal.SIGINT)

    def kill_driver(self) -> None:
        """Only the driver; what it has started must notice by itself."""
        self.process.kill()
        self.process.wait()

    def kill_all(self) -> None:
        """As if the machine had stopped."""
        for one in of_session(self.pid):
            try:
                os.kill(one.pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self.process.wait()

    def left(self) -> list[str]:
        return [p.command[:120] for p in of_session(self.pid)]


@dataclass
class Commands:
    """Runs in a folder; those that are still there at the end are killed."""

    folder: Path
    started: list[Running] = field(default_factory=list)

    def start(self, *arguments: str, environment: Mapping[str, str] | None = None) -> Running:
        log = self.folder / f"errors-{len(self.started)}.txt"
        command = [sys.executable, "-m", "millstream.cli.main", "run", *arguments]
        with log.open("wb") as errors:
            process = subprocess.Popen(
                command, cwd=self.folder, start_new_session=True, stdin=subprocess.DEVNULL,
                stderr=errors, stdout=errors, env={**os.environ, **(environment or {})},
            )  # fmt: skip
        running = Running(process, log)
        self.started.append(running)
        return running

    def close(self) -> None:
        for running in self.started:
            running.kill_all()


@dataclass
class Job:
    """The program above on files in a folder, with one kind of outputs."""

    commands: Commands
    sinks: str
    batch_bytes: int
    engine: str = "spark"
    more: tuple[str, ...] = ()
    pipes: list[int] = field(default_factory=list)

    @property
    def folder(self) -> Path:
        return self.commands.folder

    @property
    def checkpoint(self) -> Path:
        return self.folder / "checkpoint"

    @property
    def kept(self) -> str:
        """What the results of runs with a checkpoint are called; those without are `local`."""
        return "spark" if self.engine == "spark" else "kept"

    def arguments(self, engine: str, label: str) -> list[str]:
        given = ["job.brook", "--engine", engine]
        for name in INPUTS:
            given += ["--in", f"{name}={name}/"]
        for name in OUTPUTS:
            given += ["--out", f"{name}={self.place(label, name)}"]
        return given

    def place(self, label: str, output: str) -> str:
        return f"{label}-{output}{'/' if self.sinks == 'folder' else '.csv'}"

    def start(
        self, kill_at: str | None = None, *, hold: bool = False, more: Sequence[str] = ()
    ) -> Running:
        """Start on the checkpoint; `kill_at` is a point and a version, such as `mid-task@3`.

        To be held there instead is to wait for a word from a pipe, which nobody says.
        """
        environment = {"MILLSTREAM_BATCH_BYTES": str(self.batch_bytes)}
        if kill_at is not None:
            environment[VARIABLE] = f"{kill_at}:{self.armed}"
        if hold:
            os.mkfifo(self.armed)
        given = self.arguments(self.engine, self.kept)
        given += ["--checkpoint", "checkpoint", *self.more, *more]
        running = self.commands.start(*given, environment=environment)
        if kill_at is not None and not hold:
            self.armed.write_text(str(running.pid))
        return running

    @property
    def armed(self) -> Path:
        return self.folder / "armed"

    def is_held(self) -> bool:
        """Whether somebody waits at the pipe; it waits on while the other end is open."""
        try:
            self.pipes.append(os.open(self.armed, os.O_WRONLY | os.O_NONBLOCK))
        except OSError:
            return False
        return True

    def let_go(self) -> None:
        """Whoever is held goes on."""
        self.armed.unlink()
        while self.pipes:
            os.close(self.pipes.pop())

    def close(self) -> None:
        self.commands.close()
        for pipe in self.pipes:
            os.close(pipe)

    def batches(self) -> list[int]:
        """The batches that are over."""
        return numbers_in(self.checkpoint / "batches")

    def outputs(self, label: str) -> dict[str, Any]:
        """Every output: the lines of a file, or the rows of a folder of parts."""
        found: dict[str, Any] = {}
        for name in OUTPUTS:
            path = self.folder / self.place(label, name)
            if self.sinks == "folder":
                found[name] = [row for part in parts_in(path).values() for row in part]
            else:
                found[name] = path.read_text().splitlines()
        return found

    def parts(self, label: str) -> dict[str, dict[int, Any]]:
        return {name: parts_in(self.folder / self.place(label, name)) for name in OUTPUTS}

    def expected(self) -> dict[str, Any]:
        """What the local engine gives without a checkpoint, in one go."""
        self.commands.start(*self.arguments("local", "local")).succeed()
        return self.outputs("local")


def numbers_in(folder: Path) -> list[int]:
    if not folder.is_dir():
        return []
    return sorted(int(p.name) for p in folder.iterdir() if p.name.isdigit())


def parts_in(folder: Path) -> dict[int, list[dict[str, Any]]]:
    """The rows of every part by its number; nothing else may be there for readers to find."""
    found: dict[int, list[dict[str, Any]]] = {}
    for path in sorted(p for p in folder.iterdir() if not p.name.startswith(".")):
        match = re.fullmatch(r"part-(\d{9})\.parquet", path.name)
        assert match, path
        found[int(match[1])] = pq.read_table(path).to_pylist()
    return found


def make_job(
    folder: Path,
    sinks: str,
    *,
    files: int,
    rows: int,
    note: int = 0,
    batch_bytes: int,
    seed: int,
    engine: str = "spark",
) -> Job:
    """Files with rows in time order, many at the same instant; notes make rows long."""
    generator = random.Random(seed)
    (folder / "job.brook").write_text(PROGRAM)
    for name, column in INPUTS.items():
        (folder / name).mkdir()
        clock = 0
        for number in range(files):
            lines = [f"_time,symbol,{column},note"]
            for row in range(rows):
                clock += generator.randint(0, 9)
                symbol, value = generator.randint(0, 5), generator.randint(0, 99)
                lines.append(f"{clock},S{symbol},{value},{number}-{row}{'.' * note}")
            (folder / name / f"{number:03}.csv").write_text("\n".join(lines) + "\n")
    return Job(Commands(folder), sinks, batch_bytes, engine)


def difference(expected: Mapping[str, Sequence[Any]], found: Mapping[str, Sequence[Any]]) -> str:
    """Where two results differ, in few words; empty if they do not."""
    if expected.keys() != found.keys():
        return f"{sorted(expected)} and {sorted(found)}"
    for name, rows in expected.items():
        for number, (one, other) in enumerate(zip(rows, found[name], strict=False)):
            if one != other:
                return f"{name}, row {number}: {str(one)[:200]} and {str(other)[:200]}"
        if len(rows) != len(found[name]):
            return f"{name}: {len(rows)} and {len(found[name])} rows"
    return ""
