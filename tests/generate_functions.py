"""Generated functions of the calculus: for every one a way to add it to a program."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import reduce
from typing import TypeVar

from hypothesis import strategies as st

from millstream.calculus.cube import Vertex
from millstream.calculus.functions import (
    AGGREGATIONS,
    Aggregate,
    Aggregation,
    Assign,
    Branch,
    Changes,
    Comparison,
    Cubify,
    Distinct,
    Dstream,
    Duplicate,
    Except,
    Filter,
    FlatMap,
    Fold,
    Frame,
    Function,
    Held,
    Interleave,
    Istream,
    Join,
    Judge,
    Latest,
    Lookup,
    Map,
    Merge,
    Now,
    Opaque,
    OpaqueFold,
    Ordered,
    Placed,
    Range,
    RoundRobinJoin,
    RoundRobinSplit,
    Rows,
    Rstream,
    Top,
    Until,
    Update,
    Work,
)
from millstream.calculus.grains import Grain
from millstream.calculus.graph import Operator, Variable
from millstream.calculus.judging import SEVERITY, VERDICT, Requirement, Shown
from millstream.calculus.matching import ORDERS
from millstream.calculus.ordering import NEIGHBOURS, PLACED, PLACES
from millstream.calculus.sheets import Sheet
from millstream.calculus.terms import Call, Column, Literal, Term
from millstream.calculus.types import (
    BOOLEAN,
    DURATION,
    INTEGER,
    TEXT,
    TIME,
    TIME_COLUMN,
    Field,
    Kind,
    QueueType,
    Row,
    Schema,
    Type,
)
from millstream.calculus.work import schema_of_items
from tests.generate_codes import SHAPES, works
from tests.generate_opaque import COUNTERS, COUNTS, TIMELESS, TIMELY
from tests.generate_sheets import sheet_over
from tests.generate_terms import RESULTS, TYPES, plain_conditions, terms, values

T = TypeVar("T")


@dataclass
class Draft:
    """A program in the making: open queues are those nobody reads yet."""

    draw: st.DrawFn
    open: dict[str, QueueType]
    sharing: bool = True
    #: A scalar function that is drawn often.
    favourite: str = ""
    operators: list[Operator] = field(default_factory=list)
    variables: list[Variable] = field(default_factory=list)
    keys: dict[str, tuple[Type, ...]] = field(default_factory=dict)
    count: int = 0

    def fresh(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def add(
        self,
        function: Function,
        inputs: tuple[str, ...],
        outputs: int = 1,
        reads: tuple[str, ...] | None = None,
        writes: tuple[str, ...] | None = None,
    ) -> tuple[str, ...]:
        private = tuple(self.fresh("s") for _ in range(function.state_count(len(inputs))))
        names = tuple(self.fresh("q") for _ in range(outputs))
        types = function.output_types(tuple(self.open[q] for q in inputs), outputs)
        for queue in inputs:
            del self.open[queue]
        self.open.update(zip(names, types, strict=True))
        self.operators.append(
            Operator(function, inputs, names, private if reads is None else reads,
                     private if writes is None else writes)
        )  # fmt: skip
        return names

    def schema(self, queue: str) -> Schema:
        return self.open[queue].schema

    def pick(self, options: Iterable[T]) -> T:
        return self.draw(st.sampled_from(list(options)))

    def chance(self, of: int) -> bool:
        """True once in so many times."""
        return self.draw(st.integers(1, of)) == of

    def term(
        self, schema: Schema, type_: Type, depth: int = 2, variables: tuple[Variable, ...] = ()
    ) -> Term:
        return self.draw(terms(schema, type_, depth, variables, self.favourite))

    def perhaps(
        self, schema: Schema, depth: int = 2, variables: tuple[Variable, ...] = ()
    ) -> Term | None:
        """A condition, or none."""
        return self.term(schema, BOOLEAN, depth, variables) if self.draw(st.booleans()) else None

    def columns(self, schema: Schema) -> tuple[Assign, ...]:
        """Some columns as they are and some that are computed, at least one."""
        kept = self.some_columns(schema)
        new = [
            Assign(name, self.term(schema, self.pick([*TYPES, *self.liked_types()])))
            for name in fresh_names(schema, self.draw(st.integers(0 if kept else 1, 2)))
        ]
        return (*kept, *new)

    def liked_types(self) -> list[Type]:
        """The types of what the favourite gives, more than once."""
        return 4 * [t for t, functions in RESULTS.items() if self.favourite in functions]

    def some_columns(self, schema: Schema) -> tuple[Assign, ...]:
        chosen = [f for f in schema if self.draw(st.booleans())]
        return tuple(Assign(f.name, Column(f.name, f.type)) for f in chosen)

    def some_names(self, schema: Schema, most: int) -> tuple[str, ...]:
        return tuple(self.draw(st.lists(st.sampled_from(schema.names), unique=True, max_size=most)))

    def alike(self, queue: str) -> list[str]:
        """Other open queues of the same type."""
        return [q for q, t in self.open.items() if t == self.open[queue] and q != queue]

    def others(self, queue: str, *, is_relation: bool) -> list[str]:
        return [q for q, t in self.open.items() if t.is_relation == is_relation and q != queue]


# --- row functions ----------------------------------------------------------------------


def fresh_names(schema: Schema, count: int) -> list[str]:
    return [n for n in (f"m{i}" for i in range(count + len(schema))) if n not in schema][:count]


def _map(draft: Draft, queue: str) -> None:
    draft.add(Map(draft.columns(draft.schema(queue))), (queue,))


def _filter(draft: Draft, queue: str) -> None:
    draft.add(Filter(draft.term(draft.schema(queue), BOOLEAN)), (queue,))


def _flat_map(draft: Draft, queue: str) -> None:
    schema = draft.schema(queue)
    first = draft.columns(schema)
    second = tuple(Assign(c.name, draft.term(schema, c.term.type)) for c in first)
    branches = (Branch(draft.perhaps(schema), first), Branch(None, second))
    draft.add(FlatMap(branches), (queue,))


def _fold(draft: Draft, queue: str) -> None:
    draw, schema = draft.draw, draft.schema(queue)
    by = draft.some_names(schema, 1)
    variable = _variable(draft, tuple(schema[name] for name in by))
    known = (variable,)
    when = draft.perhaps(schema, 1, known)
    updates = tuple(
        Update(variable.name, f.name, draft.term(schema, f.type, 2, known))
        for f in variable.fields
        if draw(st.booleans())
    )
    emit = draft.some_columns(schema) + tuple(
        Assign(name, draft.term(schema, draft.pick(TYPES), 1, known))
        for name in fresh_names(schema, draw(st.integers(0, 1)))
    )
    writes = (variable.name,) if updates else ()
    fold = Fold(by, when, updates, emit or None)
    draft.add(fold, (queue,), 1 if emit else 0, (variable.name,), writes)


def _variable(draft: Draft, key: tuple[Type, ...]) -> Variable:
    """A variable for folds of a key: a new one, or one that other folds have."""
    draw = draft.draw
    candidates = [v for v in draft.variables if draft.keys[v.name] == key]
    if draft.sharing and candidates and draw(st.booleans()):
        return draft.pick(candidates)
    types = draw(st.lists(st.sampled_from(TYPES), min_size=1, max_size=2))
    fields = tuple(Field(f"f{n}", t) for n, t in enumerate(types))
    variable = Variable(draft.fresh("v"), fields, tuple(draw(values(t)) for t in types))
    draft.variables.append(variable)
    draft.keys[variable.name] = key
    return variable


def _judge(draft: Draft, queue: str) -> None:
    """Requirements that a machine can judge, and now and then others."""
    draw, schema = draft.draw, draft.schema(queue)
    any_term = terms(schema, BOOLEAN, 1, (), draft.favourite)
    conditions = any_term if draft.chance(4) else plain_conditions(schema)
    shown = st.builds(
        lambda f, unit: Shown(f"the {f.name}", unit, Column(f.name, f.type)),
        st.sampled_from(schema.fields), st.sampled_from(["", "m"]),
    )  # fmt: skip
    levels = draw(st.sampled_from([(), ("low", "high")]))
    requirements = tuple(
        Requirement(
            str(n + 1), f"rule {n}", draw(st.one_of(st.none(), conditions)),
            draw(conditions), tuple(draw(st.lists(shown, max_size=2))),
            tuple(draw(st.lists(shown, max_size=1))),
            level=draw(st.sampled_from(levels)) if levels else "",
        )
        for n in range(draw(st.integers(1, 3)))
    )  # fmt: skip
    added = (*VERDICT, SEVERITY)
    keep = tuple(n for n in schema.names if n not in added and draw(st.booleans()))
    draft.add(Judge(keep, requirements, levels), (queue,))


def _opaque(draft: Draft, queue: str) -> None:
    type_ = draft.open[queue]
    call = draft.pick(TIMELESS if type_.is_relation else TIMELESS + TIMELY)
    draft.add(Opaque(type(call).__name__, type_.schema, call), (queue,))


def _opaque_fold(draft: Draft, queue: str) -> None:
    schema = draft.schema(queue)
    (name,) = fresh_names(schema, 1)
    made = Schema((*schema.fields, Field(name, INTEGER)))
    call, by = draft.pick(COUNTERS), draft.some_names(schema, 1)
    draft.add(OpaqueFold(type(call).__name__, by, made, draft.pick(COUNTS), call), (queue,))


# --- time functions ---------------------------------------------------------------------


def _now(draft: Draft, queue: str) -> None:
    (window,) = draft.add(Now(), (queue,))
    if draft.others(window, is_relation=True) and draft.chance(2):
        _join(draft, window)


def _range(draft: Draft, queue: str) -> None:
    length = draft.pick([0, 1, 3, 10, None])
    (window,) = draft.add(Range(length, draft.pick([None, None, 2, 5])), (queue,))
    if draft.chance(3):
        _aggregate(draft, window)


def _rows(draft: Draft, queue: str) -> None:
    by = draft.some_names(draft.schema(queue), 2)
    draft.add(Rows(draft.pick([1, 2, 3]), by, draft.pick([None, None, 2])), (queue,))


def _latest(draft: Draft, queue: str) -> None:
    schema = draft.schema(queue)
    truths = [f.name for f in schema if f.type == BOOLEAN]
    unless = draft.pick(truths) if truths and not draft.chance(3) else None
    by = tuple(n for n in draft.some_names(schema, 2) if n != unless)
    (table,) = draft.add(Latest(by, unless), (queue,))
    others = draft.others(table, is_relation=False)
    if others and draft.chance(4):
        _join_table(draft, table, draft.pick(others))


def _stamped(draft: Draft, queue: str) -> tuple[str, str]:
    """A stream with a column of times a little later than its own, or of any; and that column."""
    schema = draft.schema(queue)
    (until,) = fresh_names(schema, 1)
    when: Term = draft.term(schema, TIME, 1)
    if not draft.chance(3):
        later = Literal(draft.pick([0, 1, 3]), DURATION)
        when = Call("+", (Column(TIME_COLUMN, TIME), later), TIME)
    kept = tuple(Assign(f.name, Column(f.name, f.type)) for f in schema)
    (stamped,) = draft.add(Map((*kept, Assign(until, when))), (queue,))
    return stamped, until


def _until(draft: Draft, queue: str) -> None:
    stamped, until = _stamped(draft, queue)
    draft.add(Until(until), (stamped,))


def _held(draft: Draft, queue: str) -> None:
    """Rows that wait for a little while, or for a time of their own."""
    schema = draft.schema(queue)
    stamped, until = _stamped(draft, queue)
    is_alone = draft.chance(3)
    by = () if is_alone else draft.some_names(schema, 1)
    draft.add(Held(until, by, is_alone), (stamped,))


def _join_table(draft: Draft, table: str, queue: str) -> None:
    """Join a table with the latest rows of a stream, on the whole key of these."""
    types = {f.type for f in draft.schema(table)}
    keys = [f for f in draft.schema(queue) if f.type in types]
    if not keys:
        return
    key = draft.pick(keys)
    place = draft.schema(queue).index(key.name)
    (other,) = draft.add(Latest((key.name,)), (queue,))
    renamed = _renamed(draft, other)
    ours = draft.pick(f.name for f in draft.schema(table) if f.type == key.type)
    theirs = draft.schema(renamed).names[place]
    draft.add(Join(((ours, theirs),), nulls_match=draft.draw(st.booleans())), (table, renamed))


def _cubify(draft: Draft, queue: str) -> None:
    """Up to three dimensions; vertices of any grain that the window holds."""
    schema = draft.schema(queue)
    names = draft.draw(st.permutations([n for n in schema.names if n != "time"]))[:4]
    if not names:
        return  # nothing but the time of cells of another cube
    cuts = sorted(draft.draw(st.sets(st.integers(1, len(names) - 1), max_size=2))) \
        if len(names) > 1 else []  # fmt: skip
    edges = zip([0, *cuts], [*cuts, len(names)], strict=True)
    dimensions = tuple(tuple(names[a:b]) for a, b in edges)
    grain, window = Grain(draft.pick([1, 2, 3])), draft.pick([1, 2, 4])

    def vertex() -> Vertex:
        chosen = (draft.pick([None, *levels]) for levels in dimensions)
        length = grain.length * draft.pick(range(1, window + 1))
        return Vertex(tuple(a for a in chosen if a is not None), Grain(length))

    finest = Vertex(tuple(levels[0] for levels in dimensions), grain)
    kept = tuple(dict.fromkeys((finest, *(vertex() for _ in range(draft.pick([0, 1, 2]))))))
    outputs = tuple(dict.fromkeys(vertex() for _ in range(draft.pick([1, 1, 2]))))
    cube = Cubify(
        dimensions,
        _measures(draft, schema),
        grain,
        window,
        kept,
        outputs,
        draft.pick([False, True]),
    )
    draft.add(cube, (queue,), len(outputs))


def _measures(draft: Draft, schema: Schema) -> tuple[Aggregation, ...]:
    """Of columns only, and no extremes of texts."""
    made: list[Aggregation] = []
    for name in fresh_names(schema, draft.pick([1, 2, 3])):
        function = draft.pick(AGGREGATIONS)
        kinds = AGGREGATIONS[function]
        columns = [f for f in schema if f.type.kind in kinds]
        if function in ("min", "max"):
            columns = [f for f in columns if f.type != TEXT]
        if not columns or (function == "count" and draft.chance(2)):
            made.append(Aggregation(name, "count"))
        else:
            column = draft.pick(columns)
            made.append(Aggregation(name, function, Column(column.name, column.type)))
    return tuple(made)


def _alike(function: Function) -> Add:
    return lambda draft, queue: draft.add(function, (queue, draft.pick(draft.alike(queue))))


def _aggregate(draft: Draft, queue: str) -> None:
    schema = draft.schema(queue)
    first, *others = fresh_names(schema, draft.draw(st.integers(1, 3)))
    made = [Aggregation(first, "count")] if draft.draw(st.booleans()) else []
    for name in others if made else [first, *others]:
        function = draft.pick(AGGREGATIONS)
        allowed = [t for t in TYPES if t.kind in AGGREGATIONS[function]]
        made.append(Aggregation(name, function, draft.term(schema, draft.pick(allowed), 1)))
    draft.add(Aggregate(draft.some_names(schema, 2), tuple(made)), (queue,))


def _pairs(draft: Draft, left: str, right: str) -> tuple[tuple[str, str], ...]:
    """Columns of two queues that can be compared."""
    pairs = [
        (a.name, b.name)
        for a in draft.schema(left)
        for b in draft.schema(right)
        if a.type == b.type
    ]
    if not pairs:
        return ()
    return tuple(draft.draw(st.lists(st.sampled_from(pairs), max_size=2, unique=True)))


def _renamed(draft: Draft, queue: str) -> str:
    """The queue with new names for its columns, so that none clash."""
    prefix = draft.fresh("r")
    renamed = tuple(
        Assign(f"{prefix}_{n}", Column(f.name, f.type)) for n, f in enumerate(draft.schema(queue))
    )
    return draft.add(Map(renamed), (queue,))[0]


def _join(draft: Draft, left: str) -> None:
    right = _renamed(draft, draft.pick(draft.others(left, is_relation=True)))
    on = _pairs(draft, left, right)
    both = Schema(draft.schema(left).fields + draft.schema(right).fields)
    join = Join(on, draft.perhaps(both, 1), nulls_match=draft.draw(st.booleans()))
    draft.add(join, (left, right))


def _lookup(draft: Draft, left: str) -> None:
    right = draft.pick(draft.others(left, is_relation=True))
    name = next(n for n in (f"found{i}" for i in range(9)) if n not in draft.schema(left))
    on, compared = _pairs(draft, left, right), _pairs(draft, left, right)[:1]
    where = [Comparison(one, draft.pick(ORDERS), other) for one, other in compared]
    lookup = Lookup(name, on, draft.draw(st.booleans()), *where)
    draft.add(lookup, (left, right))


def _top(draft: Draft, queue: str) -> None:
    by = draft.some_names(draft.schema(queue), 2)
    down = tuple(name for name in by if draft.draw(st.booleans()))
    draft.add(Top(draft.pick([1, 2, 3]), by, down), (queue,))


def _ordered(draft: Draft, queue: str) -> None:
    schema = draft.schema(queue)
    on = draft.some_names(schema, 2)
    down = tuple(name for name in on if draft.draw(st.booleans()))
    if draft.chance(4):
        _chosen(draft, queue, on, down)
        return
    columns: list[Placed] = []
    for name in fresh_names(schema, draft.pick([0, 1, 2])):
        function = draft.pick(PLACED)
        kinds = {TEXT.kind} if function == "join" else AGGREGATIONS.get(function, frozenset(Kind))
        read = [f.name for f in schema if f.type.kind in kinds]
        if function in PLACES or (function == "count" and draft.chance(2)):
            columns.append(Placed(name, function))
        elif read:
            unit = draft.pick(["rows", "range"])
            is_measured = unit == "rows" or (
                len(on) == 1 and schema[on[0]].kind not in (Kind.TEXT, Kind.BOOLEAN)
            )
            start = draft.pick([None, -2, 0] if is_measured else [None, 0])
            end = draft.pick([None, 0, 1] if is_measured else [None, 0])
            framed = function not in (*PLACES, *NEIGHBOURS)
            columns.append(
                Placed(
                    name, function, draft.pick(read),
                    draft.pick([0, 1, 2]) if function in NEIGHBOURS else 1,
                    draft.pick(["", ", "]) if function == "join" else "",
                    Frame(unit, start, end) if framed else Frame(),
                )
            )  # fmt: skip
    by = draft.some_names(schema, 1)
    draft.add(Ordered(by, on, down, tuple(columns), draft.pick([None, None, 2])), (queue,))


def _chosen(draft: Draft, queue: str, on: tuple[str, ...], down: tuple[str, ...]) -> None:
    """Rows at places that follow from how many there are, as medians and last values are found."""
    schema = draft.schema(queue)
    place, size, text = fresh_names(schema, 3)
    texts = [f.name for f in schema if f.type.kind is Kind.TEXT]
    counted = draft.pick([None, *schema.names])
    columns = [Placed(place, "row_number"), Placed(size, "count", counted)]
    if texts and draft.chance(2):
        columns.append(Placed(text, "join", draft.pick(texts), between=", "))
    ordered = Ordered(draft.some_names(schema, 1), on, down, tuple(columns))
    (rows,) = draft.add(ordered, (queue,))
    of_size = Column(size, INTEGER)
    all_wanted: list[tuple[Term, ...]] = [
        (Literal(1, INTEGER),), (of_size,), (Literal(1, INTEGER), of_size),
        (Call("-", (of_size, Literal(1, INTEGER)), INTEGER),),
    ]  # fmt: skip
    wanted = draft.pick(all_wanted)
    tests: list[Term] = [Call("==", (Column(place, INTEGER), one), BOOLEAN) for one in wanted]
    draft.add(Filter(reduce(lambda a, b: Call("or", (a, b), BOOLEAN), tests)), (rows,))


def _changes(draft: Draft, queue: str) -> None:
    schema = draft.schema(queue)
    names = draft.some_names(schema, 2)
    old = zip(fresh_names(schema, len(names)), names, strict=True)
    beside = tuple(Assign(new, Column(name, schema[name])) for new, name in old)
    draft.add(Changes(draft.some_names(schema, 2), beside), (queue,))


def _rstream(draft: Draft, queue: str) -> None:
    draft.add(Rstream(draft.pick([(), (), (3,)])), (queue,))


# --- order functions, and sheets --------------------------------------------------------


def _split(draft: Draft, queue: str) -> None:
    draft.add(RoundRobinSplit(draft.pick([(), (1, 2), (3, 1)])), (queue,), 2)


def _round_robin_join(draft: Draft, queue: str) -> None:
    other = draft.pick(draft.alike(queue))
    enqueued: tuple[tuple[Row, ...], ...] = ()
    if draft.chance(3):
        enqueued = (), (tuple(draft.draw(values(f.type)) for f in draft.schema(queue)),)
    draft.add(RoundRobinJoin(draft.pick([(), (1, 2), (2, 1)]), enqueued), (queue, other))


def _work(draft: Draft, queue: str) -> None:
    """A filter on items that are made of rows; it takes no nulls."""
    taken, given = draft.pick(SHAPES), draft.pick(SHAPES)
    columns = []
    for field_ in schema_of_items(taken):
        type_ = field_.type
        zero = Literal(False if type_ == BOOLEAN else 0, type_)
        args = draft.term(draft.schema(queue), type_, 1), zero
        columns.append(Assign(field_.name, Call("coalesce", args, type_)))
    (queue,) = draft.add(Map(tuple(columns)), (queue,))
    work = draft.draw(works(taken, given))
    draft.add(work, (queue,), 1 + work.prints)


def _interleave(draft: Draft, queue: str) -> None:
    turns = st.lists(st.integers(0, 1), max_size=3).map(tuple)
    order = Interleave(draft.draw(turns), draft.draw(turns))
    draft.add(order, (queue, draft.pick(draft.alike(queue))))


def _sheet(draft: Draft, queue: str) -> None:
    others = draft.others(queue, is_relation=False)
    inputs = (queue, draft.pick(others)) if others and draft.chance(2) else (queue,)
    sheet = draft.draw(sheet_over(tuple(draft.schema(q) for q in inputs)))
    draft.add(sheet, inputs, len(sheet.outputs))


# --- what can be added where ------------------------------------------------------------

Add = Callable[[Draft, str], object]


def _plainly(function: Function, outputs: int = 1) -> Add:
    return lambda draft, queue: draft.add(function, (queue,), outputs)


#: How often each is drawn, beside the others, and how it is added.
ANYWHERE: dict[type[Function], tuple[int, Add]] = {
    Map: (3, _map), Filter: (2, _filter), FlatMap: (2, _flat_map),
    Duplicate: (2, _plainly(Duplicate(), 2)), Judge: (1, _judge), Opaque: (1, _opaque),
}  # fmt: skip
STREAMS: dict[type[Function], tuple[int, Add]] = {
    Now: (2, _now), Range: (4, _range), Rows: (2, _rows), Latest: (3, _latest),
    Held: (3, _held), Until: (3, _until),
    Fold: (4, _fold), RoundRobinSplit: (2, _split), OpaqueFold: (1, _opaque_fold),
    Sheet: (1, _sheet), Work: (1, _work), Cubify: (2, _cubify),
}  # fmt: skip
RELATIONS: dict[type[Function], tuple[int, Add]] = {
    Aggregate: (5, _aggregate), Distinct: (2, _plainly(Distinct())),
    Istream: (2, _plainly(Istream())), Dstream: (2, _plainly(Dstream())),
    Changes: (2, _changes), Rstream: (2, _rstream), Top: (2, _top),
    Ordered: (3, _ordered),
}  # fmt: skip
OF_TWO: dict[type[Function], tuple[int, Add]] = {Join: (8, _join), Lookup: (3, _lookup)}
OF_ALIKE: dict[type[Function], tuple[int, Add]] = {Merge: (4, _alike(Merge()))}
OF_ALIKE_RELATIONS: dict[type[Function], tuple[int, Add]] = {Except: (4, _alike(Except()))}
OF_ALIKE_STREAMS: dict[type[Function], tuple[int, Add]] = {
    RoundRobinJoin: (3, _round_robin_join), Interleave: (1, _interleave),
}  # fmt: skip

#: Those that no text has.
FROM_PYTHON = (Opaque, OpaqueFold)


def choices(draft: Draft, queue: str) -> dict[type[Function], tuple[int, Add]]:
    """What can be added after a queue."""
    fitting = dict(ANYWHERE)
    if draft.alike(queue):
        fitting |= OF_ALIKE
    if not draft.open[queue].is_relation:
        return fitting | STREAMS | (OF_ALIKE_STREAMS if draft.alike(queue) else {})
    if draft.alike(queue):
        fitting |= OF_ALIKE_RELATIONS
    return fitting | RELATIONS | (OF_TWO if draft.others(queue, is_relation=True) else {})


ALL = {
    **ANYWHERE, **STREAMS, **RELATIONS, **OF_TWO, **OF_ALIKE, **OF_ALIKE_STREAMS,
    **OF_ALIKE_RELATIONS,
}  # fmt: skip
