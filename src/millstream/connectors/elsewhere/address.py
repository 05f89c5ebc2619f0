"""Addresses of places elsewhere, as a person writes them.

    s3://bucket/trades/*.parquet?region=eu-west-1     objects; gs:// and az:// too
    kafka://host:9092,other:9092/topic                JSON, one object a message
    nats://host:4222/STREAM?subject=trades.*          a stream of JetStream
    http://127.0.0.1:8080/trades                      rows that others post, as JSON Lines
    https://hooks.example.org/port                    of an output: whom rows are posted to

What an address says of credentials is never shown; better they are in the environment, where the
libraries look for them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl

from millstream.connectors.address import masked
from millstream.errors import UsageError, listing

OBJECTS = ("s3", "gs", "az")
SCHEMES = (*OBJECTS, "kafka", "nats", "http", "https")
_ADDRESS = re.compile(r"(s3|gs|az|kafka|nats|https?)://([^/?]*)(?:/([^?]*))?(?:\?(.*))?", re.DOTALL)
_SECRET = re.compile(r"((?:secret|token|key|password|sig)[^=&]*=)[^&\s]*", re.IGNORECASE)
#: Whoever knows the whole address of a webhook may post to it.
_HOOK = re.compile(r"(https://[^/?\s]*/)[^\s]*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """A place that is no file here; `settings` may hold secrets and are never shown."""

    scheme: str
    #: A bucket, the brokers, or a host and a port.
    host: str
    #: A key or pattern of objects, a topic, or the name that is posted to.
    path: str
    settings: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)
    #: Who is meant to ask, with a password.
    user: str = field(default="", repr=False, hash=False)

    @property
    def is_objects(self) -> bool:
        return self.scheme in OBJECTS

    @property
    def is_messages(self) -> bool:
        """Whether it is a place of messages, not of rows that can be looked at."""
        return self.scheme in SCHEMES and not self.is_objects


def is_elsewhere(text: str) -> bool:
    return text.partition("://")[0] in SCHEMES and "://" in text


def shown(text: str) -> str:
    """An address without its secrets."""
    return _HOOK.sub(r"\1***", _SECRET.sub(r"\1***", masked(text)))


def parse_elsewhere(text: str) -> Elsewhere:
    match = _ADDRESS.fullmatch(text)
    assert match is not None, shown(text)
    scheme, host, path, query = match.groups()
    user, _, host = host.rpartition("@")
    settings = dict(parse_qsl(query or "", keep_blank_values=True))
    parts = {
        "kafka": "topic",
        "nats": "stream",
        **dict.fromkeys(("http", "https"), "path behind its host"),
    }
    if not host or not path:
        example = {"kafka": "kafka://localhost:9092/trades", "nats": "nats://localhost:4222/TRADES",
                   "http": "http://127.0.0.1:8080/trades",
                   "https": "https://hooks.example.org/port"}  # fmt: skip
        raise UsageError(
            f"this address names no {'host' if not host else parts.get(scheme, 'object')}",
            place=shown(text), hint=f"such as {example.get(scheme, f'{scheme}://bucket/trades.csv')}",
        )  # fmt: skip
    if scheme not in OBJECTS:
        _refuse_wrong_ports(host, shown(text))
    if user and scheme == "kafka":
        raise UsageError("Kafka has no users before the host", place=shown(text),
                         hint="write ?security.protocol=SASL_SSL&sasl.mechanism=PLAIN&"
                         "sasl.username=...&sasl.password=...")  # fmt: skip
    return Elsewhere(scheme, host, path, settings, user)


def _refuse_wrong_ports(hosts: str, text: str) -> None:
    for host in hosts.split(","):
        name, colon, port = host.rpartition(":")
        has_port = bool(colon) and not host.endswith("]")
        if not (name if has_port else host):
            raise UsageError("this address names no host", place=text)
        is_number = port.isascii() and port.isdigit()
        if has_port and not (is_number and int(port) <= 65_535):
            raise UsageError(f'"{port}" is no port', place=text,
                             hint="a port is a number up to 65535")  # fmt: skip


def refuse_settings(place: Elsewhere, known: tuple[str, ...], text: str) -> None:
    for key in place.settings:
        if key not in known:
            raise UsageError(f'unknown setting "{key}" of an address {place.scheme}://',
                             place=text, hint=f"settings are: {listing(known)}")  # fmt: skip
