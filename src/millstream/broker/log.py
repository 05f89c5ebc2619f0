"""The log of a broker: records one after the other, each with a number and a checksum.

    magic 4 | length 4 | number 8 | checksum 4 | bytes

A checksum covers length, number and bytes, and the checksum before it, so that a record that
stands in another place than it was written at is none. What is appended is durable after
`sync`, which is asked for once for many: these are a group. All records of a group but the first
have the highest bit of their number set. A crash can leave the last group unfinished, and in any
part of it: it was never acknowledged, and is cut off where it is damaged. If another group
follows on what is damaged, it is no crash that did it: then nothing is served.
"""

from __future__ import annotations

import errno
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from millstream.broker.env import Disk
from millstream.errors import PlanError

_MAGIC = b"mLg1"
_HEAD = struct.Struct("<4sIQI")
#: Of a number: this record became durable together with the one before it.
_GOES_ON = 1 << 63
#: A record is never longer; so a damaged length does not make all that follows look torn.
LONGEST = 1 << 28
#: A file is followed by the next when it has so many bytes.
SEGMENT = 64 << 20


@dataclass(frozen=True, slots=True)
class Record:
    """A number, counted from 1, what was written under it, and the checksum of all up to it."""

    number: int
    data: bytes
    checksum: int


class LogFailed(Exception):
    """What was appended since the last `sync` is not in the log; says why."""

    def __init__(self, reason: str, *, is_full: bool) -> None:
        super().__init__(reason)
        self.is_full = is_full


class Log:
    """Mutable: the files of a log, and where the next record goes."""

    def __init__(self, disk: Disk, segment: int = SEGMENT) -> None:
        self.disk = disk
        self.segment = segment
        self.number = 0
        #: How many bytes of an unfinished record were cut off when it was opened.
        self.cut = 0
        self.size = 0
        self._chain = 0
        self._name = ""
        self._length = 0
        self._pending: list[bytes] = []
        self._synced = (0, 0)
        self._failed: str | None = None

    # --- reading ---

    def open(self, after: int = 0, base: tuple[int, int] | None = None) -> Iterator[Record]:
        """The first record, and all after some number; behind the last, more can be appended.

        What is not given is not looked at either: whoever has no need of it says `after`. Of a
        log whose beginning has gone, the base says up to where, and the checksum there.
        """
        names = self.disk.names()
        if base is not None:
            names = self._behind(names, *base)
        elif names and names[0] != _named(1):
            raise PlanError("the beginning of the log is gone, and what stood instead", hint=_COPY)
        elif after:
            yield next(records_between(self.disk, 0, 1))
        if after and names:
            begin = segment_of(names, after) if names[0] <= _named(after) else names[0]
            self.size = sum(self.disk.size(name) for name in names if name < begin)
            names = [name for name in names if name >= begin]
        for name in names:
            data, at = self.disk.read(name), 0
            if self.number < after:
                self.number, self._chain, at = _end_of(data, after)
            while (read := self._record(data, at, name)) is not None:
                record, self._chain, at = read
                self.number = record.number
                yield record
            if at < len(data):
                self._cut_off(name, data, at, is_last=name == names[-1])
            self._name, self._length = name, at
            self.size += at
        if not names:
            self._name = _named(self.number + 1)
        self._synced = (self.number, self._chain)

    def _behind(self, names: list[str], number: int, checksum: int) -> list[str]:
        """The files behind a base; what it stands for may still be there, whole or in part."""
        names = names[len([n for n in names if n <= _named(number + 1)][:-1]) :]
        if names and names[0] > _named(number + 1):
            raise PlanError(f"record {number + 1:,} of the log is gone", hint=_COPY)
        is_there = bool(names) and names[0] <= _named(number)
        if is_there and _end_of(self.disk.read(names[0]), number)[:2] != (number, checksum):
            raise PlanError(f"{names[0]} does not go on behind record {number:,}", hint=_COPY)
        if not is_there:
            self.number, self._chain = number, checksum
        return names

    def _record(self, data: bytes, at: int, name: str) -> tuple[Record, int, int] | None:
        """The record at a place, the checksum that the next one goes on from, and its end."""
        read = _read(data, at)
        if read is None:
            return None
        head, checksum, body = read
        number = head & ~_GOES_ON
        if number != self.number + 1 or checksum != _checksum(self._chain, head, body):
            return None
        return Record(number, body, checksum), checksum, at + _HEAD.size + len(body)

    def _cut_off(self, name: str, data: bytes, at: int, *, is_last: bool) -> None:
        follows = data.find(_MAGIC, at + 1)
        while follows >= 0 and not _begins_group(data, follows):
            follows = data.find(_MAGIC, follows + 1)
        if not is_last or follows >= 0:
            raise PlanError(
                f"{name} is damaged at byte {at:,}, and there is more after it",
                hint=_COPY,
            )
        self.disk.cut(name, at)
        self.cut = len(data) - at

    # --- writing ---

    @property
    def durable(self) -> int:
        """The number of the last record that will outlast a crash."""
        return self._synced[0]

    def append(self, data: bytes) -> Record:
        """One more record, which is in the log after the next `sync`."""
        if self._failed is not None:
            raise LogFailed(self._failed, is_full=False)
        if len(data) > LONGEST:
            raise LogFailed(f"a record has at most {LONGEST:,} bytes", is_full=False)
        self.number += 1
        head = self.number | (_GOES_ON if self._pending else 0)
        self._chain = _checksum(self._chain, head, data)
        self._pending.append(_HEAD.pack(_MAGIC, len(data), head, self._chain) + data)
        return Record(self.number, data, self._chain)

    def sync(self) -> None:
        """Make all records durable that were appended, or none of them."""
        if not self._pending:
            return
        data = b"".join(self._pending)
        self._pending = []
        if self._length >= self.segment:
            self._name, self._length = _named(self._synced[0] + 1), 0
        try:
            self.disk.append(self._name, data)
        except OSError as error:
            self._take_back(error)
        try:
            self.disk.sync(self._name)
        except OSError as error:
            # What the disk has of it now nobody knows: it must be read again from the start.
            self._failed = f"the log could not be made durable: {error.strerror}"
            raise LogFailed(self._failed, is_full=False) from None
        self._length += len(data)
        self.size += len(data)
        self._synced = (self.number, self._chain)

    def _take_back(self, error: OSError) -> None:
        """After a part of a write."""
        self.number, self._chain = self._synced
        try:
            self.disk.cut(self._name, self._length)
        except OSError as worse:
            self._failed = f"the log could not be mended: {worse.strerror}"
        is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        raise LogFailed(f"the log cannot be written: {error.strerror}", is_full=is_full) from None


