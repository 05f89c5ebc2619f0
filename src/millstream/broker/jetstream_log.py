"""The log of a broker in a stream of NATS JetStream, and a copy of it here.

A message has some bytes of a file of the log, and in its headers which file, and where in it they
begin: what the file had from there on is gone. So a file that is cut is a message without bytes,
and a message that is taken in twice changes nothing. What is appended counts when the server has
acknowledged it. Each message names the one that must be before it: whoever else writes to
the stream is found out, and a message whose acknowledgement was lost is not written twice.

The copy is read instead of the stream, and says how much of it it has. It need not be durable: if
the machine was started anew since, or the folder is gone, it is made again from the stream.
"""

from __future__ import annotations

import errno
import os
import secrets
import time
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from millstream.broker.env import FolderDisk
from millstream.connectors.elsewhere.address import parse_elsewhere, shown
from millstream.connectors.elsewhere.nats import SECONDS, Nats
from millstream.errors import RunError, UsageError

_FILE, _AT, _ID = "Millstream-File", "Millstream-At", "Millstream-Id"
#: Of a message, whatever its server allows, and for headers.
_MOST_BYTES, _SPARE_BYTES = 1 << 20, 4 << 10
#: For so many seconds a server that is away is asked again.
_PATIENCE, _PAUSE = 15.0, 0.2
_ANOTHER = 10071
_MESSAGES = 500
#: What the copy has, beside it: the stream, when the machine was started, and a message.
_COPIED = "copied"
_BOOT = Path("/proc/sys/kernel/random/boot_id")


