"""All that rules ask about a subject, as one row: the thesis's joins, made once.

Each fact that a rule reads is a column such as `tide.height`. A row is there for every
subject, whatever is missing: what is not known is null. Links come first (the berth of a
vessel, the nearest sensors, the prediction that is valid at its arrival), then what is
read through them in the order of the domain file, so that a change to what is declared
last passes through one join only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import reduce

from millstream.calculus.functions import (
    Aggregate,
    Aggregation,
    Assign,
    Distinct,
    Filter,
    Function,
    Join,
    Latest,
    Map,
    Rows,
)
from millstream.calculus.graph import Input
from millstream.calculus.library.as_of import as_of
from millstream.calculus.library.outer_joins import Pairs
from millstream.calculus.terms import Call, Column, Literal, Term
from millstream.calculus.types import (
    BOOLEAN,
    NUMBER,
    TEXT,
    Field,
    QueueType,
    Schema,
)
from millstream.calculus.wiring import Queue
from millstream.errors import Fault
from millstream.languages.rules.ast import Expression, parts
from millstream.languages.rules.ast import Field as Mention
from millstream.languages.rules.beside import Beside, needed
from millstream.languages.rules.check import Checker
from millstream.languages.rules.distances import distance, located
from millstream.languages.rules.domain import ColumnPath, ColumnType, Domain, Entity
from millstream.languages.rules.measured import Measured, add_measure
from millstream.languages.rules.over_time import add_column
from millstream.languages.rules.totals import Totalled, add_paired_total, add_total
from millstream.languages.rules.typed import finite
from millstream.languages.rules.wiring import RulesWiring


@dataclass
class Facts:
    """Mutable: the tables so far, and the row of facts as it grows."""

    domain: Domain
    wiring: RulesWiring
    #: What may be asked for beside them.
    beside: tuple[Beside, ...] = ()
    #: The columns that are needed of each entity.
    needed: dict[str, set[str]] = field(default_factory=dict)
    #: The columns of tables that are only totalled.
    totalled: dict[str, set[str]] = field(default_factory=dict)
    tables: dict[str, Queue] = field(default_factory=dict)
    #: The columns that the finished facts have.
    kept: frozenset[str] = frozenset()

    def flow(self, wanted: Iterable[str]) -> Queue:
        """The facts, with the columns that are wanted."""
        asked = frozenset(wanted)
        beside = needed(self.beside, asked)
        made = frozenset[str]().union(*(one.made() for one in beside))
        names = sorted(asked.union(*(one.reads() for one in beside)) - made)
        self._need_all(names)
        for one in beside:
            if isinstance(one, Totalled) and not one.is_own:
                self._need_rows(one)
        self.kept = self._identity() | frozenset(names)
        flow = self._table(self.domain.entities[self.domain.subject])
        steps = list(self._steps())
        for number, (step, entity) in enumerate(steps):
            later = (self._used(*other) for other in steps[number + 1 :])
            keep = self.kept.union(*later)
            flow = step(flow, entity, keep)
        for number, one in enumerate(beside):
            later_on = (other.reads() for other in beside[number + 1 :])
            flow = self._with(flow, one, self._identity() | asked.union(*later_on))
        return flow

    def _with(self, flow: Queue, beside: Beside, keep: frozenset[str]) -> Queue:
        """The facts with a column beside them."""
        match beside:
            case Totalled():
                table = self.domain.entities[beside.entity]
                rows = flow if beside.is_own else self._table(table)
                if beside.pairing is not None:
                    key = self._subject_key()
                    return add_paired_total(self.wiring, flow, rows, beside, key, keep)
                return add_total(self.wiring, flow, rows, beside, keep)
            case Measured():
                return add_measure(self.wiring, flow, beside, keep)
            case _:
                return add_column(self.wiring, flow, beside, self._subject_key(), keep)

    def _subject_key(self) -> str:
        subject = self.domain.entities[self.domain.subject]
        return f"{subject.name}.{subject.key}"

    def _identity(self) -> frozenset[str]:
        """The columns by which a subject is known."""
        subject = self.domain.entities[self.domain.subject]
        return frozenset(f"{subject.name}.{c}" for c in (subject.key, *self.domain.shown))

    def _steps(self) -> Iterator[tuple[Step, Entity]]:
        """What to join, one after the other: links first."""
        entities = [e for e in self._in_order() if e.name in self.needed]
        joined: set[str] = set()
        for entity in entities:
            if entity.nearest is not None:
                yield self._near, entity
            if entity.forecast is not None:
                yield self._foreseen, entity
            if entity.of is not None and any(entity.name in e.found_by() for e in entities):
                joined.add(entity.name)
                yield self._read, entity
        for entity in entities:
            if entity.name not in joined and self.domain.is_reachable(entity.name):
                yield self._read, entity

    def _used(self, step: Step, entity: Entity) -> frozenset[str]:
        """The columns of the facts that a step reads."""
        if step == self._near:
            assert entity.nearest is not None
            to = self.domain.entities[entity.nearest.to]
            return frozenset({f"{to.name}.{to.key}"})
        if entity.is_singleton:
            return frozenset()
        columns = {self._link(entity)}
        if entity.forecast is not None:
            is_chosen = step == self._read
            columns.add(f"{entity.name}.foreseen" if is_chosen else str(entity.forecast.at))
        return frozenset(columns)

    # --- what is needed ---

    def _need_all(self, wanted: Iterable[str]) -> None:
        subject = self.domain.entities[self.domain.subject]
        assert subject.key is not None
        self._need(ColumnPath(subject.name, subject.key))
        for shown in self.domain.shown:
            self._need(ColumnPath(subject.name, shown))
        self._mentioned(self.domain.departed)
        for name in wanted:
            entity, _, column = name.partition(".")
            self._need(ColumnPath(entity, column))

    def _mentioned(self, expression: Expression | None) -> None:
        for part in parts(expression) if expression is not None else ():
            if isinstance(part, Mention):
                self._need(ColumnPath(part.entity, part.name))

    def _need(self, path: ColumnPath) -> None:
        """A column, and all that finding it takes."""
        if path.column in self.needed.get(path.entity, set()):
            return
        self.needed.setdefault(path.entity, set()).add(path.column)
        entity = self.domain.entities[path.entity]
        if entity.key is not None:
            self._need(ColumnPath(path.entity, entity.key))
        if entity.of is not None:
            self._need(entity.of)
        if entity.forecast is not None:
            self._need(ColumnPath(path.entity, entity.forecast.valid))
            self._need(entity.forecast.at)
        if entity.nearest is not None:
            for one in (entity.nearest.to, entity.nearest.among):
                key = self.domain.entities[one].key
                assert key is not None
                for column in (key, *entity.nearest.by):
                    self._need(ColumnPath(one, column))
            self._mentioned(entity.nearest.where)

    def _need_rows(self, totalled: Totalled) -> None:
        """The columns of a table that a total reads; finding a row of a subject takes none."""
        entity = self.domain.entities[totalled.entity]
        columns = {name.partition(".")[2] for name in totalled.rows()} | set(_key_columns(entity))
        # Rows are counted even if nothing of them is read.
        columns = columns or {next(iter(entity.columns))}
        self.totalled.setdefault(entity.name, set()).update(columns)

    def _in_order(self) -> list[Entity]:
        """Entities after those through which they are found, else as they are declared."""
        ordered: list[Entity] = []
        waiting = [e for e in self.domain.entities.values() if e.name != self.domain.subject]
        while waiting:
            missing = {e.name for e in waiting}
            ready = next(
                (e for e in waiting if not e.found_by() & (missing - {e.name})), waiting[0]
            )
            waiting.remove(ready)
            ordered.append(ready)
        return ordered

    # --- tables ---

    def _table(self, entity: Entity) -> Queue:
        """The rows of an entity, the latest for each key, under names such as `tide.height`."""
        if entity.name in self.tables:
            return self.tables[entity.name]
        used = self.needed.get(entity.name, set()) | self.totalled.get(entity.name, set())
        names = [c for c in entity.columns if c in used]
        schema = Schema(tuple(Field(c, entity.columns[c].type) for c in names))
        is_relation = entity.is_once or entity.is_table
        time = None if entity.is_once else entity.time
        flow = self.wiring.input(
            Input(entity.input, QueueType(schema, is_relation), time, entity.slack,
                  self.wiring.origin, entity.is_once, is_log=not is_relation,
                  keys=tuple(c for c in _key_columns(entity) if c in names))
        )  # fmt: skip
        name = f"{entity.name}_table"
        flow = self.wiring.add(Map(_known_columns(entity, flow)), flow, name=name)
        if keys := _keys(entity):
            flow = self.wiring.add(Filter(_are_known(flow, keys)), flow, name=name)
        can_leave = entity.name == self.domain.subject and self.domain.departed is not None
        if can_leave and not is_relation and entity.keep is None:
            flow = self._until_departure(flow, entity)
        else:
            if not is_relation:
                flow = self.wiring.add(_window(entity, keys), flow, name=f"{entity.name}_latest")
            if can_leave:
                stays = Call("not", (self._has_departed(),), BOOLEAN)
                flow = self.wiring.add(Filter(stays), flow, name=f"{entity.name}_present")
        self.tables[entity.name] = flow
        return flow

    def _until_departure(self, flow: Queue, subject: Entity) -> Queue:
        """The latest row of each subject; of those who have departed, nothing is kept."""
        columns = tuple(Assign(n, flow.column(n)) for n in flow.schema.names)
        name = f"{subject.name}_present"
        marked = Map((*columns, Assign(_DEPARTED, self._has_departed())))
        latest = Latest((f"{subject.name}.{subject.key}",), _DEPARTED)
        held = self.wiring.add(latest, self.wiring.add(marked, flow, name=name), name=name)
        return self.wiring.columns(held, {n: n for n in flow.schema.names}, name)

    def _has_departed(self) -> Term:
        assert self.domain.departed is not None
        gone = self._condition(self.domain.departed, None)
        return Call("coalesce", (gone, Literal(False, BOOLEAN)), BOOLEAN)

    def _condition(self, expression: Expression, only: str | None) -> Term:
        faults: list[Fault] = []
        condition = Checker(self.domain, faults, only=only).condition(expression, "a condition")
        assert condition is not None, faults
        return condition.term

    # --- links ---

    def _near(self, flow: Queue, entity: Entity, keep: frozenset[str]) -> Queue:
        """The key of the nearest one, as the column `tide.near`."""
        nearest = entity.nearest
        assert nearest is not None
        to, among = (self.domain.entities[n] for n in (nearest.to, nearest.among))
        here = f"{to.name}.{to.key}"
        there = f"{among.name}.{among.key}"
        places, others = self._table(to), self._table(among)
        if nearest.where is not None:
            condition = self._condition(nearest.where, among.name)
            others = self.wiring.add(Filter(condition), others, name=f"{entity.name}_sensors")
        name = f"{entity.name}_near"
        points = located(self.wiring, places, here, nearest.to, nearest, name)
        aims = located(self.wiring, others, there, nearest.among, nearest, name)
        pairs = self.wiring.add(Join(), points, aims, name=name)
        kept = (Assign("at", pairs.column(here)), Assign("key", pairs.column(there)),
                Assign("distance", distance(pairs, nearest)))  # fmt: skip
        apart = self.wiring.add(Map(kept), pairs, name=name)
        least = Aggregate(("at",), (Aggregation("least", "min", apart.column("distance")),))
        closest = self.wiring.add(least, apart, name=name)
        on = (("at", "at"), ("distance", "least"))
        ties = self.wiring.add(Join(on), apart, closest, name=name)
        first = Aggregate(("at",), (Aggregation("key", "min", ties.column("key")),))
        nearby = self.wiring.columns(
            self.wiring.add(first, ties, name=name),
            {f"{entity.name}.at": "at", f"{entity.name}.near": "key"}, name,
        )  # fmt: skip
        return self.wiring.left_join(flow, nearby, ((here, f"{entity.name}.at"),), name, keep)

    def _link(self, entity: Entity) -> str:
        """The column that holds the key of the row to be read."""
        return f"{entity.name}.near" if entity.nearest is not None else str(entity.of)

    def _foreseen(self, flow: Queue, entity: Entity, keep: frozenset[str]) -> Queue:
        """The time of the prediction that is valid, as the column `tide.foreseen`."""
        forecast = entity.forecast
        assert forecast is not None
        subject = self.domain.entities[self.domain.subject]
        who, link = f"{subject.name}.{subject.key}", self._link(entity)
        key, valid = f"{entity.name}.{entity.key}", f"{entity.name}.{forecast.valid}"
        name = f"{entity.name}_foreseen"
        asked = self.wiring.columns(
            flow, {"who": who, "link": link, "when": str(forecast.at)}, name
        )
        times = self.wiring.columns(self._table(entity), {"key": key, "valid": valid}, name)
        # A prediction that is only corrected keeps its time: nothing moves.
        slots = self.wiring.add(Distinct(), times, name=name)
        latest = as_of(
            self.wiring, asked, slots, (("link", "key"),), ("when", "valid"), forecast.lasts,
            "who", name=name,
        )  # fmt: skip
        chosen = self.wiring.columns(
            latest,
            {f"{entity.name}.who": "who", f"{entity.name}.foreseen": "valid"}, name,
        )  # fmt: skip
        return self.wiring.left_join(flow, chosen, ((who, f"{entity.name}.who"),), name, keep)

    def _read(self, flow: Queue, entity: Entity, keep: frozenset[str]) -> Queue:
        """Join the row of an entity to the facts."""
        name = f"{entity.name}_facts"
        on: Pairs = ()
        if not entity.is_singleton:
            on = ((self._link(entity), f"{entity.name}.{entity.key}"),)
        if entity.forecast is not None:
            valid = f"{entity.name}.{entity.forecast.valid}"
            on = (*on, (f"{entity.name}.foreseen", valid))
        return self.wiring.left_join(flow, self._table(entity), on, name, keep)


#: The column that says that a subject has departed: all others are called `entity.column`.
_DEPARTED = "departed"

Step = Callable[[Queue, Entity, frozenset[str]], Queue]


def _key_columns(entity: Entity) -> tuple[str, ...]:
    """The columns that identify a row: of a prediction also the time it is valid from."""
    valid = () if entity.forecast is None else (entity.forecast.valid,)
    return () if entity.key is None else (entity.key, *valid)


def _keys(entity: Entity) -> tuple[str, ...]:
    return tuple(f"{entity.name}.{c}" for c in _key_columns(entity))


def _window(entity: Entity, keys: tuple[str, ...]) -> Function:
    if keys and entity.keep is None:
        return Latest(keys)
    return Rows(1, keys, entity.keep)


def _known_columns(entity: Entity, rows: Queue) -> tuple[Assign, ...]:
    """The columns under names such as `tide.height`, null where a value says nothing."""
    return tuple(
        Assign(f"{entity.name}.{name}", _known(rows.column(name), entity.columns[name]))
        for name in rows.schema.names
    )


def _known(value: Column, column: ColumnType) -> Term:
    """What is no number, or not one of the members, is not known."""
    if column.type == NUMBER:
        return finite(value)
    if not column.members:
        return value
    is_member = [Call("==", (value, Literal(m, TEXT)), BOOLEAN) for m in column.members]
    is_one = reduce(lambda one, other: Call("or", (one, other), BOOLEAN), is_member)
    return Call("if", (is_one, value, Literal(None, TEXT)), TEXT)


def _are_known(rows: Queue, keys: tuple[str, ...]) -> Term:
    known = [Call("not", (Call("is_null", (rows.column(k),), BOOLEAN),), BOOLEAN) for k in keys]
    return reduce(lambda one, other: Call("and", (one, other), BOOLEAN), known)
