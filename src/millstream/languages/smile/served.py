"""A file as a broker serves it: views with rules are live, all others settled."""

from __future__ import annotations

from dataclasses import replace

from millstream.calculus.graph import Program
from millstream.calculus.types import Schema
from millstream.calculus.wiring import Queue
from millstream.errors import CheckError
from millstream.languages.served import (
    ASOF_COLUMN,
    FINAL_COLUMN,
    MASK_COLUMN,
    STEPS_COLUMN,
    Served,
    ServedStream,
    ServedView,
)
from millstream.languages.smile.build import horizon_of
from millstream.languages.smile.cells import TRUE, View
from millstream.languages.smile.language import LANGUAGE
from millstream.languages.smile.statements import Stream, read_statements
from millstream.languages.smile.translate import Translator, translate
from millstream.queries.tokens import Stop
from millstream.source import Source


def load_served(source: Source) -> Served:
    """What a broker serves of a text, or an error with every fault in it."""
    read = read_statements(source)
    translate(source, read)  # whoever cannot be run cannot be served
    subscribed = replace(
        read, subscriptions=tuple(replace(s, has_ranges=True) for s in read.subscriptions)
    )
    live = Translator(source, subscribed, is_live=True)
    settled = Translator(source, subscribed)
    programs: dict[bool, Program | None] = {}
    views: dict[str, ServedView] = {}
    for is_live, translator in ((True, live), (False, settled)):
        outputs: dict[str, Queue] = {}
        for one in subscribed.subscriptions:
            if one.view.name in views:
                continue
            try:
                outputs[one.view.name] = translator.output(one, is_served=True)
            except Stop:
                continue  # as of the horizon, or a fault that is noted
            view = translator.view(one.view)
            schema = outputs[one.view.name].schema
            views[one.view.name] = _served(one.view.name, view, schema, is_live=is_live)
        if translator.faults:
            raise CheckError(translator.faults)
        programs[is_live] = translator.build.wiring.program(outputs) if outputs else None
    streams = {s.name.name: _stream(s, settled) for s in read.streams}
    assert LANGUAGE.served is not None
    return Served(source.text, LANGUAGE.served, streams, views, programs[True], programs[False])


def _stream(stream: Stream, translator: Translator) -> ServedStream:
    name = stream.name.name
    return ServedStream(
        name, translator.build.wiring.inputs[name], stream.key.name, stream.slack, stream.until,
        stream.heartbeat, stream.shifts_ties, horizon_of(name),
    )  # fmt: skip


def _served(name: str, view: View, schema: Schema, *, is_live: bool) -> ServedView:
    told = {STEPS_COLUMN, FINAL_COLUMN, ASOF_COLUMN, MASK_COLUMN}
    shown = {c.name for c in view.cells} | told
    bounds = frozenset(n for n in schema.names if n not in shown)
    can_be_final = view.is_open != TRUE and view.mask.can_be_true
    return ServedView(name, schema, is_live, view.as_of, bounds, can_be_final)
