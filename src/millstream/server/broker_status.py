"""How a broker goes: where all rows have gone, how far time is known, what is missing."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from millstream.broker.ticks import Fate
from millstream.calculus.types import START_OF_TIME
from millstream.languages.served import Always
from millstream.server.routes import Reply, RouteCall

if TYPE_CHECKING:
    from millstream.server.broker_run import BrokerRun

#: So many gaps of a publisher are shown.
_MOST_GAPS = 10


def status(call: RouteCall) -> Reply:
    run: BrokerRun = call.serving
    broker = run.broker
    streams: dict[str, Any] = {}
    for name, ticks in broker.knowledge.ticks.items():
        fates = {fate.value: ticks.counts[fate.value] for fate in Fate}
        streams[name] = {
            **fates, "published": sum(fates.values()),
            "horizon": None if ticks.horizon == START_OF_TIME else ticks.horizon,
            "known_above_horizon": len(ticks.taken), "is_over": ticks.is_over,
            "silences": broker.knowledge.silences[name],
        }  # fmt: skip
    record = {
        "status": run.status, "log": broker.identity, "position": broker.log.durable,
        "log_bytes": broker.log_bytes, "cut_bytes": broker.log.cut,
        "retention": _retained(run),
        "checkpoint": {"position": broker.soft_log.position, "failed": broker.soft_log.failed},
        "views_at": min((v.position for v in broker.views.values()), default=0),
        "views": _how(run), "streams": streams, "waiting_for": _gaps(run),
        "seconds": round(time.monotonic() - run.started, 1),
    }  # fmt: skip
    if run.node is not None and run.peers is not None:
        record["links"] = {**run.node.status(), "reached_seconds_ago": run.peers.status()}
    return Reply(record)


def _retained(run: BrokerRun) -> dict[str, Any]:
    """What has gone of the log, and why no more of it has."""
    broker = run.broker
    base = broker.base
    always = {
        name: need.reason
        for name, needs in broker.served.needs.items() for need in needs
        if isinstance(need, Always)
    }  # fmt: skip
    return {
        "gone_up_to": 0 if base is None else base.position,
        "complete_since": {} if base is None else dict(base.since),
        "kept_because": run.keeps_because or {**always, **broker.retention.kept},
    }


def _how(run: BrokerRun) -> str:
    if run.broker.evaluations is None:
        return "being made from the log"
    return "compiled" if run.is_compiled else "interpreted"


def _gaps(run: BrokerRun) -> list[dict[str, Any]]:
    """Batches that have not come though later ones have."""
    made: list[dict[str, Any]] = []
    for name, publisher in list(run.broker.knowledge.publishers.items()):
        for first, last in publisher.seen.gaps()[:_MOST_GAPS]:
            made.append({"publisher": name, "first": first, "last": last})
    return made[:1000]


def metrics(call: RouteCall) -> Reply:
    """The same as lines of text, by the names of streams and views."""
    run: BrokerRun = call.serving
    broker = run.broker
    lines = ["# TYPE millstream_rows_total counter"]
    for name, ticks in broker.knowledge.ticks.items():
        for fate in Fate:
            labels = f'stream="{_label(name)}",fate="{fate.value}"'
            lines.append(f"millstream_rows_total{{{labels}}} {ticks.counts[fate.value]}")
    lines.append("# TYPE millstream_horizon_seconds gauge")
    for name, ticks in broker.knowledge.ticks.items():
        if ticks.horizon > START_OF_TIME:
            seconds = ticks.horizon / 1e6
            lines.append(f'millstream_horizon_seconds{{stream="{_label(name)}"}} {seconds}')
    lines.append("# TYPE millstream_view_rows gauge")
    for name, view in broker.views.items():
        lines.append(f'millstream_view_rows{{view="{_label(name)}"}} {len(view.rows)}')
    for name, value in (
        ("log_position", broker.log.durable), ("log_bytes", broker.log_bytes),
        ("unseen_records", len(broker.unseen)), ("subscribers", len(run.waking)),
    ):  # fmt: skip
        lines += [f"# TYPE millstream_{name} gauge", f"millstream_{name} {value}"]
    return Reply(None, text="\n".join(lines) + "\n")


def _label(name: str) -> str:
    return name.replace("\\", "\\\\").replace('"', '\\"')