def records_between(disk: Disk, after: int, through: int) -> Iterator[Record]:
    """Records that are durable; what has been damaged since is told, not given."""
    names = disk.names()
    firsts = [int(name.removesuffix(".log")) for name in names]
    number, chain = 0, 0
    for n, name in enumerate(names):
        is_before = n + 1 < len(names) and firsts[n + 1] <= after + 1
        if is_before or firsts[n] > through:
            continue
        data, at = disk.read(name), 0
        while number < through and at < len(data):
            read = _read(data, at)
            # Of the one before the first that is looked at no checksum is known.
            is_first = number == 0 < firsts[n] - 1
            if read is None or not (is_first or read[1] == _checksum(chain, read[0], read[2])):
                message = f"{name} is damaged at byte {at:,}"
                raise PlanError(message, hint=_COPY)
            head, chain, body = read
            number = head & ~_GOES_ON
            if number > after:
                yield Record(number, body, chain)
            at += _HEAD.size + len(body)


def files_up_to(disk: Disk, number: int) -> list[str]:
    """The files that have no record behind a number, and are followed by another."""
    names = disk.names()
    return [name for name, after in pairwise(names) if after <= _named(number + 1)]


def segment_of(names: list[str], number: int) -> str:
    """The file in which a record must lie."""
    return max(name for name in names if name <= _named(number))


def checksum_at(disk: Disk, number: int) -> int | None:
    """The checksum of all up to a record, as it stands there; None if there is no such record."""
    names = disk.names()
    if not names or names[0] > _named(number):
        return None
    last, checksum, _ = _end_of(disk.read(segment_of(names, number)), number)
    return checksum if last == number else None


def _end_of(data: bytes, number: int) -> tuple[int, int, int]:
    """The last record of a file up to a number: its number, its checksum, and where it ends."""
    last, checksum, at = 0, 0, 0
    while at + _HEAD.size <= len(data):
        magic, length, head, chain = _HEAD.unpack_from(data, at)
        end = at + _HEAD.size + length
        if magic != _MAGIC or head & ~_GOES_ON > number or end > len(data):
            break
        last, checksum, at = head & ~_GOES_ON, chain, end
    return last, checksum, at


_COPY = "put a copy of the log in its place; nothing is served that may be false"


def _named(first: int) -> str:
    """The file that begins with a record."""
    return f"{first:016}.log"


def _checksum(chain: int, number: int, data: bytes) -> int:
    return zlib.crc32(data, zlib.crc32(struct.pack("<IIQ", chain, len(data), number)))


def _read(data: bytes, at: int) -> tuple[int, int, bytes] | None:
    """What looks like a record: its number, its checksum and its bytes."""
    if at + _HEAD.size > len(data):
        return None
    magic, length, number, checksum = _HEAD.unpack_from(data, at)
    end = at + _HEAD.size + length
    if magic != _MAGIC or length > LONGEST or end > len(data):
        return None
    return number, checksum, data[at + _HEAD.size : end]


def _begins_group(data: bytes, at: int) -> bool:
    """Whether what looks like the first record of a group is followed by the end or by another.

    Its checksum says nothing if the one before it is damaged.
    """
    read = _read(data, at)
    if read is None or read[0] & _GOES_ON:
        return False
    end = at + _HEAD.size + len(read[2])
    return end == len(data) or data[end : end + 4] == _MAGIC
