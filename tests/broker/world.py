"""A world for brokers in tests: a clock that is set, and a disk that crashes when it is told to."""

from __future__ import annotations

import errno
import random
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from millstream.broker.core import Broker, Given, Publish, digest_of
from millstream.broker.env import Env
from millstream.languages.served import Served
from millstream.languages.smile.served import load_served
from millstream.source import Source


class Crash(BaseException):
    """The process is gone."""


class SetClock:
    """Mutable: says what it is set to."""

    def __init__(self, time: int = 1_000_000) -> None:
        self.time = time

    def now(self) -> int:
        return self.time


class CrashingDisk:
    """Mutable: files in memory; what was not made durable is gone after a crash, or torn.

    `calls` counts the writes and the like; at the number `crash_at` the process is gone, before
    the call or in the middle of it. `full_at` fails such a call for want of space.
    """

    def __init__(self, seed: int = 0) -> None:
        self.chance = random.Random(seed)
        self.durable: dict[str, bytes] = {}
        self.files: dict[str, bytes] = {}
        self.calls = 0
        self.crash_at: int | None = None
        self.full_at: int | None = None
        self.fails_to_sync_at: int | None = None

    def _called(self) -> bool:
        self.calls += 1
        return self.calls == self.crash_at

    def names(self, ending: str = ".log") -> list[str]:
        return sorted(name for name in self.files if name.endswith(ending))

    def read(self, name: str) -> bytes:
        return self.files[name]

    def size(self, name: str) -> int:
        return len(self.files[name])

    def remove(self, name: str) -> None:
        self.files.pop(name, None)
        self.durable.pop(name, None)

    def append(self, name: str, data: bytes) -> None:
        crashes = self._called()
        is_full = self.calls == self.full_at
        kept = data[: self.chance.randrange(len(data) + 1)] if crashes or is_full else data
        self.files[name] = self.files.get(name, b"") + kept
        if crashes:
            raise Crash
        if is_full:
            raise OSError(errno.ENOSPC, "No space left on device")

    def sync(self, name: str) -> None:
        crashes = self._called()
        if self.calls == self.fails_to_sync_at:
            raise OSError(errno.EIO, "Input/output error")
        if not crashes or self.chance.random() < 0.5:
            self.durable[name] = self.files[name]
        if crashes:
            raise Crash

    def cut(self, name: str, size: int) -> None:
        crashes = self._called()
        self.files[name] = self.files[name][:size]
        self.durable[name] = self.files[name]
        if crashes:
            raise Crash

    def close(self) -> None:
        """There is nothing to close."""

    def restart(self) -> None:
        """Of what was not durable, any first part is still there, and not all of that may be."""
        self.crash_at = self.full_at = self.fails_to_sync_at = None
        for name, data in list(self.files.items()):
            sure = len(self.durable.get(name, b""))
            is_whole = self.chance.random() < 0.5
            kept = data if is_whole else data[: self.chance.randrange(sure, len(data) + 1)]
            if len(kept) > sure and self.chance.random() < 0.5:
                begin = self.chance.randrange(sure, len(kept))
                end = min(begin + self.chance.randrange(1, 60), len(kept))
                kept = kept[:begin] + bytes(end - begin) + kept[end:]
            if kept or name in self.durable:
                self.files[name] = self.durable[name] = kept
            else:
                del self.files[name]


def served(text: str) -> Served:
    return load_served(Source("test.smile", text))


def opened(
    program: Served, disk: CrashingDisk, clock: SetClock,
    identity: Callable[[], str] | None = None, **settings: Any,
) -> Broker:  # fmt: skip
    env = Env(disk, clock)
    if identity is not None:
        env = Env(disk, clock, identity)
    broker = Broker(env, program, **settings)
    broker.open()
    return broker


def batch(
    stream: str, rows: Iterable[Sequence[Any]], publisher: str = "", sequence: int = 0
) -> Publish:
    given = tuple(Given(tuple(row)) for row in rows)
    body = repr([row.values for row in given]).encode()
    return Publish(stream, given, digest_of(stream, body), publisher, sequence)


def is_found_by(statement: str, run: Callable[[int], object], seeds: Iterable[int]) -> None:
    """Whether a world breaks a statement in one of some seeds; how else it shows does not count."""
    for seed in seeds:
        try:
            run(seed)
        except AssertionError as error:
            if statement in str(error):
                return
        except Exception:  # noqa: BLE001, S112 - it shows, but not by what it breaks
            continue
    raise AssertionError(f"nothing broke: {statement}")
