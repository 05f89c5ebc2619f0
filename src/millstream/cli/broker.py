"""`millstream publish` and `millstream subscribe`: a broker from the command line."""

from __future__ import annotations

import argparse
import csv
import itertools
import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TextIO

from millstream.client import Client
from millstream.errors import UsageError

_SETTING = "MILLSTREAM_TOKEN"
#: How values of columns are read from a CSV file, where all are texts.
_READ: dict[str, Callable[[str], Any]] = {
    "integer": int, "number": float, "boolean": lambda text: text.lower() == "true",
}  # fmt: skip
_SHOWN = 5


def publish(arguments: argparse.Namespace) -> int:
    """Send the rows of a file, or of standard input, in numbered batches."""
    client = _client(arguments)
    columns = _columns(client, arguments.stream)
    name = arguments.publisher or f"{os.getpid()}-{os.urandom(4).hex()}"
    publisher = client.publisher(name, arguments.sequence)
    fates: Counter[str] = Counter()
    reasons: list[str] = []
    with ExitStack() as stack:
        rows = _rows(arguments.file, columns, stack)
        while batch := list(itertools.islice(rows, arguments.batch)):
            for fate in publisher.publish(arguments.stream, batch):
                fates[fate["fate"]] += 1
                if "reason" in fate and len(reasons) < _SHOWN:
                    reasons.append(f"{fate['fate']}: {fate['reason']}")
    fates_told = ", ".join(f"{count} {fate}" for fate, count in fates.items()) or "no rows"
    print(f"{fates_told}; next sequence of {name}: {publisher.sequence}", file=sys.stderr)
    for reason in reasons:
        print(f"    {reason}", file=sys.stderr)
    return 0


def subscribe(arguments: argparse.Namespace) -> int:
    """Print the rows of a view, and then what changes, a JSON object a line."""
    client = _client(arguments)
    asked = {
        "where": arguments.where, "ranges": arguments.ranges or None,
        "mask": arguments.mask or None, "final": "only" if arguments.final else None,
    }  # fmt: skip
    if arguments.once:
        for row in client.rows(arguments.view, **asked):
            print(json.dumps(row, ensure_ascii=False))
        return 0
    for event in client.subscribe(arguments.view, arguments.after, **asked):
        line = {"type": event.kind, "token": event.token, **event.data}
        print(json.dumps(line, ensure_ascii=False), flush=True)
    return 0


def _client(arguments: argparse.Namespace) -> Client:
    """A token in a command could be read by everybody on the machine."""
    token = os.environ.get(_SETTING, "")
    if arguments.token_file:
        try:
            token = Path(arguments.token_file).read_text(encoding="utf-8").split()[0]
        except (OSError, UnicodeDecodeError, IndexError):
            raise UsageError("there is no token in this file", place=arguments.token_file) from None
    if not token:
        raise UsageError("a token is needed", hint=f"set {_SETTING}, or give --token-file FILE")
    return Client(arguments.url, token)


def _columns(client: Client, stream: str) -> dict[str, str]:
    """The types of the columns of a stream; names that there are not are told when rows come."""
    streams = client.ask("GET", "/streams")["streams"]
    columns: dict[str, str] = {}
    for one in streams:
        if one["name"] == stream:
            columns = {c["name"]: c["type"] for c in one["columns"]}
    return columns


def _rows(file: str, columns: dict[str, str], stack: ExitStack) -> Iterator[dict[str, Any]]:
    try:
        lines: TextIO = sys.stdin
        if file != "-":
            opened = Path(file).open(encoding="utf-8-sig", newline="")  # noqa: SIM115 - below
            lines = stack.enter_context(opened)
    except OSError as error:
        raise UsageError(f"cannot read this file: {error.strerror}", place=file) from None
    if file.endswith(".csv"):
        return (_typed(row, columns) for row in csv.DictReader(lines))
    return (_object(line, n, file) for n, line in enumerate(lines, 1) if line.strip())


def _object(line: str, number: int, file: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except json.JSONDecodeError as error:
        raise UsageError(f"this is no JSON: {error.msg}", place=f"{file}:{number}") from None
    if not isinstance(row, dict):
        raise UsageError("expected a JSON object", place=f"{file}:{number}")
    return row


def _typed(row: dict[str, Any], columns: dict[str, str]) -> dict[str, Any]:
    """Values of the types of their columns; the broker says what is wrong with those that fail."""
    made: dict[str, Any] = {}
    for name, text in row.items():
        read = _READ.get(columns.get(name, ""), str)
        try:
            made[name] = read(text) if text else None
        except ValueError:
            made[name] = text
    return made
