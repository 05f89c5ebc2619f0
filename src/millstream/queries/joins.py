"""FROM clauses: windows on streams, and joins of what comes out of them.

Conditions of inner joins and of WHERE are one pool. What compares a column of one side
with a column of the other becomes a key of the join, whatever else reads both sides its
condition; what reads one side only stays for later.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import NoReturn

from millstream.calculus import syntax
from millstream.calculus.check import Scope, check_into
from millstream.calculus.functions import (
    Assign,
    Distinct,
    Join,
    Map,
    Merge,
)
from millstream.calculus.library.outer_joins import padded, without_partner
from millstream.calculus.terms import Call, Column, Term, all_of, columns_read
from millstream.calculus.types import BOOLEAN, TIME_COLUMN, Field, Schema
from millstream.errors import Fault, suggest
from millstream.queries.ast import Apply, Expression, Joined, JoinKind, Reference, Word
from millstream.queries.build import Builder, Flow
from millstream.queries.scope import ROW_TIME, Names, Seen, Visible, find
from millstream.queries.terms import NULL, asks, conjuncts, term_of, tied_by_and
from millstream.queries.tokens import Stop, stop
from millstream.source import Span

Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class JoinedSource:
    """One source of a FROM clause: its rows, its name, and how it is joined."""

    flow: Flow
    name: str
    joined: Joined

    @property
    def columns(self) -> frozenset[str]:
        return frozenset(self.flow.schema.names)

    @property
    def visible(self) -> Visible:
        return _visible(self, {})


def as_where(
    parts: Sequence[JoinedSource], where: list[Expression], is_moved: Callable[[Expression], bool]
) -> tuple[Sequence[JoinedSource], list[Expression]]:
    """Some conditions of inner joins are conditions of WHERE, if there are no other joins."""
    if any(part.joined.kind is not JoinKind.INNER for part in parts):
        return parts, where
    kept: list[JoinedSource] = []
    for part in parts:
        on = conjuncts(part.joined.on)
        rest = [c for c in on if not is_moved(c)]
        where = [*where, *(c for c in on if c not in rest)]
        joined = replace(part.joined, on=tied_by_and(rest)) if rest != on else part.joined
        kept.append(replace(part, joined=joined))
    return kept, where


@dataclass(frozen=True, slots=True)
class Assembled:
    """The joined sources, the names a query sees, and the conditions that are left."""

    flow: Flow
    names: Names
    rest: tuple[Term, ...]


@dataclass
class Assembly:
    """Mutable: a FROM clause on its way to one flow.

    `keep` keeps the rows for which conditions with subqueries hold; `around` is what the query
    around sees.
    """

    builder: Builder
    prefix: str
    faults: list[Fault]
    span: Span
    keep: Callable[[Flow, Names, Sequence[Expression]], Flow]
    around: Names | None = None
    names: Names = field(default_factory=Names)
    schema: Schema = field(default_factory=Schema)
    shared: frozenset[str] = frozenset()

    def assemble(self, parts: Sequence[JoinedSource], where: Sequence[Expression]) -> Assembled:
        self._check_names(parts)
        if any(p.joined.kind is not JoinKind.INNER for p in parts):
            return self._in_order(self._renamed(parts), where)
        pool = [c for n, p in enumerate(parts) for c in self._on(p, parts[:n])]
        raw = Names(tuple(p.visible for p in parts))
        self.shared = _shared(parts, [*pool, *where], raw)
        renamed = self._renamed(parts)
        self.names = replace(self.names, merged=self._merged(renamed))
        terms = [t for one in (pool, where) for t in self._terms(one, self.names)]
        return self._inner(renamed, [t for t in terms if not self._is_implied(t)])

    # --- names ---

    def _check_names(self, parts: Sequence[JoinedSource]) -> None:
        seen: set[str] = set()
        for part in parts:
            if part.name in seen:
                source = part.joined.source
                span = source.alias.span if source.alias else source.span
                message = f'two sources are called "{part.name}"'
                stop(self.faults, message, span, "give one of them an alias")
            seen.add(part.name)

    def _renamed(self, parts: Sequence[JoinedSource]) -> list[JoinedSource]:
        """The parts with columns that have names of their own on the joined queue."""
        counts = Counter(n for p in parts for n in p.flow.schema.names)
        visible: list[Visible] = []
        renamed: list[JoinedSource] = []
        for part in parts:
            new = {
                n: n if counts[n] == 1 or n in self.shared else f"{part.name}.{n}"
                for n in part.flow.schema.names
            }
            flow = self.builder.columns(
                part.flow, {v: k for k, v in new.items()}, f"{self.prefix}_{part.name}",
                part.joined.source.span,
            )  # fmt: skip
            visible.append(_visible(part, new))
            renamed.append(JoinedSource(flow, part.name, part.joined))
        self.names = Names(tuple(visible), unreadable=self.around)
        self.schema = Schema(tuple(dict.fromkeys(f for p in renamed for f in p.flow.schema)))
        return renamed

    def _on(self, part: JoinedSource, before: Sequence[JoinedSource]) -> list[Expression]:
        """The conditions of an inner join, those of USING written out."""
        conditions = conjuncts(part.joined.on)
        for word in part.joined.using:
            owner = next((p for p in before if find(p.visible.columns, word) is not None), None)
            if owner is None or find(part.visible.columns, word) is None:
                self._complain_about_using(word, before)
            sides = tuple(
                Reference(Word(p.name, word.span, is_quoted=True), word, word.span)
                for p in (owner, part)
            )
            conditions.append(Apply(Word("==", word.span), sides, word.span))
        return conditions

    def _complain_about_using(self, word: Word, before: Sequence[JoinedSource]) -> NoReturn:
        known = [n for p in before for n in p.flow.schema.names]
        message = f'USING needs a column "{word.name}" on both sides'
        stop(self.faults, message, word.span, suggest(word.name, known))

    def _terms(self, expressions: Sequence[Expression], names: Names) -> list[Term]:
        """The typed conditions. Those that are wrong are told and left out."""
        terms: list[Term] = []
        for expression in expressions:
            try:
                terms.append(term_of(expression, names, self.schema, self.faults, wanted=BOOLEAN))
            except Stop:
                continue  # the fault is noted; the other conditions are looked at too
        return terms

    def _is_implied(self, term: Term) -> bool:
        """A shared column equals itself by the very join that shares it."""
        match term:
            case Call("==", (Column(one), Column(other))):
                return one == other and one in self.shared
            case _:
                return False

    # --- inner joins, in any order ---

    def _merged(self, parts: Sequence[JoinedSource]) -> tuple[Seen, ...]:
        """The columns of USING that are not shared: one side of each, which equals the other."""
        visible, merged = self.names.sources, dict[str, Seen]()
        for number, part in enumerate(parts):
            for word in part.joined.using:
                before = Names(visible[:number], tuple(merged.values()))
                (_, one), *_ = before.candidates(Reference(None, word, word.span))
                other = find(visible[number].columns, word)
                if other is not None and other.column != one.column:
                    merged[one.name] = replace(one, covers=_covered(one, other))
        return tuple(merged.values())

    def _inner(self, parts: list[JoinedSource], pool: list[Term]) -> Assembled:
        first, *waiting = parts
        flow, there = first.flow, first.columns
        while waiting:
            part = next((p for p in waiting if self._is_tied(there, p, pool)), waiting[0])
            waiting.remove(part)
            both = there | part.columns
            due = [
                t for t in pool
                if (read := columns_read(t)) <= both and not read <= there
                and not read <= part.columns
            ]  # fmt: skip
            pool = [t for t in pool if t not in due]
            flow = self.join(flow, part, due, self.names)
            there = both
        return Assembled(flow, self.names, tuple(pool))

    def _is_tied(self, there: frozenset[str], part: JoinedSource, pool: list[Term]) -> bool:
        if there & part.columns:
            return True
        return any(_pair(t, there, part.columns) is not None for t in pool)

    # --- outer joins, in the order in which they are written ---

    def _in_order(self, parts: list[JoinedSource], where: Sequence[Expression]) -> Assembled:
        steps = [self._step(parts, number) for number in range(1, len(parts))]
        preserved = self._preserved(parts)
        rest = self._terms(where, self.names)
        flow, there = parts[0].flow, parts[0].columns
        for part, (due, computed, seen) in zip(parts[1:], steps, strict=True):
            both = there | part.columns
            if part.joined.kind is JoinKind.INNER:
                early = [
                    t for t in rest
                    if columns_read(t) <= both & preserved and not columns_read(t) <= there
                    and not columns_read(t) <= part.columns
                ]  # fmt: skip
                rest = [t for t in rest if t not in early]
                due.extend(early)
            joined = self.join(flow, part, due, seen)
            flow = with_assigned(self.builder, joined, computed, self.prefix)
            there = frozenset(flow.schema.names)
        return Assembled(flow, self.names, tuple(rest))

    def _step(
        self, parts: list[JoinedSource], number: int
    ) -> tuple[list[Term], list[Assign], Names]:
        """The conditions of a join, what USING makes of columns that may be null, and the names."""
        part, visible = parts[number], self.names.sources
        before = replace(self.names, sources=visible[:number])
        plain = [c for c in conjuncts(part.joined.on) if not asks(c)]
        seen_by_on = replace(before, sources=visible[: number + 1])
        conditions = self._terms(plain, seen_by_on)
        merged, computed = list(self.names.merged), list[Assign]()
        for word in part.joined.using:
            asked = Reference(None, word, word.span)
            other = find(visible[number].columns, word)
            if not before.knows(asked) or other is None:
                self._complain_about_using(word, parts[:number])
            one = before.resolve(asked, self.faults)
            if one is None:
                raise Stop
            conditions.append(self._applied("==", one, other, word.span))
            seen = replace(other, name=one.name) if part.joined.kind is JoinKind.RIGHT else one
            if part.joined.kind is JoinKind.FULL:
                either = self._applied("coalesce", one, other, word.span)
                computed.append(Assign(self.builder.hidden("using"), either))
                seen = Seen(one.name, computed[-1].name, either.type,
                            is_null=one.is_null and other.is_null)  # fmt: skip
                self.schema = Schema((*self.schema, Field(seen.column, seen.type)))
            merged = [m for m in merged if m.name != one.name]
            merged.append(replace(seen, covers=_covered(one, other)))
        self.names = replace(self.names, merged=tuple(merged))
        return conditions, computed, seen_by_on

    def _applied(self, function: str, one: Seen, other: Seen, span: Span) -> Term:
        sides = tuple(NULL if s.is_null else syntax.Name(s.column, span) for s in (one, other))
        scope = Scope(self.schema, "the query")
        term = check_into(syntax.Apply(function, sides, span), scope, self.faults)
        if term is None:
            raise Stop
        return term

    def _preserved(self, parts: list[JoinedSource]) -> frozenset[str]:
        """Columns that no outer join can make null."""
        if any(p.joined.kind in (JoinKind.RIGHT, JoinKind.FULL) for p in parts):
            return frozenset()
        inner = [p.columns for p in parts if p.joined.kind is JoinKind.INNER]
        return frozenset().union(*inner)

    # --- one join ---

    def join(self, left: Flow, part: JoinedSource, conditions: list[Term], seen: Names) -> Flow:
        there, columns = frozenset(left.schema.names), part.columns
        paired = [(t, _pair(t, there, columns)) for t in conditions]
        keys = [pair for _, pair in paired if pair is not None]
        where = all_of(t for t, pair in paired if pair is None)
        source = part.joined.source
        span = part.joined.on.span if part.joined.on else source.span
        right = part.flow
        left, ours = with_columns(self.builder, left, [a for a, _ in keys], self.prefix, span)
        right, theirs = with_columns(self.builder, right, [b for _, b in keys], self.prefix, span)
        equal = [(n, n) for n in left.schema.names if n in self.shared and n in columns]
        pairs = tuple(dict.fromkeys([*equal, *zip(ours, theirs, strict=True)]))
        function = Join(pairs, where)
        inner = self.builder.add(function, left, right, name=f"{self.prefix}_join", span=span)
        asking = [c for c in conjuncts(part.joined.on) if asks(c)]
        if asking:
            own = {n: n for n in inner.schema.names}
            asked = self.keep(inner, seen, asking)
            inner = self.builder.columns(asked, own, f"{self.prefix}_join", span)
        if part.joined.kind is JoinKind.INNER:
            return inner
        on = None if where is not None or asking else pairs
        return self._outer(inner, (left, right), on, part.joined.kind, span)

    def _outer(
        self, inner: Flow, sides: tuple[Flow, Flow], on: Pairs | None, kind: JoinKind, span: Span
    ) -> Flow:
        """The pairs, and the rows without a partner padded with nulls."""
        left, right = sides
        kept = [inner]
        if kind in (JoinKind.LEFT, JoinKind.FULL):
            kept.append(self._alone(inner, left, right, on, span))
        if kind in (JoinKind.RIGHT, JoinKind.FULL):
            turned = None if on is None else tuple((b, a) for a, b in on)
            kept.append(self._alone(inner, right, left, turned, span))
        name = f"{self.prefix}_{kind.value}"
        return self.builder.add(Merge(), *kept, name=name, span=span, is_monotone=False)

    def _alone(self, inner: Flow, side: Flow, other: Flow, on: Pairs | None, span: Span) -> Flow:
        """The rows of a side that have no partner, with nulls for the columns of the other.

        If more than equations makes partners, having one means being among the pairs.
        """
        is_among = on is None
        if on is None:
            names = side.schema.names
            own = self.builder.columns(inner, {n: n for n in names}, f"{self.prefix}_matched", span)
            other = self.builder.add(Distinct(), own, name=f"{self.prefix}_matched", span=span)
            on = tuple((n, n) for n in names)
        made = padded(inner.schema, side.schema)
        alone = without_partner(
            self.builder.wiring, side.wired, other.wired, on, made,
            name=self.prefix, nulls_match=is_among, origin=span,
        )  # fmt: skip
        return Flow(alone.name, alone.type, False, side.beats | other.beats)


def _visible(part: JoinedSource, new: dict[str, str]) -> Visible:
    schema, untyped = part.flow.schema, part.flow.untyped
    columns = (
        Seen(
            TIME_COLUMN if f.name == ROW_TIME else f.name,
            new.get(f.name, f.name),
            f.type,
            is_null=f.name in untyped,
        )
        for f in schema
    )
    return Visible(part.name, tuple(columns))


def _covered(one: Seen, other: Seen) -> frozenset[str]:
    return frozenset((*one.covers, one.column, other.column))


def _pair(term: Term, left: frozenset[str], right: frozenset[str]) -> tuple[Term, Term] | None:
    """The two sides of an equation between columns of the left and of the right."""
    match term:
        case Call("==", (one, other)):
            a, b = columns_read(one), columns_read(other)
            if not a or not b:
                return None
            if a <= left and b <= right:
                return one, other
            if b <= left and a <= right:
                return other, one
    return None


def _shared(
    parts: Sequence[JoinedSource], pool: Sequence[Expression], raw: Names
) -> frozenset[str]:
    """Names of columns that several parts have, where all of them must be equal anyway."""
    counts = Counter(n for p in parts for n in p.flow.schema.names)
    ties: dict[str, list[set[str]]] = {}
    for one in pool:
        if not isinstance(one, Apply) or one.function.name != "==":
            continue
        sides = [raw.candidates(a) for a in one.args if isinstance(a, Reference)]
        if len(sides) == 2 and all(len(s) == 1 for s in sides):
            (a, seen_a), (b, seen_b) = sides[0][0], sides[1][0]
            if seen_a == seen_b and a != b:
                ties.setdefault(seen_a.name, []).append({a, b})
    return frozenset(
        name for name, edges in ties.items()
        if counts[name] > 1 and _are_tied({p.name for p in parts if name in p.columns}, edges)
    )  # fmt: skip


def _are_tied(owners: set[str], edges: list[set[str]]) -> bool:
    reached = {next(iter(sorted(owners)))}
    for _ in edges:
        reached |= {name for edge in edges if edge & reached for name in edge}
    return owners <= reached


def with_columns(
    builder: Builder, flow: Flow, terms: Sequence[Term], prefix: str, span: Span | None
) -> tuple[Flow, list[str]]:
    """The flow with every term as a column, and what these columns are called."""
    names: list[str] = []
    added: list[Assign] = []
    for term in terms:
        if isinstance(term, Column):
            names.append(term.name)
            continue
        known = next((a.name for a in added if a.term == term), None)
        if known is None:
            known = builder.hidden("key")
            added.append(Assign(known, term))
        names.append(known)
    return with_assigned(builder, flow, added, prefix, span), names


def with_assigned(
    builder: Builder, flow: Flow, added: Sequence[Assign], prefix: str, span: Span | None = None
) -> Flow:
    """The flow with more columns."""
    if not added:
        return flow
    kept = tuple(Assign(f.name, Column(f.name, f.type)) for f in flow.schema)
    return builder.add(Map((*kept, *added)), flow, name=f"{prefix}_keys", span=span)
