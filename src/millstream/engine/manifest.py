"""Manifests: what a batch has done, written when it is done, in one file.

With its manifest a batch is over: its results are named in it, and all counts up to it.
What is delivered, planned next and reported follows from manifests alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from millstream.calculus.graph import Program
from millstream.engine.ahead import joined, released
from millstream.engine.clock import SeenOfInput
from millstream.engine.job import InputCounts
from millstream.engine.messages import Message
from millstream.engine.storage.files import Files
from millstream.engine.storage.records import read_record, write_record
from millstream.values.rejection import add_fault

FOLDER = "batches"

Manifest = dict[str, Any]


def manifest_name(version: int) -> str:
    return f"{FOLDER}/{version:09}"


def read_manifest(files: Files, version: int) -> Manifest:
    manifest: Manifest = read_record(files, manifest_name(version))
    return manifest


def write_manifest(files: Files, manifest: Manifest) -> None:
    write_record(files, manifest_name(manifest["version"]), manifest)


def last_manifest(files: Files) -> Manifest | None:
    """The manifest of the newest batch that is over."""
    names = files.names(FOLDER)
    return read_manifest(files, int(names[-1])) if names else None


def first_manifest(program: Program) -> Manifest:
    """What is known before the first batch."""
    return {
        "version": -1, "batch": -1, "sources": 0, "mark": None,
        "log": {name: {"largest": None} for name in program.input_names},
        "counts": {name: _counts(InputCounts()) for name in program.input_names},
        "written": dict.fromkeys(program.outputs, 0), "faults": {},
        "state": 0, "deltas": 0, "since": 0, "results": [], "rejected": {}, "notes": {},
    }  # fmt: skip


def _counts(counts: InputCounts) -> dict[str, int]:
    return {
        "read": counts.read, "processed": counts.processed, "waiting": counts.waiting,
        "late": counts.late, "rejected": counts.rejected, "behind": counts.behind,
    }  # fmt: skip


def manifest_of(
    before: Manifest,
    batch: int,
    messages: Sequence[Message],
    written: Mapping[str, int],
    notes: Mapping[str, bytes],
) -> Manifest:
    """The manifest of the batch after another, from what its tasks have told.

    `written` counts the rows of the batches before it: how many its own are is known only
    when results have been put together, which is done when it is over. `notes` are files that
    are as durable as the batch.
    """
    counts = {name: dict(c) for name, c in before["counts"].items()}
    rejected: dict[str, list[Any]] = {}
    faults: dict[str, int] = {}
    results: list[Any] = []
    for message in sorted(messages, key=lambda m: m["from"]):
        _count(message, counts, rejected)
        for what, count in message.get("faults", {}).items():
            faults[what] = faults.get(what, 0) + count
        results += message["results"]
    stages = [m for m in messages if "mark" in m]
    mark = later(before["mark"], stages[-1]["mark"])
    read_faults = dict(before.get("read_faults", {}))
    for message in messages:
        for what, count in message.get("read_faults", {}).items():
            add_fault(read_faults, what, count)
    for what, count in read_faults.items():
        faults[what] = faults.get(what, 0) + count
    known = stages[-1]["known"]
    snapshots = [m["snapshot"] for m in stages if m["snapshot"] is not None]
    deltas = sum(m["delta"] for m in stages)
    sources = max([before["sources"], *(m["seq"] + 1 for m in messages if "seq" in m)])
    return {
        "version": before["version"] + 1, "batch": batch, "sources": sources,
        "mark": mark, "ahead": _released_ahead(before, messages, mark, counts),
        "read_faults": read_faults,
        "log": {name: {"largest": k[0]} for name, k in zip(before["log"], known, strict=True)},
        "silent": [k[1] for k in known],
        "counts": counts, "written": dict(written), "faults": faults,
        "state": sum(snapshots) if snapshots else before["state"],
        "deltas": 0 if snapshots else before["deltas"] + deltas,
        "since": 0 if snapshots else before["since"] + 1,
        "results": results, "rejected": rejected, "notes": dict(notes),
    }  # fmt: skip


def _count(
    message: Message, counts: dict[str, dict[str, int]], rejected: dict[str, list[Any]]
) -> None:
    for one in message.get("inputs", ()):
        mine = counts[one["input"]]
        for what in ("read", "late", "rejected"):
            mine[what] += one[what]
        mine["waiting"] += one["accepted"]
        mine["behind"] = max(mine.get("behind", 0), one["behind"])
        rejected.setdefault(one["input"], []).extend(one["rejected_rows"])
    for name, count in message.get("released", {}).items():
        counts[name]["waiting"] -= count
        counts[name]["processed"] += count
    for name, count in message.get("late", {}).items():
        counts[name]["waiting"] -= count
        counts[name]["late"] += count
    for name, furthest in message.get("behind", {}).items():
        counts[name]["behind"] = max(counts[name].get("behind", 0), furthest)
    for name, count in message.get("unsound", {}).items():
        counts[name]["waiting"] -= count
        counts[name]["rejected"] += count
    for row in message.get("rejected", ()):
        rejected.setdefault(row[0], []).append(row)


def _released_ahead(
    before: Manifest,
    messages: Sequence[Message],
    mark: int | None,
    counts: dict[str, dict[str, int]],
) -> dict[str, Any]:
    """The numbers of rows that wait, of those that were made into others where they were read."""
    waiting: dict[str, list[Any]] = {n: [runs] for n, runs in before.get("ahead", {}).items()}
    for message in messages:
        for name, runs in message.get("ahead", {}).items():
            waiting.setdefault(name, []).append(runs)
    still: dict[str, Any] = {}
    for name, runs in waiting.items():
        count, still[name] = released(joined(runs), mark)
        counts[name]["waiting"] -= count
        counts[name]["processed"] += count
    return still


def later(one: int | None, other: int | None) -> int | None:
    if one is None or other is None:
        return other if one is None else one
    return max(one, other)


def known_in(manifest: Manifest) -> tuple[SeenOfInput, ...]:
    """What is known of the inputs after a batch; whether they go on is told anew."""
    return tuple(SeenOfInput(one["largest"]) for one in manifest["log"].values())
