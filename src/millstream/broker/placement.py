"""Reading `brokers.toml`: which brokers there are, what is where, and who is linked with whom.

    [broker.buys]
    address = "http://127.0.0.1:8101"
    streams = ["BuyBids"]
    views = ["RemainingBuy"]

    [link.matches-to-buys]
    from = "matches"
    to = "buys"
    lazy = true

    [size]
    BuyBids = 20000

Views that stand nowhere live with their largest input. Without any link all brokers are linked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from millstream.errors import CheckError, Fault, ParseError, UsageError, listing, suggest
from millstream.source import Source
from millstream.tables import Tables, parse_toml

_BROKER, _LINK, _SIZE = "broker", "link", "size"
_KEYS = {_BROKER: ("address", "streams", "views"), _LINK: ("from", "to", "lazy")}
_NAME = re.compile(r"[A-Za-z0-9_-]{1,60}")


@dataclass(frozen=True, slots=True)
class Link:
    sender: str
    receiver: str
    is_lazy: bool


@dataclass
class Placement:
    """What a file says; names of streams and views are checked when the program is known."""

    source: Source
    #: Addresses, by broker.
    brokers: dict[str, str] = field(default_factory=dict)
    streams: dict[str, str] = field(default_factory=dict)
    views: dict[str, str] = field(default_factory=dict)
    links: list[Link] = field(default_factory=list)
    rows: dict[str, int] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)

    @property
    def first(self) -> str:
        return next(iter(self.brokers))

    def hosts(self, streams: Iterable[str]) -> dict[str, str]:
        """The broker of each stream of a program; all must be somewhere."""
        tables = Tables(self.source, self.faults)
        known = list(streams)
        for name in (*self.streams, *self.rows):
            if name not in known:
                hint = f"streams are: {listing(known)}. {suggest(name, known) or ''}".strip()
                key = "streams" if name in self.streams else name
                table = f"{_BROKER}.{self.streams[name]}" if name in self.streams else _SIZE
                tables.fail(f'there is no stream "{name}"', tables.place(table, key), hint)
        for name in known:
            if name not in self.streams:
                hint = f'add it to the streams of a broker: streams = ["{name}"]'
                tables.fail(f"no broker has the stream {name}", tables.place(_BROKER), hint)
        if self.faults:
            raise CheckError(self.faults)
        return {name: self.streams[name] for name in known}

    def sizes(self, streams: Iterable[str]) -> dict[str, int]:
        return {name: self.rows.get(name, 1) for name in streams}

    def unknown_view(self, name: str, known: list[str]) -> None:
        tables = Tables(self.source, self.faults)
        hint = f"views are: {listing(known)}. {suggest(name, known) or ''}".strip()
        place = tables.place(f"{_BROKER}.{self.views[name]}", "views")
        tables.fail(f'there is no view "{name}" that anybody subscribes to', place, hint)

    def check_broker(self, name: str) -> None:
        if name not in self.brokers:
            hint = f"brokers are: {listing(self.brokers)}. {suggest(name, self.brokers) or ''}"
            raise UsageError(f'there is no broker "{name[:80]}"', hint=hint.strip())

    def way(self, sender: str, receiver: str, relation: str) -> list[str]:
        """The brokers that a relation passes, from the one that makes it: as few as can be."""
        if not self.links:
            return [sender, receiver]
        ways = {sender: [sender]}
        waiting = [sender]
        while waiting and receiver not in ways:
            at = waiting.pop(0)
            for link in self.links:
                if link.sender == at and link.receiver not in ways:
                    ways[link.receiver] = [*ways[at], link.receiver]
                    waiting.append(link.receiver)
        if receiver not in ways:
            tables = Tables(self.source)
            message = f"{receiver} reads {relation}, which {sender} makes, and no link goes there"
            hint = f'add a [link.NAME] with from = "{sender}" and to = "{receiver}"'
            raise CheckError(message, span=tables.place(f"{_BROKER}.{receiver}"), hint=hint)
        return ways[receiver]

    def is_lazy(self, sender: str, receiver: str) -> bool:
        return Link(sender, receiver, is_lazy=True) in self.links


def read_placement(source: Source) -> Placement:
    """What a text says, or an error with every fault in it."""
    document = parse_toml(source)
    tables = Tables(source)
    made = Placement(source, faults=tables.faults)
    known = (_BROKER, _LINK, _SIZE)
    for section in document:
        if section not in known:
            hint = f"there can be: {listing(known)}. {suggest(section, known) or ''}".strip()
            tables.fail(f"unknown table [{section}]", tables.place(section), hint)
    for name, table in tables.tables(document, _BROKER):
        _read_broker(tables, made, name, table)
    for name, table in tables.tables(document, _LINK):
        _read_link(tables, made, name, table)
    _read_sizes(tables, made, document.get(_SIZE, {}))
    if not made.brokers and not tables.faults:
        tables.fail("there are no brokers in this file", None, "add [broker.NAME]")
    if tables.faults:
        raise ParseError(tables.faults)
    return made


def _read_broker(tables: Tables, made: Placement, name: str, table: dict[str, Any]) -> None:
    called = f"{_BROKER}.{name}"
    tables.keys(table, called, _KEYS[_BROKER])
    if _NAME.fullmatch(name) is None:
        tables.fail("a broker has a name of letters and digits", tables.place(called))
    address = tables.text(table, called, "address")
    parts = urlsplit(address)
    try:
        is_whole = parts.scheme in ("http", "https") and parts.port is not None
    except ValueError:
        is_whole = False
    if address and (not is_whole or parts.path.strip("/")):
        hint = 'write address = "http://127.0.0.1:8101"'
        tables.fail("expected an address with its port", tables.place(called, "address"), hint)
    if address.rstrip("/") in made.brokers.values():
        tables.fail("two brokers have this address", tables.place(called, "address"))
    made.brokers[name] = address.rstrip("/")
    for key, homes in (("streams", made.streams), ("views", made.views)):
        for one in _list(tables, table, called, key):
            if one in homes:
                message = f"{one} is at {homes[one]} already"
                tables.fail(message, tables.place(called, key))
            homes[one] = name


def _list(tables: Tables, table: dict[str, Any], called: str, key: str) -> list[str]:
    value = table.get(key, [])
    if isinstance(value, list) and all(isinstance(v, str) for v in value):
        return value
    tables.fail(f'expected "{key}" to be a list of names', tables.place(called, key))
    return []


def _read_link(tables: Tables, made: Placement, name: str, table: dict[str, Any]) -> None:
    called = f"{_LINK}.{name}"
    tables.keys(table, called, _KEYS[_LINK])
    ends = {key: tables.text(table, called, key) for key in ("from", "to")}
    for key, end in ends.items():
        if end and end not in made.brokers:
            near = suggest(end, made.brokers) or ""
            hint = f"brokers are: {listing(made.brokers)}. {near}".strip()
            tables.fail(f'there is no broker "{end}"', tables.place(called, key), hint)
    if ends["from"] == ends["to"] != "":
        tables.fail("a link goes from one broker to another", tables.place(called, "to"))
    lazy = table.get("lazy", False)
    if not isinstance(lazy, bool):
        tables.fail('expected "lazy" to be true or false', tables.place(called, "lazy"))
    made.links.append(Link(ends["from"], ends["to"], lazy is True))


def _read_sizes(tables: Tables, made: Placement, sizes: Mapping[str, Any]) -> None:
    if not isinstance(sizes, dict):
        tables.fail("expected a table [size]", None, "write [size] and then BuyBids = 20000")
        return
    for name, rows in sizes.items():
        if isinstance(rows, bool) or not isinstance(rows, int) or rows < 0:
            tables.fail("expected a number of rows", tables.place(_SIZE, name))
        else:
            made.rows[name] = rows
