"""Listening: a socket on this machine, a token that is shown once, and an orderly end."""

from __future__ import annotations

import asyncio
import resource
import signal
import socket
import ssl
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn

from millstream.errors import UsageError
from millstream.server.app import ROUTES, make_app
from millstream.server.corked import CorkedHTTP
from millstream.server.garbage import Garbage
from millstream.server.gate import Gate
from millstream.server.routes import Route, Run, TokenScope
from millstream.server.sockets import ClosingSocket, quiet_about_what_is_meant
from millstream.server.tokens import GIVEN, Tokens, new_token, read_tokens

#: So many connections there may be, most of which listen and are silent.
_MOST_AT_ONCE = 32_768
#: Python changes threads this often, so that a question need not wait for the run.
_SWITCH_SECONDS = 0.0005


@dataclass(frozen=True)
class Address:
    """Where to listen, and by which further names one may ask."""

    port: int = 8000
    names: tuple[str, ...] = ()
    #: The files of a certificate and its key; without them nothing is encrypted.
    certificate: Path | None = None
    key: Path | None = None

    def check(self) -> None:
        """Say what is wrong with the certificate, if something is."""
        if self.certificate is None:
            if self.key is not None:
                raise UsageError("--tls-key is of a certificate", hint="add --tls-cert FILE")
            return
        try:
            ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(
                self.certificate, self.key, password=lambda: b""
            )
        except OSError as error:  # what is wrong inside of a file is one of these too
            reason = error.reason if isinstance(error, ssl.SSLError) else error.strerror
            message = f"this certificate and its key cannot be used: {reason}"
            hint = "both as PEM, the key without a password, in one file or with --tls-key"
            raise UsageError(message, place=str(self.certificate), hint=hint) from None


_PLAIN = Address()


def listen(
    serving: Run, address: Address, tokens_file: Path | None, say: Callable[[str], None],
    routes: tuple[Route, ...] = ROUTES, link_token: str | None = None,
) -> None:  # fmt: skip
    """Answer until interrupted, or until the run fails; other brokers have a token of their own."""
    address.check()
    _allow_many()
    own = bound(address.port)
    port = own.getsockname()[1]
    tokens, shown = _tokens(tokens_file)
    if link_token is not None:
        tokens.add(link_token, frozenset({TokenScope.LINK}))
    hosts = frozenset(f"{n}:{port}" for n in ("127.0.0.1", "localhost", *address.names))
    kind = "http" if address.certificate is None else "https"
    say(f"listening on {kind}://127.0.0.1:{port}")
    if shown is not None:
        say(f"token: {shown}")
    sys.setswitchinterval(_SWITCH_SECONDS)
    asyncio.run(_serve(serving, make_app(serving, tokens, hosts, routes), own, address))


def _allow_many() -> None:
    """As many connections as this process may have: each is an open file."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):  # then there are as many as before
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _tokens(path: Path | None) -> tuple[Tokens, str | None]:
    """Those of a file, or a new one, which is to be shown once."""
    if path is not None:
        return read_tokens(path), None
    token = new_token()
    return Tokens({token: frozenset(GIVEN) | {TokenScope.OPEN}}), token


def bound(port: int) -> socket.socket:
    # By its full name: only of such a socket asyncio sends at once what is written. Otherwise the
    # body of an answer waits until its headers are acknowledged, which takes 40 ms.
    own = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        own.bind(("127.0.0.1", port))
    except OSError:
        own.close()
        raise UsageError(f"port {port} is taken", hint="choose another with --port") from None
    own.listen(2048)  # who comes before all is ready waits, and is not sent away
    return own


def config_of(app: Any, address: Address = _PLAIN) -> uvicorn.Config:
    """How HTTP is spoken, and what is too much of it."""
    made = uvicorn.Config(
        app, log_level="error", access_log=False, server_header=False, ws_max_size=1 << 16,
        ws_ping_interval=20, ws_ping_timeout=20, limit_concurrency=_MOST_AT_ONCE,
        timeout_keep_alive=30, timeout_graceful_shutdown=3, lifespan="off",
        h11_max_incomplete_event_size=1 << 16,
        ssl_certfile=address.certificate, ssl_keyfile=address.key, http=CorkedHTTP,
        ws=ClosingSocket,
    )  # fmt: skip
    quiet_about_what_is_meant()
    return made


class _Server(uvicorn.Server):
    """Ends in an orderly way when it is asked to, which is no failure; asked twice, at once."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    def end(self) -> None:
        self.force_exit = self.should_exit
        self.should_exit = True


async def _serve(serving: Run, app: Gate, own: socket.socket, address: Address) -> None:
    server = _Server(config_of(app, address))
    loop = asyncio.get_running_loop()
    for one in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(one, server.end)
    Garbage().begin()
    serving.start(lambda: loop.call_soon_threadsafe(server.end))
    await server.serve(sockets=[own])
    await loop.run_in_executor(None, serving.stop)
