"""The application: every route of the table, with what all of them have in common."""

from __future__ import annotations

import asyncio
import html
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

import orjson
from fastapi import FastAPI, Request, Response
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.routing import request_response
from starlette.websockets import WebSocket

import millstream
from millstream.errors import MillstreamError
from millstream.olap.store import CubeStore
from millstream.server.cubes import CUBE_ROUTES
from millstream.server.gate import SCOPES, Gate
from millstream.server.recent import Recent
from millstream.server.replies import (
    STATUSES,
    faults_record,
    form_of,
    refusal_record,
    written,
)
from millstream.server.routes import (
    Form,
    Refusal,
    Reply,
    Route,
    RouteCall,
    Run,
    TokenScope,
    check_words,
)
from millstream.server.serving import Serving
from millstream.server.tokens import Tokens

#: How many questions are worked on at once, and how many may wait.
_WORKERS, _MOST_WAITING = 4, 256


def _status(call: RouteCall) -> Reply:
    """How the run goes: conservation, and how far time has come."""
    serving = call.serving
    report = serving.report
    inputs: dict[str, Any] = {}
    for name, c in (report.inputs if report is not None else {}).items():
        inputs[name] = {
            "read": c.read, "processed": c.processed, "waiting": c.waiting, "late": c.late,
            "rejected": c.rejected, "conserved": c.is_conserved,
        }  # fmt: skip
    versions = {name: store.version.number for name, store in serving.stores.items()}
    return Reply({"status": serving.status, "inputs": inputs, "versions": versions})


def page_of(routes: tuple[Route, ...]) -> Reply:
    """All routes for people."""
    rows = "".join(
        f"<tr><td>{r.method}</td><td><code>{html.escape(r.path)}</code></td>"
        f"<td>{r.scope.value}</td><td>{html.escape(r.summary)}</td></tr>"
        for r in routes
    )
    text = (
        "<!doctype html><html lang=en><meta charset=utf-8><title>Millstream</title>"
        "<style>body{font:16px sans-serif;margin:2em}td{padding:.2em 1em .2em 0}</style>"
        f"<h1>Millstream</h1><table>{rows}</table>"
        "<p>Every route but these two needs <code>Authorization: Bearer TOKEN</code>. "
        'The same for programs: <a href="/openapi.json">/openapi.json</a>.</html>'
    )
    return Reply(None, text=text)


#: All routes. Those of one path that can be mistaken for another's stand before it.
ROUTES: tuple[Route, ...] = (
    Route(
        "GET",
        "/",
        TokenScope.OPEN,
        "This page",
        lambda _: page_of(ROUTES),
        forms=(Form.HTML,),
        is_early=True,
    ),
    Route("GET", "/status", TokenScope.READ, "How the run goes", _status, is_early=True),
    *CUBE_ROUTES,
)
_OPENAPI = "/openapi.json"


def make_app(
    serving: Run, tokens: Tokens, hosts: frozenset[str], routes: tuple[Route, ...] = ROUTES
) -> Gate:
    """The application with its gate; `hosts` are the names it may be asked by."""
    app = FastAPI(
        title="Millstream", version=millstream.__version__, docs_url=None, redoc_url=None,
        openapi_url=_OPENAPI,
    )  # fmt: skip
    workers = ThreadPoolExecutor(_WORKERS, "question")
    waiting = asyncio.Semaphore(_MOST_WAITING)
    recent = Recent()
    if isinstance(serving, Serving):
        for store in serving.stores.values():
            store.make_ready = partial(recent.make_ready, store)
    for route in routes:
        if route.talk is not None:
            app.add_api_websocket_route(route.path, _talk(route, serving))
        else:
            endpoint = _endpoint(route, serving, workers, waiting, recent)
            app.add_api_route(
                route.path, endpoint, methods=[route.method], summary=route.summary,
                openapi_extra=_described(route), response_class=Response,
                name=f"{route.method} {route.path}",
            )  # fmt: skip
            # FastAPI describes the route; what it would look for in a request is none of it.
            described = app.router.routes[-1]
            assert isinstance(described, APIRoute)
            described.app = request_response(endpoint)
    app.add_exception_handler(HTTPException, _no_route)
    open_paths = {r.path for r in routes if r.scope is TokenScope.OPEN} | {_OPENAPI}
    return Gate(app, tokens, hosts, frozenset(open_paths))


async def _no_route(request: Request, fault: Exception) -> Response:
    """What no route is for, in the shape of all refusals."""
    assert isinstance(fault, HTTPException)
    message, hint = "there is no such route", "GET / shows all of them"
    if fault.status_code == 405:
        message = f"this route is not for {request.method}"
    refusal = Refusal(fault.status_code, message, hint, fault.headers)
    return _response(refusal_record(refusal), refusal.status, refusal.headers)


