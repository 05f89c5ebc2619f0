"""A file as a broker serves it: views with rules are live, all others settled."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from millstream.calculus.graph import Program
from millstream.calculus.text import render
from millstream.calculus.wiring import Queue
from millstream.errors import CheckError
from millstream.languages.served import (
    ASOF_COLUMN,
    FINAL_COLUMN,
    MASK_COLUMN,
    STEPS_COLUMN,
    Always,
    Served,
    ServedStream,
    ServedView,
    Wired,
)
from millstream.languages.smile.build import horizon_of
from millstream.languages.smile.cells import TRUE
from millstream.languages.smile.language import LANGUAGE
from millstream.languages.smile.lasting import needs_of
from millstream.languages.smile.statements import ReadText, Stream, read_statements
from millstream.languages.smile.translate import Translator, counted_bounds, translate
from millstream.queries import ast
from millstream.queries.tokens import Stop
from millstream.source import Source, Span


def load_served(
    source: Source, added: Mapping[str, str] = MappingProxyType({}),
    later: frozenset[str] = frozenset(),
) -> Served:  # fmt: skip
    """What a broker serves of a text, or an error with every fault in it.

    Views that were added stand before it, so that their faults are found by their own lines.
    `later` are views that came when rows of their streams were gone.
    """
    base, source = source, _with_added(source, added)
    read = read_statements(source)
    if added and not read.faults:
        _check_added(source, base, read, added)
    translate(source, read)  # whoever cannot be run cannot be served
    subscribed = replace(
        read, subscriptions=tuple(replace(s, has_ranges=True) for s in read.subscriptions)
    )
    live = Translator(source, subscribed, is_live=True)
    settled = Translator(source, subscribed)
    programs: dict[bool, Program | None] = {}
    later_outputs: dict[str, Queue] = {}
    for_later = Translator(source, subscribed, is_live=True)
    wired: list[Wired] = []
    views: dict[str, ServedView] = {}
    for is_live, translator in ((True, live), (False, settled)):
        outputs: dict[str, Queue] = {}
        for one in subscribed.subscriptions:
            if one.view.name in views:
                continue
            is_later = is_live and one.view.name in later
            by = for_later if is_later else translator
            try:
                made = by.output(one, is_served=True)
            except Stop:
                continue  # as of the horizon, or a fault that is noted
            (later_outputs if is_later else outputs)[one.view.name] = made
            view = _served(by, one.view, made, is_live)
            views[one.view.name] = _that_came_later(view) if is_later else view
        if translator.faults:
            raise CheckError(translator.faults)
        apart = Translator(source, subscribed, is_live=is_live, keeps_accounts=False)
        found = [s for s in subscribed.subscriptions if s.view.name in outputs]
        wired.append(_wired(apart, {s.view.name: apart.output(s, is_served=True) for s in found}))
        programs[is_live] = translator.build.wiring.program(outputs) if outputs else None
    streams = {s.name.name: _stream(s, settled) for s in read.streams}
    assert LANGUAGE.served is not None
    program = programs[False]
    as_of = frozenset(() if program is None else program.input_names)
    of_later = {s: (Always(f"{n} came later"),) for n in later_outputs for s in views[n].streams}
    needs = {**needs_of(live, frozenset(views), as_of), **of_later}
    later_live = for_later.build.wiring.program(later_outputs) if later_outputs else None
    return Served(
        base.text, LANGUAGE.served, streams, views, programs[True], program, dict(added),
        (wired[0], wired[1]), needs=needs, later=later & views.keys(), later_live=later_live,
    )  # fmt: skip


def _that_came_later(view: ServedView) -> ServedView:
    """No tick is known to such a view: none is the last, and none can be counted."""
    return replace(view, can_be_final=False, counted=())


def _wired(translator: Translator, outputs: Mapping[str, Queue]) -> Wired:
    """All operators that there are, and where the rows of views lie between them."""
    wiring = translator.build.wiring
    made: dict[str, tuple[str, ...]] = {}
    for name, view in translator.views.items():
        if view is not None:
            whole = () if view.whole is None else (view.whole.queue.name,)
            made[name] = (view.queue.name, *whole)
    return Wired(dict(wiring.inputs), tuple(wiring.operators), tuple(wiring.variables),
                 dict(outputs), made)  # fmt: skip


def _with_added(source: Source, added: Mapping[str, str]) -> Source:
    if not added:
        return source
    first = "".join(f"CREATE VIEW {name} AS\n{query}\n;\n" for name, query in added.items())
    return Source(source.name, f"{first}{source.text}\n;subscriptions {', '.join(added)};")


def _check_added(source: Source, base: Source, read: ReadText, added: Mapping[str, str]) -> None:
    """A query that is added is one query, and no further statements."""
    own = read_statements(base)
    names = [[w.name for w in (*(s.name for s in r.streams), *(v.name for v in r.views))]
             for r in (own, read)]  # fmt: skip
    leave = [[s.view.name for s in r.subscriptions] for r in (own, read)]
    is_more = sorted((*names[0], *added)) != sorted(names[1])
    if is_more or sorted((*leave[0], *added)) != sorted(leave[1]):
        hint = "write one SELECT ..., and nothing after it"
        raise CheckError("a view is added by one query", span=Span(source, 0, 1), hint=hint)


def _definition(read: ReadText, name: str) -> str:
    """All texts that a view is made of, as a digest: whatever they name, and so on."""
    texts = {v.name.name.lower(): v.query.span.text for v in read.views}
    streams = {
        s.name.name.lower(): repr((
            s.key.name, [(w.name, d.name, d.low, d.high) for w, d in s.columns], s.until
        ))
        for s in read.streams
    }  # fmt: skip
    found: dict[str, str] = {}
    waiting = [name.lower()]
    while waiting:
        one = waiting.pop()
        if one in found or one not in texts | streams:
            continue
        found[one] = streams.get(one) or " ".join(texts[one].split())
        if one in texts:
            waiting += re.findall(r"[#\w]+", texts[one].lower())
    return hashlib.sha256(repr(sorted(found.items())).encode()).hexdigest()[:16]


def _stream(stream: Stream, translator: Translator) -> ServedStream:
    name = stream.name.name
    return ServedStream(
        name, translator.build.wiring.inputs[name], stream.key.name, stream.slack, stream.until,
        stream.heartbeat, stream.shifts_ties, horizon_of(name),
    )  # fmt: skip


def _served(
    translator: Translator,
    word: ast.Word,
    made: Queue,
    is_live: bool,  # noqa: FBT001
) -> ServedView:
    view, name = translator.view(word), word.name
    text = render(translator.build.wiring.program({name: made}))
    edition = hashlib.sha256(text.encode()).hexdigest()[:8]
    told = {STEPS_COLUMN, FINAL_COLUMN, ASOF_COLUMN, MASK_COLUMN}
    shown = {c.name for c in view.cells} | told
    bounds = frozenset(n for n in made.schema.names if n not in shown)
    can_be_final = view.is_open != TRUE and view.mask.can_be_true
    return ServedView(
        name, made.schema, is_live, view.as_of, bounds, can_be_final, edition, view.streams,
        _definition(translator.read, name), counted_bounds(view),
    )  # fmt: skip
