"""Runs that do not come to their end: one sentence, and the old result stays."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

import millstream
from millstream.engine.points import VARIABLE
from tests.engine.running import Commands, Running, of_session, wait_for
from tests.seeds import in_turn

pytestmark = pytest.mark.spark

PROGRAM = "output out; input in(n integer); (out) <- Filter[n >= 0](in);"
OLD = "an older result\n"


@pytest.fixture
def commands(tmp_path: Path) -> Iterator[Commands]:
    (tmp_path / "job.brook").write_text(PROGRAM)
    (tmp_path / "in.csv").write_text("_time,n\n1,1\n2,2\n")
    (tmp_path / "out.csv").write_text(OLD)
    started = Commands(tmp_path)
    yield started
    started.close()


def start(commands: Commands, *more: str, hold: int | None = None, out: str = "out.csv") -> Running:
    """Without a checkpoint, a row a batch; held in a batch, it waits at a pipe."""
    armed = commands.folder / "armed"
    environment = {"MILLSTREAM_BATCH_BYTES": "1"}
    if hold is not None:
        os.mkfifo(armed)
        environment[VARIABLE] = f"mid-task@{hold}:{armed}"
    return commands.start("job.brook", "--out", f"out={out}", *more, environment=environment)


def java_of(running: Running) -> list[int]:
    return [p.pid for p in of_session(running.pid) if p.is_java]


def wait_until_held(commands: Commands, running: Running) -> int:
    """The other end of the pipe, which must stay open."""
    ends: list[int] = []

    def is_held() -> bool:
        try:
            ends.append(os.open(commands.folder / "armed", os.O_WRONLY | os.O_NONBLOCK))
        except OSError:
            return running.is_over
        return True

    wait_for("the first batch", is_held)
    assert ends, running.errors()
    return ends[0]


def check(commands: Commands, running: Running, status: int, *sentences: str) -> None:
    assert status == running.finish(60), running.errors()
    told = running.errors()
    assert "Traceback" not in told
    assert len(told.splitlines()) <= 2, told
    for sentence in sentences:
        assert sentence in told
    assert OLD == (commands.folder / "out.csv").read_text()
    wait_for("all to end", lambda: not running.left(), 30)


def log_named(running: Running) -> Path:
    named = re.search(r"its log is (\S+)", running.errors())
    assert named, running.errors()
    return Path(named[1])


#: Spark itself tells one sooner than the other.
MASTERS = {
    "foo": "Master must either be yarn or start with spark, k8s, or local",
    "sparkle": "Could not parse Master URL: 'sparkle'",
}


@pytest.mark.parametrize("master", in_turn([*MASTERS]))
def test_a_master_that_is_none_is_told_and_the_log_is_there(
    master: str, commands: Commands
) -> None:
    running = start(commands, "--master", master)
    check(commands, running, 1, f"error: Spark did not start: {MASTERS[master]}\n", "local[*]")
    log = log_named(running)
    assert log.is_file()
    log.unlink()


def test_ctrl_c_while_spark_starts_stops_at_once(commands: Commands) -> None:
    running = start(commands)
    wait_for("Java", lambda: bool(java_of(running)) or running.is_over)
    running.interrupt()
    check(commands, running, 130, "stopped")


def test_ctrl_c_publishes_nothing_and_pages_are_only_for_this_machine(commands: Commands) -> None:
    """Nor are the results of batches that are over seen in a folder."""
    results = commands.folder / "results"
    inputs, outputs = {"in": commands.folder / "in.csv"}, {"out": f"{results}/"}
    millstream.compile(commands.folder / "job.brook").run(inputs, outputs)
    before = {path: path.read_bytes() for path in results.iterdir()}
    running = start(commands, "--ui", hold=1, out="results/")
    end = wait_until_held(commands, running)
    listening = {a for pid in java_of(running) for a in addresses(pid)}
    assert listening
    assert {"127.0.0.1"} == listening
    running.interrupt()
    check(commands, running, 130, "stopped", "Spark's pages: http://127.0.0.1:")
    assert before == {path: path.read_bytes() for path in results.iterdir()}
    os.close(end)


def test_a_java_that_somebody_ends_is_told_in_one_sentence(commands: Commands) -> None:
    running = start(commands, hold=0)
    end = wait_until_held(commands, running)
    for pid in java_of(running):
        os.kill(pid, signal.SIGKILL)
    check(commands, running, 1, "the Java that runs Spark has ended")
    log = log_named(running)
    assert log.is_file()
    log.unlink()
    os.close(end)


def addresses(pid: int) -> Iterator[str]:
    """Where a process listens."""
    links = (str(p.readlink()) for p in Path(f"/proc/{pid}/fd").iterdir() if p.is_symlink())
    sockets = {m[1] for link in links if (m := re.fullmatch(r"socket:\[(\d+)\]", link))}
    for name in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{name}").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == "0A" and words[9] in sockets:
                yield plain_address(words[1].partition(":")[0])


def plain_address(text: str) -> str:
    """IPv4, also inside IPv6, as people write it; anything else as it is."""
    last = bytes.fromhex(text[-8:])[::-1]
    is_four = len(text) == 8 or text[:24] == "0000000000000000FFFF0000"
    return ".".join(map(str, last)) if is_four else text
