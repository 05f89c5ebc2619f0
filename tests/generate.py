"""Generated programs and inputs: small, typed, verified, and nasty in their values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from hypothesis import strategies as st

from millstream.backends.reference.feed import Event
from millstream.calculus.functions import (
    Aggregate,
    Aggregation,
    Assign,
    Branch,
    Comparison,
    Distinct,
    Dstream,
    Duplicate,
    Filter,
    FlatMap,
    Fold,
    Function,
    Istream,
    Join,
    Latest,
    Lookup,
    Map,
    Merge,
    Now,
    Range,
    RoundRobinJoin,
    RoundRobinSplit,
    Rows,
    Rstream,
    Top,
    Update,
)
from millstream.calculus.graph import Input, Operator, Program, Variable
from millstream.calculus.matching import ORDERS
from millstream.calculus.scalars import SCALARS, Signature
from millstream.calculus.terms import NAN, Call, Column, Literal, Term, VariableField
from millstream.calculus.types import (
    BOOLEAN,
    DURATION,
    INT64_MAX,
    INT64_MIN,
    INTEGER,
    NUMBER,
    TEXT,
    TIME,
    TYPES_BY_NAME,
    Field,
    Kind,
    QueueType,
    Row,
    Schema,
    Type,
    Value,
)
from millstream.calculus.verify import verified

VALUES: dict[Kind, list[Value]] = {
    Kind.NUMBER: [0.0, 1.0, -1.0, 0.5, 2.25, 3.0, 1e16, -1e16, 1e300, NAN, float("inf"),
                  float("-inf"), 5e-324, 0.1],
    Kind.INTEGER: [0, 1, -1, 2, 3, 7, 2**53 + 1, INT64_MAX, INT64_MIN],
    Kind.TEXT: ["", "a", "b", "IBM", "ibm", "  x ", "ß", "12", "1.5", "true", "a%b", "\x00",
                "é\u0301"],
    Kind.BOOLEAN: [True, False],
    Kind.TIME: [0, 1, 1_000_000, 1_700_000_000_000_000, -1, 86_400_000_000],
    Kind.DURATION: [0, 1, 5, 1_000_000, -3, 60_000_000],
}  # fmt: skip


def values(type_: Type) -> st.SearchStrategy[Value]:
    return st.one_of(st.none(), st.sampled_from(VALUES[type_.kind]))


TYPES = list(TYPES_BY_NAME.values())


@st.composite
def schemas(draw: st.DrawFn) -> Schema:
    count = draw(st.integers(1, 4))
    return Schema(tuple(Field(f"c{n}", draw(st.sampled_from(TYPES))) for n in range(count)))


# --- terms ------------------------------------------------------------------------------


@st.composite
def terms(
    draw: st.DrawFn,
    schema: Schema,
    type_: Type,
    depth: int = 2,
    variables: tuple[Variable, ...] = (),
) -> Term:
    """A term of a type over a schema, by choosing a function whose result fits."""
    leaves: list[Term] = [Column(f.name, f.type) for f in schema if f.type == type_]
    leaves += [
        VariableField(v.name, f.name, f.type)
        for v in variables
        for f in v.fields
        if f.type == type_
    ]
    literal = Literal(draw(values(type_)), type_)
    if depth == 0 or draw(st.booleans()):
        return draw(st.sampled_from([*leaves, *leaves, literal]))
    function, params = draw(st.sampled_from(_RESULTS[type_]))
    args = tuple(draw(terms(schema, p, depth - 1, variables)) for p in params)
    call = Call(function, args, type_)
    # The checker makes literals of these, so no parsed program has them.
    if function in ("neg", "time") and isinstance(args[0], Literal):
        return args[0] if args[0].type == type_ else literal
    return call


def _results() -> dict[Type, list[tuple[str, tuple[Type, ...]]]]:
    """For every type, the functions and parameter types that give it."""
    found: dict[Type, list[tuple[str, tuple[Type, ...]]]] = {t: [] for t in TYPES}
    for scalar in SCALARS.values():
        for arity in (1, 2, 3):
            _try(scalar.name, scalar.rule, arity, found)
    return found


def _try(
    name: str,
    rule: Callable[[tuple[Type, ...]], Signature | str],
    arity: int,
    found: dict[Type, list[tuple[str, tuple[Type, ...]]]],
) -> None:
    pools: list[tuple[Type, ...]] = [()]
    for _number in range(arity):
        pools = [(*p, t) for p in pools for t in TYPES]
    for params in pools:
        answer = rule(params)
        if isinstance(answer, Signature) and answer.params == params:
            entry = (name, params)
            if entry not in found[answer.result]:
                found[answer.result].append(entry)


_RESULTS = _results()


# --- programs ---------------------------------------------------------------------------


@dataclass
class Draft:
    """A program in the making: open queues are those nobody reads yet."""

    open: dict[str, QueueType]
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
        outputs: int,
        reads: tuple[str, ...] | None = None,
        writes: tuple[str, ...] | None = None,
    ) -> None:
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


@st.composite
def programs(draw: st.DrawFn, *, max_operators: int = 6, sharing: bool = True) -> Program:
    inputs = tuple(
        Input(f"in{n}", QueueType(draw(schemas()), draw(st.integers(0, 4)) == 0),
              slack=draw(st.sampled_from([0, 0, 2])))
        for n in range(draw(st.integers(1, 3)))
    )  # fmt: skip
    draft = Draft({i.name: i.type for i in inputs})
    for _ in range(draw(st.integers(1, max_operators))):
        if not draft.open:
            break
        queue = draw(st.sampled_from(sorted(draft.open)))
        _extend(draw, draft, queue, sharing=sharing)
    outputs = tuple(sorted(draft.open))
    return verified(Program(inputs, outputs, tuple(draft.operators), tuple(draft.variables)))


def _extend(draw: st.DrawFn, draft: Draft, queue: str, *, sharing: bool) -> None:
    type_ = draft.open[queue]
    partners = [q for q, t in draft.open.items() if t == type_ and q != queue]
    relations = [q for q, t in draft.open.items() if t.is_relation and q != queue]
    choices = ["map", "filter", "flat_map", "duplicate"]
    if partners:
        choices += ["merge", "merge"]
    if type_.is_relation:
        choices += ["aggregate", "aggregate", "distinct", "istream", "dstream", "rstream", "top"]
        if relations:
            choices += ["join", "join", "join", "lookup"]
    else:
        choices += ["now", "range", "unbounded", "rows", "latest", "fold", "fold", "split"]
        if partners:
            choices += ["round_robin_join"]
    _add(draw, draft, queue, draw(st.sampled_from(choices)), partners, relations, sharing=sharing)


def _add(
    draw: st.DrawFn,
    draft: Draft,
    queue: str,
    choice: str,
    partners: list[str],
    relations: list[str],
    *,
    sharing: bool,
) -> None:
    type_ = draft.open[queue]
    schema = type_.schema
    keys = st.lists(st.sampled_from(schema.names), unique=True, max_size=2).map(tuple)
    match choice:
        case "map":
            draft.add(Map(draw(columns(schema))), (queue,), 1)
        case "filter":
            draft.add(Filter(draw(terms(schema, BOOLEAN))), (queue,), 1)
        case "flat_map":
            first = draw(columns(schema))
            second = tuple(Assign(c.name, draw(terms(schema, c.term.type))) for c in first)
            when = draw(st.one_of(st.none(), terms(schema, BOOLEAN)))
            draft.add(FlatMap((Branch(when, first), Branch(None, second))), (queue,), 1)
        case "duplicate":
            draft.add(Duplicate(), (queue,), 2)
        case "merge":
            draft.add(Merge(), (queue, draw(st.sampled_from(partners))), 1)
        case "aggregate":
            draft.add(Aggregate(draw(keys), draw(aggregations(schema))), (queue,), 1)
        case "join":
            _join(draw, draft, queue, draw(st.sampled_from(relations)))
        case "range":
            slide = draw(st.sampled_from([None, None, 2, 5]))
            draft.add(Range(draw(st.sampled_from([0, 1, 3, 10])), slide), (queue,), 1)
        case "unbounded":
            draft.add(Range(None), (queue,), 1)
        case "rows":
            within = draw(st.sampled_from([None, None, 2]))
            draft.add(Rows(draw(st.integers(1, 3)), draw(keys), within), (queue,), 1)
        case "top":
            by = draw(keys)
            down = tuple(name for name in by if draw(st.booleans()))
            draft.add(Top(draw(st.integers(1, 3)), by, down), (queue,), 1)
        case "lookup":
            _lookup(draw, draft, queue, draw(st.sampled_from(relations)))
        case "rstream":
            draft.add(Rstream(draw(st.sampled_from([(), (), (3,)]))), (queue,), 1)
        case "latest":
            draft.add(Latest(draw(keys)), (queue,), 1)
        case "fold":
            _fold(draw, draft, queue, sharing=sharing)
        case "split":
            weights = draw(st.sampled_from([(), (1, 2), (3, 1)]))
            draft.add(RoundRobinSplit(weights), (queue,), 2)
        case "round_robin_join":
            weights = draw(st.sampled_from([(), (1, 2), (2, 1)]))
            draft.add(RoundRobinJoin(weights), (queue, draw(st.sampled_from(partners))), 1)
        case _:
            simple = {"now": Now, "distinct": Distinct, "istream": Istream, "dstream": Dstream}
            draft.add(simple[choice](), (queue,), 1)


@st.composite
def columns(draw: st.DrawFn, schema: Schema) -> tuple[Assign, ...]:
    kept = [Assign(f.name, Column(f.name, f.type)) for f in schema if draw(st.booleans())]
    new = [
        Assign(name, draw(terms(schema, draw(st.sampled_from(TYPES)))))
        for name in _fresh_names(schema, draw(st.integers(0 if kept else 1, 2)))
    ]
    return (*kept, *new)


def _fresh_names(schema: Schema, count: int) -> list[str]:
    return [n for n in (f"m{i}" for i in range(count + len(schema))) if n not in schema][:count]


@st.composite
def aggregations(draw: st.DrawFn, schema: Schema) -> tuple[Aggregation, ...]:
    first, *others = _fresh_names(schema, draw(st.integers(1, 3)))
    found = [Aggregation(first, "count")]
    for name in others:
        function = draw(st.sampled_from(["sum", "avg", "min", "max", "count"]))
        allowed = {"sum": [NUMBER, INTEGER, DURATION], "avg": [NUMBER, INTEGER]}.get(
            function, [NUMBER, INTEGER, TEXT, TIME]
        )
        term = draw(terms(schema, draw(st.sampled_from(allowed)), 1))
        found.append(Aggregation(name, function, term))
    return tuple(found)


def _join(draw: st.DrawFn, draft: Draft, left: str, right: str) -> None:
    """Rename the right side first, so that no names clash."""
    prefix = draft.fresh("r")
    schema = draft.open[right].schema
    renamed = tuple(Assign(f"{prefix}_{n}", Column(f.name, f.type)) for n, f in enumerate(schema))
    draft.add(Map(renamed), (right,), 1)
    right = list(draft.open)[-1]
    pairs = [
        (a.name, b.name)
        for a in draft.open[left].schema
        for b in draft.open[right].schema
        if a.type == b.type
    ]
    on = tuple(draw(st.lists(st.sampled_from(pairs), max_size=2, unique=True))) if pairs else ()
    both = Schema(draft.open[left].schema.fields + draft.open[right].schema.fields)
    where = draw(st.one_of(st.none(), terms(both, BOOLEAN, 1)))
    draft.add(Join(on, where), (left, right), 1)


def _lookup(draw: st.DrawFn, draft: Draft, left: str, right: str) -> None:
    ours, theirs = draft.open[left].schema, draft.open[right].schema
    pairs = [(a.name, b.name) for a in ours for b in theirs if a.type == b.type]
    on = tuple(draw(st.lists(st.sampled_from(pairs), max_size=2, unique=True))) if pairs else ()
    name = next(n for n in (f"found{i}" for i in range(9)) if n not in ours)
    nulls_match, is_compared = draw(st.booleans()), draw(st.booleans())
    where = None
    if pairs and is_compared:
        one, other = draw(st.sampled_from(pairs))
        where = Comparison(one, draw(st.sampled_from(ORDERS)), other)
    draft.add(Lookup(name, on, nulls_match, where), (left, right), 1)


def _fold(draw: st.DrawFn, draft: Draft, queue: str, *, sharing: bool) -> None:
    schema = draft.open[queue].schema
    by = tuple(draw(st.lists(st.sampled_from(schema.names), unique=True, max_size=1)))
    key = tuple(schema[name] for name in by)
    candidates = [v for v in draft.variables if draft.keys[v.name] == key]
    if sharing and candidates and draw(st.booleans()):
        variable = draw(st.sampled_from(candidates))
    else:
        types = draw(st.lists(st.sampled_from(TYPES), min_size=1, max_size=2))
        fields = tuple(Field(f"f{n}", t) for n, t in enumerate(types))
        initial = tuple(draw(values(t)) for t in types)
        variable = Variable(draft.fresh("v"), fields, initial)
        draft.variables.append(variable)
        draft.keys[variable.name] = key
    known = (variable,)
    when = draw(st.one_of(st.none(), terms(schema, BOOLEAN, 1, known)))
    updates = tuple(
        Update(variable.name, f.name, draw(terms(schema, f.type, 2, known)))
        for f in variable.fields
        if draw(st.booleans())
    )
    emit = tuple(
        Assign(name, draw(terms(schema, draw(st.sampled_from(TYPES)), 1, known)))
        for name in _fresh_names(schema, draw(st.integers(0, 1)))
    ) + tuple(Assign(f.name, Column(f.name, f.type)) for f in schema if draw(st.booleans()))
    fold = Fold(by, when, updates, emit or None)
    reads = (variable.name,)
    writes = (variable.name,) if updates else ()
    draft.add(fold, (queue,), 1 if emit else 0, reads, writes)


# --- inputs -----------------------------------------------------------------------------


@st.composite
def inputs_for(draw: st.DrawFn, program: Program, *, max_rows: int = 8) -> dict[str, list[Event]]:
    """Events of every input in the order of their source; relations get sane changes."""
    return {
        one.name: draw(
            _changes(one.type.schema, max_rows) if one.type.is_relation
            else _rows(one.type.schema, max_rows)
        )
        for one in program.inputs
    }  # fmt: skip


@st.composite
def _row(draw: st.DrawFn, schema: Schema) -> Row:
    return tuple(draw(values(f.type)) for f in schema)


@st.composite
def _rows(draw: st.DrawFn, schema: Schema, max_rows: int) -> list[Event]:
    times = draw(st.lists(st.integers(0, 12), max_size=max_rows))
    if draw(st.integers(0, 3)):
        times.sort()  # mostly in order, sometimes late
    return [Event(t, draw(_row(schema))) for t in times]


@st.composite
def _changes(draw: st.DrawFn, schema: Schema, max_rows: int) -> list[Event]:
    """Insertions, some of which are taken back later."""
    events: list[Event] = []
    present: list[Row] = []
    for time in sorted(draw(st.lists(st.integers(0, 12), max_size=max_rows))):
        is_removal = bool(present) and draw(st.booleans())
        row: Row = draw(st.sampled_from(present) if is_removal else _row(schema))
        (present.remove if is_removal else present.append)(row)
        # Now and then something is taken away that is not there.
        weight = -1 if is_removal or draw(st.integers(0, 9)) == 0 else 1
        events.append(Event(time, row, weight))
    return events