class JetStreamDisk(FolderDisk):
    """Mutable: a folder, whose log is in a stream as well; all else is in the folder alone."""

    def __init__(self, folder: Path, address: str, patience: float = _PATIENCE) -> None:
        super().__init__(folder)
        self.patience = patience
        self._sequence = 0
        self._mark = ""
        had_copy = (folder / _COPIED).exists()
        self._noted = os.open(folder / _COPIED, os.O_RDWR | os.O_CREAT, 0o600)
        place, text = parse_elsewhere(address), shown(address)
        #: Who speaks to the server: whoever asks may be in the middle of a loop of its own.
        self._speaker = ThreadPoolExecutor(1, "millstream-log")
        try:
            connect = partial(Nats, place, text, what_fails="cannot have the log")
            self._nats = self._speaker.submit(connect).result()
        except BaseException:
            self._close_folder()
            raise
        self._subject = self._nats.subject or f"{self._nats.stream}.log"
        self._most = min(_MOST_BYTES, self._nats.connection.max_payload) - _SPARE_BYTES
        try:
            self._copy(had_copy=had_copy)
        except BaseException:
            self.close()
            raise

    def append(self, name: str, data: bytes) -> None:
        if not name.endswith(".log"):
            super().append(name, data)
            return
        for begin in range(0, len(data), self._most):
            at = self.size(name) if (self.folder / name).exists() else 0
            self._write(name, at, data[begin : begin + self._most])

    def sync(self, name: str) -> None:
        """What was acknowledged is durable there; see `sync_interval` of the server."""
        if not name.endswith(".log"):
            super().sync(name)

    def cut(self, name: str, size: int) -> None:
        self._write(name, size, b"")

    def close(self) -> None:
        self._speaker.submit(self._nats.close).result()
        self._close_folder()

    def _close_folder(self) -> None:
        self._speaker.shutdown()
        os.close(self._noted)
        super().close()

    # --- the stream ---

    def _run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self._speaker.submit(self._nats.run, work).result()

    def _write(self, name: str, at: int, data: bytes) -> None:
        """Until it is in the stream, once; as any disk, this fails with an `OSError`."""
        headers = {_FILE: name, _AT: str(at), _ID: secrets.token_hex(8)}
        deadline = time.monotonic() + self.patience
        while True:
            try:
                sequence = self._run(self._published(data, headers))
                break
            except RunError as error:
                if time.monotonic() > deadline:
                    raise OSError(errno.EIO, str(error)) from None
            time.sleep(_PAUSE)
        if sequence is None:
            raise OSError(errno.EIO, f"somebody else writes to {self._nats.stream}")
        self._sequence = sequence
        self._take_in(name, at, data)

    async def _published(self, data: bytes, headers: dict[str, str]) -> int | None:
        """The number of the message; None if another one stands in its place."""
        nats = self._nats
        if not nats.connection.is_connected:
            await nats.connected()
        expected = {nats.library.js.api.Header.EXPECTED_LAST_SEQUENCE: str(self._sequence)}
        js = nats.connection.jetstream()
        try:
            told = await js.publish(
                self._subject, data, timeout=SECONDS, stream=nats.stream, headers=headers | expected
            )
        except nats.library.js.errors.APIError as error:
            if error.err_code != _ANOTHER:
                raise
            # An acknowledgement may have been lost: then the next message is this one.
            following = await js.get_msg(nats.stream, self._sequence + 1)
            is_this = (following.headers or {}).get(_ID) == headers[_ID]
            return self._sequence + 1 if is_this else None
        return int(told.seq)

    # --- the copy ---

    def _copy(self, *, had_copy: bool) -> None:
        """Bring the copy up to what the stream has."""
        created, first, last = self._run(self._known())
        boot = _BOOT.read_text().strip() if _BOOT.exists() else secrets.token_hex(8)
        self._mark = f"{self._nats.stream} {created} {boot}"
        mark, _, number = os.pread(self._noted, 1 << 12, 0).decode().rpartition(" ")
        if mark == self._mark and int(number) <= last:
            self._sequence = int(number)
        else:
            self._begin_copy(had_copy=had_copy)
        if first > self._sequence + 1 and last:
            raise UsageError(f"messages {self._sequence + 1} to {first - 1} of the log are gone",
                             place=self._nats.text)  # fmt: skip
        if self._sequence < last:
            self._run(self._brought(last))
        self._note()

    def _begin_copy(self, *, had_copy: bool) -> None:
        names = self.names()
        if names and not had_copy:
            (self.folder / _COPIED).unlink()
            hint = "take another folder with --checkpoint"
            raise UsageError("this folder has a log of its own", place=str(self.folder), hint=hint)
        for name in (*names, *self.names(".soft")):
            self.remove(name)
        os.ftruncate(self._noted, 0)

    async def _known(self) -> tuple[str, int, int]:
        """When the stream was made, and its first and last messages; one is made if need be."""
        nats = self._nats
        js = nats.connection.jetstream()
        try:
            info = await js.stream_info(nats.stream)
        except nats.library.js.errors.NotFoundError:
            info = await js.add_stream(name=nats.stream, subjects=[self._subject], deny_delete=True)
        return str(info.created), int(info.state.first_seq), int(info.state.last_seq)

    async def _brought(self, last: int) -> None:
        nats, api = self._nats, self._nats.library.js.api
        config = api.ConsumerConfig(
            deliver_policy=api.DeliverPolicy.BY_START_SEQUENCE, opt_start_seq=self._sequence + 1,
            ack_policy=api.AckPolicy.NONE, inactive_threshold=60,
        )  # fmt: skip
        consumer = await nats.connection.jetstream().pull_subscribe(
            ">", stream=nats.stream, config=config
        )
        while self._sequence < last:
            for message in await consumer.fetch(_MESSAGES, timeout=SECONDS):
                self._sequence = message.metadata.sequence.stream
                self._bring(message)
        await consumer.unsubscribe()

    def _bring(self, message: Any) -> None:
        headers = message.headers or {}
        if _FILE not in headers or not headers[_FILE].removesuffix(".log").isdigit():
            hint = "a log has a stream of its own"
            raise UsageError(f"message {self._sequence} is none of a log",
                             place=self._nats.text, hint=hint)  # fmt: skip
        self._take_in(headers[_FILE], int(headers[_AT]), message.data, is_noted=False)

    def _take_in(self, name: str, at: int, data: bytes, *, is_noted: bool = True) -> None:
        file = self._file(name)
        if os.fstat(file).st_size != at:
            os.ftruncate(file, at)
        super().append(name, data)
        if is_noted:
            self._note()

    def _note(self) -> None:
        """How much is here: written behind it, so that at worst a message is taken in again."""
        os.pwrite(self._noted, f"{self._mark} {self._sequence:020}".encode(), 0)
