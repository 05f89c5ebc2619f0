"""The routes of a broker: publish to streams, ask views, subscribe to them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import orjson
from fastapi import Response

from millstream.broker.core import Accepted, Answer, Publish, Request, Silence, digest_of
from millstream.broker.cursor import Subscriber
from millstream.broker.knowledge import NOBODY
from millstream.broker.parsing import rows_of_arrow, rows_of_lines
from millstream.calculus.types import TIME
from millstream.connectors.values import Numeral, Unfit, from_json
from millstream.errors import MillstreamError, listing, suggest
from millstream.languages.served import ServedStream, ServedView
from millstream.server.app import page_of
from millstream.server.broker_run import BrokerRun
from millstream.server.broker_status import metrics, status
from millstream.server.events import EventStream
from millstream.server.gate import ALLOWANCE
from millstream.server.linking import LINK_ROUTE
from millstream.server.questions import ASKED, LISTENED, question
from millstream.server.replies import faults_record
from millstream.server.routes import Bounds, Form, Refusal, Reply, Route, RouteCall, TokenScope
from millstream.server.talking import talk
from millstream.server.view_state import state

if TYPE_CHECKING:
    from fastapi import Request as HttpRequest

#: A batch has at most so many bytes, and a publisher's name so many characters.
LARGEST_BATCH, _LONGEST_NAME = 16 << 20, 200
_LARGEST_SEQUENCE = 1 << 62
#: So many bytes are read in less time than another thread would need to begin.
_AT_ONCE = 4096


# --- publishing ---


async def _publish(call: RouteCall, request: HttpRequest) -> Response:
    run: BrokerRun = call.serving
    stream = _stream(call)
    publisher, sequence = _numbered(call)
    is_arrow = request.headers.get("content-type", "").startswith(Form.ARROW.value)
    read = rows_of_arrow if is_arrow else rows_of_lines
    try:
        if len(call.body) <= _AT_ONCE:
            rows = read(stream, call.body)
        else:
            rows = await asyncio.to_thread(read, stream, call.body)
    except Unfit as unfit:
        raise Refusal(400, str(unfit)) from None
    request.scope[ALLOWANCE].take("rows", len(rows))
    digest = digest_of(stream.name, call.body)
    answer = await _durable(run, Publish(stream.name, rows, digest, publisher, sequence))
    return _json({"position": answer.position, "rows": [j.record() for j in answer.judged]})


async def _silence(call: RouteCall, request: HttpRequest) -> Response:
    stream = _stream(call)
    try:
        body = orjson.loads(call.body)
        through = body["through"]
        given = Numeral(through) if isinstance(through, int) else through
        tick = from_json(TIME.kind, given)
    except (orjson.JSONDecodeError, KeyError, TypeError, Unfit):
        tick = None
    if not isinstance(tick, int):
        raise Refusal(400, "expected a tick", 'write {"through": "2026-12-31T17:00:00Z"}')
    publisher = call.query.get("publisher", NOBODY)
    answer = await _durable(call.serving, Silence(stream.name, tick, publisher))
    return _json({"position": answer.position})


async def _durable(run: BrokerRun, request: Request) -> Accepted:
    answer: Answer = await asyncio.wrap_future(run.ask(request))
    if not isinstance(answer, Accepted):
        raise Refusal(answer.status, answer.reason)
    return answer


def _numbered(call: RouteCall) -> tuple[str, int]:
    """Who publishes, and the number of the batch; both or none."""
    publisher, text = call.query.get("publisher"), call.query.get("sequence")
    if publisher is None and text is None:
        return NOBODY, 0
    is_number = text is not None and text.isascii() and text.isdecimal() and len(text) < 20
    if not publisher or not is_number or len(publisher) > _LONGEST_NAME:
        hint = "write ?publisher=NAME&sequence=N, and count batches from 1"
        raise Refusal(400, "a batch is numbered by its publisher and a sequence", hint)
    sequence = int(text or "")
    if sequence > _LARGEST_SEQUENCE:
        raise Refusal(400, f"a sequence is at most {_LARGEST_SEQUENCE}")
    return publisher, sequence


def _stream(call: RouteCall) -> ServedStream:
    streams = call.serving.served.hosted
    name = call.path["stream"]
    part = call.serving.served.part
    if name not in streams:
        place = None if part is None else part.place_of(name)
        if place is not None and name not in call.serving.served.views:
            raise Refusal(404, f"{name} is at the broker {place}")
        near = suggest(name, streams) or ""
        hint = f"streams are: {listing(streams)}. {near}".strip()
        raise Refusal(404, f'there is no stream "{name[:80]}"', hint)
    stream: ServedStream = streams[name]
    return stream


# --- views ---


async def _changes(call: RouteCall, request: HttpRequest) -> Response:
    run: BrokerRun = call.serving
    wanted = question(run, call.path["view"], call.query)
    run.check_views()
    after = request.headers.get("last-event-id") or call.query.get("after")
    return EventStream(run, Subscriber(run.broker, wanted, after), call.form)


# --- views that come and go ---


async def _add(call: RouteCall, request: HttpRequest) -> Response:
    name = call.path["view"]
    if re.fullmatch(r"#?[^\W\d]\w{0,60}", name) is None:
        raise Refusal(400, "a view has a name of letters and digits")
    try:
        query = call.body.decode().strip()
    except UnicodeDecodeError:
        raise Refusal(400, "expected a query in UTF-8") from None

    def change(added: dict[str, str]) -> None:
        if name in call.serving.coming.views or name in call.serving.served.streams:
            raise Refusal(409, f'there is a "{name}" already')
        added[name] = query

    return await _changed(call.serving, change, 400)


async def _drop(call: RouteCall, request: HttpRequest) -> Response:
    name, run = call.path["view"], call.serving

    def change(added: dict[str, str]) -> None:
        if name in added:
            needed_by = sorted(run.coming.made_of(name) & added.keys())
            if needed_by:
                hint = f"drop {listing(needed_by)} first"
                raise Refusal(409, f"{listing(needed_by)} is made of {name}", hint)
            del added[name]
        elif name in call.serving.served.views:
            raise Refusal(409, f"{name} stands in the file", "only what was added can be dropped")
        else:
            raise Refusal(404, f'there is no view "{name[:80]}"')

    return await _changed(call.serving, change, 409)


async def _changed(
    run: BrokerRun, change: Callable[[dict[str, str]], None], status: int
) -> Response:
    """All that is wrong is told at once; who drops what others need is told who needs it."""
    try:
        answer = await asyncio.to_thread(run.change_views, change)
    except MillstreamError as error:
        return Response(orjson.dumps(faults_record(error)), status, media_type=Form.JSON.value)
    if not isinstance(answer, Accepted):
        raise Refusal(answer.status, answer.reason)
    return _json({"position": answer.position})


def _views(call: RouteCall) -> Reply:
    run: BrokerRun = call.serving
    return Reply({"views": [_described(v) for v in run.served.views.values()]})


def _described(view: ServedView) -> dict[str, Any]:
    made: dict[str, Any] = {
        "name": view.name, "can_be_final": view.can_be_final, "as_rows_arrive": view.is_live,
        "columns": [{"name": f.name, "type": str(f.type)} for f in view.schema],
    }  # fmt: skip
    return made if view.as_of is None else made | {"as_of": view.as_of}


def _streams(call: RouteCall) -> Reply:
    run: BrokerRun = call.serving
    streams = [
        {"name": s.name, "key": s.key, "slack": s.slack, "until": s.until,
         "heartbeat": s.heartbeat,
         "columns": [{"name": f.name, "type": str(f.type)} for f in s.input.type.schema]}
        for s in run.served.hosted.values()
    ]  # fmt: skip
    return Reply({"streams": streams})


def _json(record: dict[str, Any]) -> Response:
    return Response(orjson.dumps(record), media_type=Form.JSON.value)


_BATCH = {"publisher": "who publishes", "sequence": "the number of the batch"}

BROKER_ROUTES: tuple[Route, ...] = (
    Route("GET", "/", TokenScope.OPEN, "This page", lambda _: page_of(BROKER_ROUTES),
          forms=(Form.HTML,), is_early=True),
    Route("GET", "/status", TokenScope.READ, "Conservation, horizons and gaps", status,
          is_early=True),
    Route("GET", "/metrics", TokenScope.READ, "The same for Prometheus", metrics,
          forms=(Form.TEXT,),
          is_early=True),
    Route("GET", "/streams", TokenScope.READ, "The streams", _streams, is_early=True),
    Route("POST", "/streams/{stream}", TokenScope.PUBLISH, "Publish a batch of rows", acts=_publish,
          bounds=Bounds(LARGEST_BATCH, 30.0), parameters=_BATCH),
    Route("POST", "/streams/{stream}/silence", TokenScope.PUBLISH,
          "Say that nothing comes up to a tick",
          acts=_silence, parameters={"publisher": "who says so"},
          example={"through": "2026-12-31T17:00:00Z"}),
    Route("GET", "/views", TokenScope.READ, "The views", _views, is_early=True),
    Route("GET", "/views/{view}", TokenScope.READ, "The rows of a view now", acts=state,
          forms=(Form.JSON, Form.ARROW, Form.CSV),
          parameters=ASKED | {"position": "at least what is in the log up to here"}),
    Route("PUT", "/views/{view}", TokenScope.ADMIN, "Add a view: SELECT ...", acts=_add),
    Route("DELETE", "/views/{view}", TokenScope.ADMIN, "Drop a view that was added", acts=_drop),
    Route("GET", "/views/{view}/changes", TokenScope.READ, "The rows, and then what changes",
          acts=_changes, forms=(Form.EVENTS, Form.ARROW),
          parameters=LISTENED),
    Route("GET", "/views/{view}/subscribe", TokenScope.READ, "The same over a WebSocket",
          talk=talk, parameters=LISTENED),
    LINK_ROUTE,
)  # fmt: skip
