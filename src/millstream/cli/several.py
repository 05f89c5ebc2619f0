"""`millstream serve FILE --broker NAME` and `--all`: one of several brokers, or all of them."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from millstream.broker.cutting import part_of
from millstream.broker.placement import Placement, read_placement
from millstream.cli import serve as alone
from millstream.errors import UsageError
from millstream.languages.language import read_source
from millstream.languages.served import Served

#: Where the token of links is found.
LINK_TOKEN = "MILLSTREAM_LINK_TOKEN"  # noqa: S105 - its name
_SHORTEST = 16
#: The process that has started this one, with which it ends.
_STARTED_BY = "MILLSTREAM_STARTED_BY"
#: A broker that ends by itself is started again, so many times in a minute at most.
_MOST_STARTS, _MINUTE = 5, 60.0


def serve(arguments: argparse.Namespace, served: Served) -> int:
    file = Path(arguments.file)
    path = Path(arguments.brokers) if arguments.brokers else file.parent / "brokers.toml"
    if not path.exists():
        hint = "docs/smile.md says what stands in it; --brokers names another file"
        raise UsageError("there is no file that says which brokers there are", place=str(path),
                         hint=hint)  # fmt: skip
    placement = read_placement(read_source(path))
    # What is wrong with one is told before any starts.
    parts = {name: part_of(served, placement, name) for name in placement.brokers}
    if arguments.all:
        if arguments.log:
            raise UsageError("each broker has a log of its own", hint="use --log with --broker")
        return _all(arguments, placement, parts)
    placement.check_broker(arguments.broker)
    return _one(arguments, served, placement)


def _one(arguments: argparse.Namespace, served: Served, placement: Placement) -> int:
    from millstream.server.broker_run import BrokerRun
    from millstream.server.brokers import BROKER_ROUTES
    from millstream.server.linking import Peers
    from millstream.server.listen import Address, listen
    from millstream.server.serving import FAILED

    if _STARTED_BY in os.environ:
        starter = int(os.environ[_STARTED_BY])
        threading.Thread(target=_end_with, args=(starter,), daemon=True).start()
    name = arguments.broker
    token = _link_token(arguments)
    folder = _folder(arguments, name)
    peers = Peers(name, placement.brokers, token)
    log = alone.log_of(arguments)
    part = part_of(served, placement, name)
    run = BrokerRun(part, folder, peers=peers, log=log, keeps_log=arguments.keep_log)
    parts = urlsplit(placement.brokers[name])
    port = parts.port or 0
    names = (*arguments.host, *([parts.hostname] if parts.hostname else []))
    address = Address(port, names, *alone.tls(arguments))
    tokens = Path(arguments.tokens) if arguments.tokens else None
    listen(run, address, tokens, alone.say, BROKER_ROUTES, link_token=token)
    if run.status == FAILED and run.fault is not None:
        raise run.fault
    return 0


def _end_with(starter: int) -> None:
    """In an orderly way, as nobody is left who would ask for it."""
    while os.getppid() == starter:
        time.sleep(0.5)
    os.kill(os.getpid(), signal.SIGTERM)


def _folder(arguments: argparse.Namespace, name: str) -> Path:
    """Each broker has a folder of its own."""
    if arguments.checkpoint:
        return Path(arguments.checkpoint) / name
    folder = alone.default_checkpoint(arguments.file)
    return folder.with_name(f"{folder.name}-{name}")


def _link_token(arguments: argparse.Namespace) -> str:
    if arguments.link_token:
        try:
            token = Path(arguments.link_token).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError):
            message = "this file of a token cannot be read"
            raise UsageError(message, place=arguments.link_token) from None
    else:
        token = os.environ.get(LINK_TOKEN, "")
    if len(token) < _SHORTEST or not token.isascii() or not token.isprintable():
        hint = f"give all brokers the same one: --link-token FILE, or {LINK_TOKEN}"
        raise UsageError(
            f"brokers know each other by a token of {_SHORTEST} characters or more", hint=hint
        )
    return token


# --- all of them ---


def _all(arguments: argparse.Namespace, placement: Placement, parts: Mapping[str, Served]) -> int:
    """A process for each, started again should it end by itself, until this one is asked to end."""
    from millstream.server.tokens import new_token

    has_token = arguments.link_token or os.environ.get(LINK_TOKEN)
    link_token = _link_token(arguments) if has_token else new_token()
    tokens = Path(arguments.tokens) if arguments.tokens else _tokens_for_all(arguments)
    children = _Children(arguments, tokens, link_token)
    for one in (signal.SIGINT, signal.SIGTERM):
        signal.signal(one, lambda *_: children.end())
    try:
        for name, address in placement.brokers.items():
            children.start(name)
            alone.say(f"{name}: {address}{_what_is_there(parts[name])}")
        children.watch()
    finally:
        children.stop()
        if not arguments.tokens:
            tokens.unlink(missing_ok=True)
    return 0


def _what_is_there(served: Served) -> str:
    assert served.part is not None
    lists = [("streams", served.part.hosted), ("views", served.views)]
    return "".join(f"  {what} {', '.join(names)}" for what, names in lists if names)


def _tokens_for_all(arguments: argparse.Namespace) -> Path:
    """A new token for all, which is shown once, in a file that is gone in the end."""
    from millstream.server.tokens import new_token

    token = new_token()
    path = _folder(arguments, "tokens").with_suffix(f".{os.getpid()}")
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(f"{token} read, publish, admin\n")
    alone.say(f"token: {token}")
    return path


class _Children:
    """Mutable: the processes of brokers."""

    def __init__(self, arguments: argparse.Namespace, tokens: Path, link_token: str) -> None:
        self.command = [sys.executable, "-m", "millstream", "serve", arguments.file,
                        "--tokens", str(tokens)]  # fmt: skip
        for option, value in (("--brokers", arguments.brokers), ("--tls-cert", arguments.tls_cert),
                              ("--tls-key", arguments.tls_key),
                              ("--checkpoint", arguments.checkpoint)):  # fmt: skip
            self.command += [option, value] if value else []
        self.command += [word for host in arguments.host for word in ("--host", host)]
        self.command += ["--keep-log"] if arguments.keep_log else []
        own = {LINK_TOKEN: link_token, _STARTED_BY: str(os.getpid())}
        self.environment = {**os.environ, **own}
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.starts: dict[str, list[float]] = {}
        self.is_ending = False

    def start(self, name: str) -> None:
        command = [*self.command, "--broker", name]
        # In a group of its own, so that an interrupt comes once, from here.
        self.processes[name] = subprocess.Popen(  # noqa: S603 - this program itself
            command, env=self.environment, start_new_session=True, stdout=subprocess.DEVNULL
        )
        self.starts.setdefault(name, []).append(time.monotonic())

    def end(self) -> None:
        self.is_ending = True

    def watch(self) -> None:
        while not self.is_ending:
            time.sleep(0.1)
            for name, process in list(self.processes.items()):
                if process.poll() is None or self.is_ending:
                    continue
                self._again(name, process.returncode)

    def _again(self, name: str, code: int) -> None:
        since = time.monotonic() - _MINUTE
        if code > 0 or sum(at > since for at in self.starts[name]) >= _MOST_STARTS:
            raise UsageError(f"the broker {name} has ended ({code})", hint="it says why above")
        alone.say(f"{name} was killed ({code}), and is started again")
        self.start(name)

    def stop(self) -> None:
        """Ask all to end, and see to it that they do."""
        for process in self.processes.values():
            if process.poll() is None:
                process.terminate()
        for process in self.processes.values():
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