def _described(route: Route) -> dict[str, Any]:
    """What OpenAPI says of a route beyond its path."""
    made: dict[str, Any] = {
        "security": [] if route.scope is TokenScope.OPEN else [{"bearer": [route.scope.value]}],
        "responses": {"200": {"description": "the answer",
                              "content": {form.value: {} for form in route.forms}}},
        "parameters": [
            {"name": name, "in": "query", "description": text, "schema": {"type": "string"}}
            for name, text in route.parameters.items()
        ],
    }  # fmt: skip
    if route.example is not None:
        content = {"application/json": {"example": route.example}}
        made["requestBody"] = {"required": True, "content": content}
    return made


def _talk(route: Route, serving: Run) -> Callable[[WebSocket], Awaitable[None]]:
    talk = route.talk
    assert talk is not None

    async def endpoint(socket: WebSocket) -> None:
        if route.scope not in socket.scope[SCOPES]:
            await socket.close(1008)
            return
        await talk(socket, serving)

    return endpoint


def _endpoint(
    route: Route, serving: Run, workers: ThreadPoolExecutor, waiting: asyncio.Semaphore,
    recent: Recent,
) -> Callable[[Request], Awaitable[Response]]:  # fmt: skip
    """What every route does: scope, body, form, handler, and the answer or why there is none."""

    async def endpoint(request: Request) -> Response:
        try:
            if route.scope not in request.scope[SCOPES]:
                raise Refusal(403, f"this token may not {route.scope.value}")
            if waiting.locked():
                raise Refusal(503, "too many questions at once", None, {"Retry-After": "1"})
            async with waiting:
                return await _answered(route, serving, workers, recent, request)
        except Refusal as refusal:
            return _response(refusal_record(refusal), refusal.status, refusal.headers)
        except TimeoutError:
            message = f"this takes longer than {route.bounds.seconds:g} seconds"
            return _response({"error": message}, 408)
        except MillstreamError as error:
            status = next((s for kind, s in STATUSES if isinstance(error, kind)), 500)
            return _response(faults_record(error), status)

    return endpoint


async def _answered(
    route: Route, serving: Run, workers: ThreadPoolExecutor, recent: Recent, request: Request
) -> Response:
    form = form_of(request.headers.get("accept"), route.forms)
    if route.scope is not TokenScope.OPEN:
        check_words(route.parameters, [word for word, _ in request.query_params.multi_items()])
    async with asyncio.timeout(route.bounds.seconds):
        body = await _body(route, request)
    if not route.is_early:
        serving.check_ready()
    if route.acts is not None:
        call = RouteCall(serving, request.path_params, dict(request.query_params), body, form,
                    route.bounds.seconds)  # fmt: skip
        return await route.acts(call, request)
    store = _store(serving, request) if route.is_kept else None
    key = request.scope["path"], request.scope["query_string"], form, body
    known = None if store is None else recent.get(store, key)
    if known is None:
        call = RouteCall(
            serving, request.path_params, dict(request.query_params), _parsed(route, body), form,
            route.bounds.seconds,
        )  # fmt: skip
        loop = asyncio.get_running_loop()
        known = loop.run_in_executor(workers, _worked_out, route, call)
        if store is not None:
            recent.put(store, key, known, lambda v: _worked_out(route, replace(call, version=v)))
    elif known.done() and not known.exception():
        known.result()[1].again()
    async with asyncio.timeout(route.bounds.seconds + 1.0):
        content, reply = known.result() if known.done() else await asyncio.shield(known)
    return Response(content, 200, dict(reply.headers), form.value)


def _store(serving: Run, request: Request) -> CubeStore | None:
    assert isinstance(serving, Serving)
    return serving.stores.get(request.path_params.get("cube", ""))


def _worked_out(route: Route, call: RouteCall) -> tuple[bytes, Reply]:
    assert route.handler is not None
    reply = route.handler(call)
    return written(reply, call.form), reply


async def _body(route: Route, request: Request) -> bytes:
    """A body, which is never held if it is too long."""
    if route.method not in ("POST", "PUT"):
        return b""
    most = route.bounds.body
    too_long = Refusal(413, f"a body has at most {most:,} bytes")
    length = request.headers.get("content-length", "0")
    if not length.isdecimal() or int(length[:12]) > most:
        raise too_long
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > most:
            raise too_long
        parts.append(part)
    return b"".join(parts)


def _parsed(route: Route, body: bytes) -> Any:
    if route.method != "POST":
        return None
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise Refusal(400, f"this is no JSON: {str(error)[:200]}") from None


def _response(
    record: dict[str, Any], status: int, headers: dict[str, str] | None = None
) -> Response:
    return Response(orjson.dumps(record), status, headers, Form.JSON.value)
