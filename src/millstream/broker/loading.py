"""The part of one broker, as it was written down, with views that were added to it.

Other brokers know nothing of these, and go on as they are. So a view can be added where all is that
it needs: the streams of that broker, and what others send it anyway.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import orjson

from millstream.broker.cutting import Graph, part_of, wiring_of
from millstream.broker.placement import Placement, read_placement
from millstream.calculus.text import render
from millstream.calculus.wiring import Queue
from millstream.errors import UsageError, listing
from millstream.languages.language import function_named
from millstream.languages.served import Served
from millstream.source import Source

_HINT = "write it into the file, and start all brokers again"


def load_part(source: Source, added: Mapping[str, str]) -> Served:
    """The part of one broker, of a text that `part_of` wrote."""
    record = orjson.loads(source.text)
    load, file = function_named(record["loader"]), Source("served", record["file"])
    placement = read_placement(Source("brokers.toml", record["brokers"]))
    served: Served = load(file)
    part = part_of(served, placement, record["of"])
    return _with_added(served, part, load(file, added), placement) if added else part


def _with_added(served: Served, base: Served, whole: Served, placement: Placement) -> Served:
    """What a broker has of a file and of views that live there."""
    assert base.part is not None
    broker = base.part.broker
    here = replace(placement, views={**placement.views, **dict.fromkeys(whole.added, broker)})
    made = part_of(whole, here, broker)
    assert made.part is not None
    imports, own = made.part.imports, base.part.imports
    for one in imports.values():
        if one.name not in own:
            names = listing([n for n, needs in made.part.needs.items() if one.name in needs])
            what = f"{one.name} of the broker {one.sender}"
            raise UsageError(f"{names} needs {what}, which is not sent here", hint=_HINT)
    sent = [name for name, one in imports.items() if not one.is_stream]
    is_same = all(_meaning(served, name) == _meaning(whole, name) for name in sent)
    if not is_same or made.part.exports != base.part.exports:
        names = listing(list(whole.added))
        raise UsageError(f"with {names}, brokers would send each other something else", hint=_HINT)
    part = replace(made.part, edition=base.part.edition, imports=own)
    return replace(made, streams=base.streams, added=dict(whole.added), part=part)


def _meaning(served: Served, queue: str) -> str:
    """How a queue of the live program is made."""
    assert served.wired is not None
    wired = served.wired[0]
    return render(wiring_of(wired).program({"made": Queue(queue, Graph(wired).types[queue])}))
