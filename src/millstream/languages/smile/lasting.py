"""How long the rows of a stream are needed: until all that follows from them can never change.

A row is needed by each view that reads it, for as long as that view's row of it can change:

    rows of a stream, selected     not at all: they are final when they come
    groups by windows of ticks     until the window is over
    accounts                       while the row of the account is in, or can still come
    everything else                always

What is needed always keeps the log; so does what is answered as of the horizon.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from millstream.calculus.terms import Column
from millstream.languages.served import Always, Need, WhileIn, WhileOpen
from millstream.languages.smile.cells import FALSE, Account, View
from millstream.languages.smile.flows import FlowGroups, RowFlow
from millstream.languages.smile.translate import Translator, sources_of
from millstream.queries import ast
from millstream.queries.terms import asks, walk


@dataclass
class Lasting:
    """The views of a live program that are needed, and who reads what."""

    live: Translator
    subscribed: frozenset[str]

    def __post_init__(self) -> None:
        self.names = {n.lower(): n for n in self.live.views}
        self.readers: dict[str, list[str]] = {name: [] for name in self.live.views}
        waiting, seen = sorted(self.subscribed), set[str]()
        while waiting:
            name = waiting.pop()
            if name in seen or name not in self.live.written:
                continue
            seen.add(name)
            for word in sources_of(self.live.written[name].query):
                source = self.names.get(word.name.lower(), word.name)
                self.readers.setdefault(source, []).append(name)
                waiting.append(source)

    def needs(self, stream: str) -> tuple[Need, ...]:
        return tuple(dict.fromkeys(self._of_rows(stream, stream)))

    def _of_rows(self, name: str, stream: str) -> Iterator[Need]:
        """What needs the rows of a stream, or of a view whose rows are those."""
        for reader in self.readers[name]:
            view, query = self._read(reader)
            if view is None or not isinstance(query, ast.Select):
                yield Always(f"{reader} has no rule that ends")
            elif view.closed is not None:
                yield from self._of_account(reader, view, view.closed, stream)
            elif len(query.sources) > 1:
                yield Always(f"{reader} joins it, and partners may come at any time")
            elif view.lasts is not None:
                yield WhileOpen(view.lasts)
                yield from self._followed(reader)
            elif isinstance(view.flow, FlowGroups) and reader not in self.subscribed:
                yield from self._of_tally(reader, stream)
            elif isinstance(view.flow, RowFlow) and view.mask.is_certain and view.is_open == FALSE:
                yield from self._of_rows(reader, stream)
            else:
                yield Always(f"rows of {reader} can change as long as ticks are open")

    def _of_tally(self, name: str, stream: str) -> Iterator[Need]:
        """Sums that nobody is told are needed by the accounts that they are in."""
        for reader in self.readers[name]:
            view, _ = self._read(reader)
            if view is None or view.closed is None:
                yield Always(f"{reader} reads all sums of {name}")
            else:
                yield from self._of_account(reader, view, view.closed, stream)

    def _of_account(
        self, name: str, view: View, account: Account, stream: str
    ) -> Iterator[Need]:  # fmt: skip
        ticks = [c for c in view.cells if c.tick_of is not None]
        if len(ticks) != 1 or name not in self.subscribed:
            yield Always(f"{name} is not subscribed to with its tick")
            return
        (cell,) = ticks
        assert cell.tick_of is not None
        rows = self.live.build.streams[cell.tick_of][1]
        key = account.entries.key
        if stream == cell.tick_of:
            yield WhileIn(name, cell.name, rows, cell.tick_of)
        elif isinstance(key, Column):
            yield WhileIn(name, cell.name, key.name, cell.tick_of)
        else:
            yield Always(f"{name} has another key than a column")
        yield from self._followed(name)

    def _followed(self, name: str) -> Iterator[Need]:
        """What is made of rows that are final or gone for ever must not count them."""
        for reader in self.readers[name]:
            view, query = self._read(reader)
            if view is None or not isinstance(query, ast.Select) or _counts(query):
                yield Always(f"{reader} counts all rows of {name}")
            elif self._view(name).lasts is not None and len(query.sources) > 1:
                yield Always(f"{reader} joins {name}, and partners may come at any time")
            else:
                yield from self._followed(reader)

    def _view(self, name: str) -> View:
        view = self.live.views[name]
        assert view is not None
        return view

    def _read(self, name: str) -> tuple[View | None, ast.Query]:
        """A view that has a rule, and asks nothing of others on the side."""
        query = self.live.written[name].query
        view = self.live.views.get(name)
        if isinstance(query, ast.Select):
            conditions = [c for c in (query.where, query.having) if c is not None]
            if any(asks(c) for c in conditions):
                return None, query
        return view, query


def _counts(query: ast.Select) -> bool:
    """Whether what it says of one row depends on others."""
    parts = (p for i in query.items if isinstance(i, ast.Item) for p in walk(i.value))
    has_totals = any(isinstance(part, ast.Total) for part in parts)
    return has_totals or bool(query.group_by) or query.limit is not None or query.is_distinct


def needs_of(
    live: Translator, subscribed: frozenset[str], settled: frozenset[str]
) -> Mapping[str, tuple[Need, ...]]:
    """What the rows of each stream are needed for; `settled` are those of views as of."""
    lasting = Lasting(live, subscribed)
    asking = _asking(live, subscribed)
    made: dict[str, tuple[Need, ...]] = {}
    merged = _merged(live)
    for stream in live.read.streams:
        name = stream.name.name
        if name in merged:
            made[name] = (Always("it is merged with others"),)
        elif name in settled:
            made[name] = (Always("a view is answered as of the horizon"),)
        elif asking is not None:
            made[name] = (Always(f"{asking} asks whether there are rows"),)
        else:
            made[name] = lasting.needs(name)
    return made


def _merged(live: Translator) -> frozenset[str]:
    """The streams that calls read, and those of the views that they read."""
    words = {word.name.lower() for call in live.read.calls for word in call.sources}
    views = (view for name, view in live.views.items() if view and name.lower() in words)
    return frozenset().union(*(view.streams for view in views))


def _asking(live: Translator, subscribed: frozenset[str]) -> str | None:
    """A view that asks others by a subquery, if there is one: these are not in FROM."""
    for name, view in live.written.items():
        query = view.query
        if isinstance(query, ast.Select):
            if any(asks(c) for c in (query.where, query.having) if c is not None):
                return name
        elif name in subscribed:
            return name
    return None
