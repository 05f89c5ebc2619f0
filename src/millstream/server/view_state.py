"""The rows of a view now, or as soon as it has what somebody knows to be in the log."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from fastapi import Response

from millstream.broker.asking import AskedRows
from millstream.broker.cursor import token_of
from millstream.broker.evaluate import Changes
from millstream.calculus.types import TEXT, Row, Value
from millstream.languages.served import MASK_COLUMN
from millstream.olap.tables import AnswerTable
from millstream.plan.batch import vector_of
from millstream.server.questions import question
from millstream.server.replies import written
from millstream.server.routes import Refusal, Reply, RouteCall

if TYPE_CHECKING:
    from fastapi import Request

    from millstream.server.broker_run import BrokerRun

#: So long somebody waits for a position, in seconds.
_PATIENCE = 5.0


async def state(call: RouteCall, request: Request) -> Response:
    run: BrokerRun = call.serving
    wanted = question(run, call.path["view"], call.query)
    run.check_views()
    await _reached(run, wanted, _position(run, call))
    content, headers = await asyncio.to_thread(_written, run, wanted, call)
    return Response(content, 200, headers, call.form.value)


def _position(run: BrokerRun, call: RouteCall) -> int:
    text = call.query.get("position", "0")
    if not (text.isascii() and text.isdecimal() and len(text) < 19):
        hint = "it is told when a batch is acknowledged"
        raise Refusal(400, "a position is a number of the log", hint)
    if int(text) > run.broker.log.durable:
        raise Refusal(400, f"the log has {run.broker.log.durable:,} records by now")
    return int(text)


async def _reached(run: BrokerRun, wanted: AskedRows, position: int) -> None:
    """Return when the view has all up to a position of the log."""
    loop, news = asyncio.get_running_loop(), asyncio.Event()

    def told() -> None:
        with suppress(RuntimeError):  # the loop may have ended
            loop.call_soon_threadsafe(news.set)

    end = run.listen(told)
    try:
        async with asyncio.timeout(_PATIENCE):
            while _at(run, wanted) < position:
                await news.wait()
                news.clear()
    except TimeoutError:
        message = f"{wanted.view.name} is as of {_at(run, wanted):,} and not yet of {position:,}"
        raise Refusal(503, message, "ask again in a moment", {"Retry-After": "1"}) from None
    finally:
        end()


def _at(run: BrokerRun, wanted: AskedRows) -> int:
    view = run.broker.views.get(wanted.view.name)
    if view is None:
        raise Refusal(404, f"{wanted.view.name} has just been dropped")
    return view.position


def _written(run: BrokerRun, wanted: AskedRows, call: RouteCall) -> tuple[bytes, dict[str, str]]:
    broker = run.broker
    with broker.showing:
        position = _at(run, wanted)
        rows = dict(broker.views[wanted.view.name].rows)
        horizons = broker.horizons
        open_ticks = wanted.open_ticks(broker.open_ticks)
    shown = wanted.bounded(wanted.shown(rows), open_ticks)
    token = token_of(broker, wanted, position)
    headers = {"Millstream-Token": token, "Millstream-Position": str(position)}
    record = {"view": wanted.view.name, "position": position, "token": token,
              "horizons": horizons, "rows": wanted.records(shown)}  # fmt: skip
    if open_ticks:
        record["open"] = open_ticks
    if since := broker.complete_since(wanted.view.name):
        record["complete_since"] = since
    return written(Reply(record, _table(wanted, shown), headers), call.form), headers


def _table(wanted: AskedRows, shown: Changes) -> AnswerTable:
    """The rows as columns, by the names that records have."""
    rows: list[Row] = [row for row, count in shown.items() for _ in range(count)]
    fields = [wanted.view.schema.fields[n] for n in wanted.columns]
    names, vectors = [], []
    for number, field in enumerate(fields):
        values: list[Value] = [row[number] for row in rows]
        if field.name == MASK_COLUMN:
            names.append("_mask")
            vectors.append(vector_of(TEXT, ["T" if is_sure else "t" for is_sure in values]))
        else:
            names.append(field.name)
            vectors.append(vector_of(field.type, values))
    return AnswerTable(tuple(names), tuple(vectors), len(rows))
