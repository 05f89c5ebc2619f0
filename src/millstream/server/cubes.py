"""The routes of cubes."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from millstream.calculus.lattice import Levels
from millstream.kernels.cube.versions import Version
from millstream.olap.answer import Answer, answer
from millstream.olap.groups import Limits
from millstream.olap.planning import (
    attributes_of,
    is_kept,
    lattice_of,
    levels_of,
    plan,
    steps_down,
    steps_up,
    vertex_record,
)
from millstream.olap.question import Question, QuestionError, grain_named, read_question
from millstream.olap.steps import STEPS, behind, grains_of, next_question
from millstream.olap.store import CubeStore
from millstream.server.routes import Form, Refusal, Reply, Route, RouteCall, TokenScope
from millstream.server.subscriptions import subscribe
from millstream.values.instants import render_time

#: So many vertices are shown at once, and so many members.
MOST_VERTICES, MOST_MEMBERS = 1_000, 10_000
#: Times further back than this are those of old data, not of a job that lags behind.
_LIVE_SECONDS = 86_400


def _cubes(call: RouteCall) -> Reply:
    return Reply({"cubes": [_brief(s) for s in call.serving.stores.values()]})


def _brief(store: CubeStore) -> dict[str, Any]:
    version = store.version
    return {
        "name": store.cube.name, "version": version.number, "as_of": _time(version.mark),
        "dimensions": [list(d) for d in store.cube.function.dimensions],
        "measures": [m.name for m in store.cube.function.measures],
    }  # fmt: skip


def _time(micros: int | None) -> str | None:
    return None if micros is None else render_time(micros)


def _cube(call: RouteCall) -> Reply:
    store = _store(call)
    version, cube = store.version, store.cube.function
    lag = None if version.mark is None else time.time() - version.mark / 1e6
    schema = store.cube.schema
    return Reply(_brief(store) | {
        "dimensions": [
            [{"attribute": a, "type": str(schema[a])} for a in levels] for levels in cube.dimensions
        ],
        "measures": [
            {"name": m.name, "function": m.function, "type": str(m.result_type())}
            for m in cube.measures
        ],
        "grain": str(cube.grain), "window": cube.window, "history": cube.history,
        "vertices": len(lattice_of(cube)),
        "lag_seconds": round(lag, 3) if lag is not None and abs(lag) < _LIVE_SECONDS else None,
        "cells": version.kept[0].size,
        "memory_bytes": sum(kept.bytes for kept in version.kept),
    })  # fmt: skip


def _store(call: RouteCall) -> CubeStore:
    store: CubeStore = call.serving.store(call.path["cube"])
    return store


def _version(call: RouteCall, store: CubeStore) -> Version:
    return call.version or store.version


def _number(call: RouteCall, name: str, usual: int, most: int) -> int:
    text = call.query.get(name, str(usual))
    if not (text.isascii() and text.isdecimal()) or len(text) > 15:
        raise Refusal(400, f'expected "{name}" to be a whole number')
    return min(int(text), most)


def _lattice(call: RouteCall) -> Reply:
    store = _store(call)
    version, cube = store.version, store.cube.function
    lattice, asked = lattice_of(cube), store.asked.all()
    first = _number(call, "from", 0, len(lattice))
    count = _number(call, "limit", 100, MOST_VERTICES)
    kept = {levels_of(cube, k.vertex.attributes): k for k in version.kept}
    shown = []
    for number in range(first, min(len(lattice), first + count)):
        levels = lattice.vertex(number)
        vertex = kept.get(levels)
        shown.append(vertex_record(cube, levels, cube.grain) | {
            "materialised": vertex is not None,
            "cells": None if vertex is None else vertex.size,
            "bytes": None if vertex is None else vertex.bytes,
            "asked": asked.get(levels, 0),
        })  # fmt: skip
    return Reply({"vertices": shown, "in_all": len(lattice), "version": version.number})


def _members(call: RouteCall) -> Reply:
    store = _store(call)
    attribute, like = call.query.get("attribute"), call.query.get("like")
    if attribute is None:
        raise Refusal(400, "say which attribute", "?attribute=NAME&like=PATTERN")
    query: dict[str, Any] = {"rows": [attribute], "measures": []}
    if like is not None:
        query["where"] = {attribute: {"like": like}}
    question = _question(store, query)
    made = _answered(call, store, question)
    names = [row[attribute] for row in made.cells.records()]
    most = _number(call, "limit", MOST_MEMBERS, MOST_MEMBERS)
    record = {"attribute": attribute, "members": names[:most], "in_all": len(names)}
    again = _counting(store, question)
    return Reply(record | made.about(), made.cells, again=again)


# --- questions ---


def _question(store: CubeStore, query: Any) -> Question:
    cube = store.cube
    return read_question(query, cube.function, cube.schema)


def _answered(
    call: RouteCall, store: CubeStore, question: Question, version: Version | None = None
) -> Answer:
    made = answer(version or _version(call, store), question, Limits(seconds=call.seconds))
    if call.version is None:  # otherwise nobody has asked yet
        _counting(store, question)()
    return made


def _counting(store: CubeStore, question: Question) -> Callable[[], None]:
    levels = levels_of(store.cube.function, question.attributes)
    return partial(store.asked.count, levels)


def _reply(
    call: RouteCall, store: CubeStore, question: Question, more: dict[str, Any] | None = None,
    version: Version | None = None,
) -> Reply:  # fmt: skip
    made = _answered(call, store, question, version)
    if call.form is not Form.JSON and made.totals:
        raise Refusal(400, "totals come as JSON only", "leave totals out, or accept JSON")
    headers = {f"Millstream-{k.replace('_', '-')}": str(v) for k, v in made.about().items()
               if isinstance(v, (str, int, float))}  # fmt: skip
    record = made.record() if call.form is Form.JSON else None
    return Reply(
        record if more is None else more | {"answer": record}, made.cells, headers,
        again=_counting(store, question),
    )  # fmt: skip


def _query(call: RouteCall) -> Reply:
    store = _store(call)
    return _reply(call, store, _question(store, call.body))


def _object(body: Any, keys: tuple[str, ...]) -> dict[str, Any]:
    if not isinstance(body, dict) or not isinstance(body.get("query", {}), dict):
        raise Refusal(400, "expected an object with a query", f"keys are: {', '.join(keys)}")
    for key in body:
        if key not in keys:
            raise Refusal(400, f'unknown key "{key[:80]}"', f"keys are: {', '.join(keys)}")
    return body


def _step(call: RouteCall) -> Reply:
    """The next question, and its answer."""
    store, kind = _store(call), call.path["step"]
    if kind not in STEPS:
        raise Refusal(404, f'there is no step "{kind[:80]}"', f"steps are: {', '.join(STEPS)}")
    body = _object(call.body, ("query", "step"))
    query, step = body.get("query", {}), body.get("step", {})
    if not isinstance(step, dict):
        raise Refusal(400, "expected the step to be an object")
    _question(store, query)  # what is wrong before the step is not told as the step's
    after = next_question(kind, query, step, store.cube.function)
    return _reply(call, store, _question(store, after), {"query": after})


def _cells(call: RouteCall) -> Reply:
    """The finest cells behind a cell."""
    store = _store(call)
    body = _object(call.body, ("query", "cell"))
    query, cell = body.get("query", {}), body.get("cell", {})
    if not isinstance(cell, dict):
        raise Refusal(400, "expected the cell to be an object")
    version, cube = _version(call, store), store.cube.function
    # What the question leaves out is not behind its cells either.
    span = plan(version, replace(_question(store, query), earlier=None)).span
    question = _question(store, behind(query, cell, cube))
    first, end = (span.first, span.last + 1)
    if question.first is not None:
        first = max(first, question.first)
    if question.end is not None:
        end = min(end, question.end)
    question = replace(question, first=first, end=end, last=None)
    return _reply(call, store, question, version=version)


def _next(call: RouteCall) -> Reply:
    """The vertices one step up and one step down."""
    store = _store(call)
    cube, version = store.cube.function, store.version
    rows = [name for name in call.query.get("rows", "").split(",") if name]
    asked: dict[str, Any] = {"rows": rows}
    if "grain" in call.query:
        asked["grain"] = call.query["grain"]
    question = _question(store, asked)
    levels = levels_of(cube, question.rows)
    grains = grains_of(cube)
    now = None if question.grain is None else grain_named(str(question.grain))

    def shown(levels: Levels) -> dict[str, Any]:
        made = vertex_record(cube, levels, question.grain)
        return made | {"materialised": is_kept(version, levels)}

    up = [g for g in grains if now is not None and g.longest > now.longest]
    down = [g for g in grains if now is None or g.longest < now.longest]
    return Reply({
        "vertex": shown(levels), "up": [shown(v) for v in steps_up(cube, levels)],
        "down": [shown(v) for v in steps_down(cube, levels)],
        "coarser_grains": [*map(str, up), *([None] if now is not None else [])],
        "finer_grains": list(map(str, down)),
        "attributes": list(attributes_of(cube, levels)), "version": version.number,
    })  # fmt: skip


_TABLES = (Form.JSON, Form.ARROW, Form.CSV)
_QUERY = {
    "rows": ["attribute"], "measures": ["measure"], "where": {"attribute": ["member"]},
    "grain": "Minute", "order": ["-measure"], "limit": 10, "others": True,
}  # fmt: skip

CUBE_ROUTES: tuple[Route, ...] = (
    Route("GET", "/cubes", TokenScope.READ, "The cubes of this project", _cubes),
    Route("GET", "/cubes/{cube}", TokenScope.READ, "Dimensions, measures, lag and memory", _cube),
    Route("GET", "/cubes/{cube}/lattice", TokenScope.READ, "The vertices, and which are kept",
          _lattice,
          parameters={"from": "the first number", "limit": "how many"}),
    Route("GET", "/cubes/{cube}/members", TokenScope.READ, "The members of an attribute", _members,
          forms=_TABLES, is_kept=True,
          parameters={"attribute": "its name", "like": "a pattern with % and _",
                      "limit": "how many"}),
    Route("GET", "/cubes/{cube}/next", TokenScope.READ, "The vertices up and down", _next,
          parameters={"rows": "attributes, with commas", "grain": "such as Minute"}),
    Route("POST", "/cubes/{cube}/query", TokenScope.READ, "Ask a question", _query, forms=_TABLES,
          is_kept=True, example=_QUERY),
    Route("POST", "/cubes/{cube}/cells", TokenScope.READ, "The finest cells behind a cell", _cells,
          forms=_TABLES, is_kept=True, example={"query": _QUERY, "cell": {"attribute": "member"}}),
    Route("WS", "/cubes/{cube}/subscribe", TokenScope.READ, "An answer, and how it changes",
          talk=subscribe),
    Route("POST", "/cubes/{cube}/{step}", TokenScope.READ,
          "roll-up, drill-down, slice, dice or pivot: the next question and its answer", _step,
          forms=_TABLES, is_kept=True,
          example={"query": _QUERY, "step": {"attribute": "attribute"}}),
)  # fmt: skip

__all__ = ["CUBE_ROUTES", "QuestionError"]
