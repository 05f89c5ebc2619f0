"""From a program as written to a typed program; all faults at once.

Operators are elaborated when the types of their inputs are known, because terms are
checked against them. What hangs on a faulty operator is left out without further ado.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from millstream.calculus.check import Scope, check_into
from millstream.calculus.functions import (
    AGGREGATIONS,
    FUNCTIONS,
    Aggregate,
    Aggregation,
    Assign,
    Branch,
    Columns,
    Distinct,
    Dstream,
    Duplicate,
    Filter,
    FlatMap,
    Fold,
    Function,
    FunctionFault,
    Istream,
    Join,
    Latest,
    Map,
    Merge,
    Now,
    Range,
    RoundRobinJoin,
    RoundRobinSplit,
    Rows,
    Rstream,
    Update,
)
from millstream.calculus.graph import Input, Operator, Program, Variable
from millstream.calculus.syntax import Apply, Constant, Expression, Name, VariableName
from millstream.calculus.terms import Literal, Term
from millstream.calculus.types import (
    BOOLEAN,
    DURATION,
    INTEGER,
    TIME,
    TIME_COLUMN,
    WEIGHT_COLUMN,
    Field,
    QueueType,
    Schema,
    Type,
    Value,
)
from millstream.calculus.written import (
    Clause,
    Item,
    Word,
    WrittenInput,
    WrittenOperator,
    WrittenProgram,
    WrittenVariable,
)
from millstream.errors import CheckError, Fault, listing, suggest
from millstream.source import Span


def elaborate(written: WrittenProgram) -> Program:
    """The typed program, or a `CheckError` with every fault. It is not yet verified."""
    faults = _queue_faults(written)
    if not (written.operators or written.inputs or written.outputs):
        faults.append(Fault("this program is empty", written.end))
    inputs = tuple(_input(i, faults) for i in written.inputs)
    variables = tuple(_variable(v, faults) for v in written.variables)
    schemas = {v.name: v.schema for v in variables}
    types = {i.name: i.type for i in inputs}
    done: dict[int, Operator | None] = {}
    progress = True
    while progress:
        progress = False
        for number, op in enumerate(written.operators):
            if number not in done and _is_ready(op, types):
                done[number] = _operator(op, types, schemas, faults)
                progress = True
    if not faults:
        faults.extend(_unreached(written, done, types))
    if faults:
        raise CheckError(sorted(faults, key=lambda f: f.span.start if f.span else 0))
    operators = tuple(done[n] for n in range(len(written.operators)))
    assert all(operators), "an operator without a fault has no function"
    outputs = tuple(w.name for w in written.outputs)
    return Program(inputs, outputs, tuple(op for op in operators if op), variables)


def _input(written: WrittenInput, faults: list[Fault]) -> Input:
    schema, word = written.type.schema, written.time
    _check_names([(word.name, word.span) for word in written.columns], faults)
    if word is not None and schema.get(word.name) not in (TIME, None):
        message = f'"{word.name}" is of type {schema[word.name]}, but an event time must be a time'
        faults.append(Fault(message, word.span))
    slack = written.slack.value if written.slack else 0
    assert isinstance(slack, int)
    if slack < 0:
        assert written.slack
        faults.append(Fault("a slack cannot be negative", written.slack.span))
    return Input(written.name.name, written.type, word.name if word else None, slack,
                 written.name.span)  # fmt: skip


def _variable(written: WrittenVariable, faults: list[Fault]) -> Variable:
    _check_names([(f.name.name, f.name.span) for f in written.fields], faults)
    fields = tuple(Field(f.name.name, f.type) for f in written.fields)
    initial: list[Value] = []
    for one in written.fields:
        value = one.initial or Constant(None, one.type)
        term = check_into(value, Scope(Schema(), "an initial value"), faults, wanted=one.type)
        if term is not None and not isinstance(term, Literal):
            faults.append(Fault("an initial value must be a literal", value.span))
        initial.append(term.value if isinstance(term, Literal) else None)
    return Variable(written.name.name, fields, tuple(initial), written.name.span)


def _check_names(names: list[tuple[str, Span]], faults: list[Fault]) -> None:
    seen: set[str] = set()
    for name, span in names:
        if name in seen:
            faults.append(Fault(f'there are two columns "{name}"', span))
        if name in (TIME_COLUMN, WEIGHT_COLUMN):
            faults.append(Fault(f'"{name}" is a reserved name; every item has it', span))
        seen.add(name)


def _is_ready(op: WrittenOperator, types: dict[str, QueueType]) -> bool:
    known = [q.name in types for q in op.inputs]
    return any(known) if op.function.name == "RoundRobinJoin" else all(known)


def _queue_faults(written: WrittenProgram) -> list[Fault]:
    """Queues that are not defined once and used once, at their places.

    `verify` has the same rules for programs that were not written as text.
    """
    defined = [i.name for i in written.inputs]
    defined += [q for op in written.operators for q in op.outputs]
    used = [q for op in written.operators for q in op.inputs] + list(written.outputs)
    faults = [Fault(f'the queue "{q.name}" is defined more than once', q.span)
              for q in _repeated(defined)]  # fmt: skip
    for queue in _repeated(used):
        hint = f"make copies first: (a, b) <- Duplicate({queue.name});"
        faults.append(Fault(f'the queue "{queue.name}" is used more than once', queue.span, hint))
    names = {q.name for q in defined}
    for queue in used:
        if queue.name not in names:
            near = suggest(queue.name, names)
            faults.append(Fault(f'unknown queue "{queue.name}"', queue.span, near))
    read = {q.name for q in used}
    for queue in defined:
        if queue.name not in read and not faults:
            hint = f"declare it: output {queue.name};"
            message = f'the queue "{queue.name}" is defined but never used'
            faults.append(Fault(message, queue.span, hint))
    return faults


def _repeated(words: list[Word]) -> list[Word]:
    seen: set[str] = set()
    return [w for w in words if w.name in seen or seen.add(w.name)]  # type: ignore[func-returns-value]


def _unreached(
    written: WrittenProgram, done: dict[int, Operator | None], types: dict[str, QueueType]
) -> list[Fault]:
    """Operators that could not be typed are in a cycle that no join closes."""
    first = next((op for n, op in enumerate(written.operators) if n not in done), None)
    if first is None:
        return []
    message = f"this cycle is not closed by a RoundRobinJoin: {first.function.name} waits for"
    names = [q.name for q in first.inputs if q.name not in types]
    return [Fault(f"{message} {listing(names)}", first.span)]


def _operator(
    op: WrittenOperator,
    types: dict[str, QueueType],
    variables: dict[str, Schema],
    faults: list[Fault],
) -> Operator | None:
    known = [types[q.name] for q in op.inputs if q.name in types]
    inputs = tuple(types.get(q.name, known[0]) for q in op.inputs) if known else ()
    body = _Body(op, inputs, variables, faults)
    function = body.function()
    if function is None:
        _guess_types(op, inputs, types)
        return None
    if not _fits_counts(function, op, faults):
        return None
    try:
        outputs = function.output_types(inputs, len(op.outputs))
    except FunctionFault as fault:
        faults.extend(Fault(message, op.span) for message in fault.messages)
        return None
    types.update(zip((q.name for q in op.outputs), outputs, strict=True))

    def names(words: tuple[Word, ...]) -> tuple[str, ...]:
        return tuple(w.name for w in words)

    return Operator(
        function, names(op.inputs), names(op.outputs), names(op.reads), names(op.writes), op.span
    )


def _guess_types(
    op: WrittenOperator, inputs: tuple[QueueType, ...], types: dict[str, QueueType]
) -> None:
    """Where a faulty function cannot change the columns, what follows can be checked too."""
    name = op.function.name
    if name not in KEEPS_COLUMNS or not inputs:
        return
    kind = KEEPS_COLUMNS[name]
    is_relation = inputs[0].is_relation if kind is None else kind
    for queue in op.outputs:
        types.setdefault(queue.name, QueueType(inputs[0].schema, is_relation))


#: Functions whose output has the columns of the input, and whether it is a relation.
KEEPS_COLUMNS: dict[str, bool | None] = {
    "Filter": None, "Merge": None, "Duplicate": None, "Now": True, "Range": True, "Rows": True,
    "Latest": True, "Distinct": True, "Istream": False, "Dstream": False, "Rstream": False,
    "RoundRobinSplit": False, "RoundRobinJoin": False,
}  # fmt: skip


def _fits_counts(function: Function, op: WrittenOperator, faults: list[Fault]) -> bool:
    before = len(faults)
    for what, queues, count in (
        ("input", op.inputs, function.input_count),
        ("output", op.outputs, function.output_count),
    ):
        if count is not None and len(queues) != count:
            plural = "s" if count != 1 else ""
            message = f"{function.name} needs {count} {what} queue{plural}, got {len(queues)}"
            faults.append(Fault(message, op.span))
    if function.input_count is None and not op.inputs:
        faults.append(Fault(f"{function.name} needs at least one input queue", op.span))
    return len(faults) == before


@dataclass
class _Body:
    """The body of one operator, on its way to a function."""

    op: WrittenOperator
    inputs: tuple[QueueType, ...]
    variables: dict[str, Schema]
    faults: list[Fault]
    scope: Scope = field(init=False)

    def __post_init__(self) -> None:
        readable = {w.name for w in self.op.reads}
        known = {n: s for n, s in self.variables.items() if n in readable}
        fields = tuple(dict.fromkeys(f for i in self.inputs for f in i.schema))
        owner = " and ".join(q.name for q in self.op.inputs)
        self.scope = Scope(Schema(fields), owner, known)

    def fail(self, message: str, span: Span | None = None, hint: str | None = None) -> None:
        self.faults.append(Fault(message, span or self.op.function.span, hint))

    def function(self) -> Function | None:
        name = self.op.function.name
        shape = SHAPES.get(name)
        if shape is None:
            hint = f"functions are: {listing(SHAPES, 20)}. {suggest(name, SHAPES) or ''}".strip()
            if name in FUNCTIONS:
                hint = "Opaque functions come from the Python API and cannot be written as text"
            self.fail(f'unknown function "{name}"', hint=hint)
            return None
        before = len(self.faults)
        for clause in self.op.clauses:
            if clause.keyword not in shape.clauses:
                word = f"`{clause.keyword}`" if clause.keyword else "a plain list"
                self.fail(f"{name} does not take {word}", clause.span, f"usage: {shape.usage}")
        if len(self.faults) > before:
            return None
        function = shape.build(self)
        return None if len(self.faults) > before else function

    # --- clauses ---

    def items(self, keyword: str | None) -> tuple[Item, ...]:
        return tuple(i for c in self.op.clauses if c.keyword == keyword for i in c.items)

    def column_names(self, keyword: str) -> tuple[str, ...]:
        names = []
        for item in self.items(keyword):
            if isinstance(item.value, Name) and item.target is None:
                check_into(item.value, self.scope, self.faults)
                names.append(item.value.name)
            else:
                self.fail("expected the name of a column", item.span)
        return tuple(names)

    def term(self, expression: Expression, wanted: Type | None = None) -> Term | None:
        return check_into(expression, self.scope, self.faults, wanted=wanted)

    def condition(self, items: tuple[Item, ...], word: str) -> Term | None:
        if not items:
            return None
        if items[0].target is not None:
            self.fail(
                "expected a condition, got an assignment", items[0].span, "write == to compare"
            )
            return None
        if len(items) != 1:
            self.fail(f"expected one condition after `{word}`", items[1].span)
            return None
        return self.term(items[0].value, BOOLEAN)

    def columns(self, items: tuple[Item, ...]) -> Columns:
        assigned: list[Assign] = []
        for item in items:
            target = item.target or item.value
            if not isinstance(target, Name):
                self.fail("this column needs a name", item.span, "write: name = expression")
                continue
            _check_names(
                [(a.name, item.span) for a in assigned if a.name == target.name]
                + [(target.name, item.span)],
                self.faults,
            )
            term = self.term(item.value)
            if term is not None:
                assigned.append(Assign(target.name, term))
        return tuple(assigned)

    def whole(self, items: tuple[Item, ...], what: str) -> tuple[int, ...]:
        numbers = []
        for item in items:
            value = item.value
            if isinstance(value, Constant) and value.type == INTEGER and item.target is None:
                assert isinstance(value.value, int)
                numbers.append(value.value)
            else:
                self.fail(f"expected {what}", item.span)
        return tuple(numbers)

    # --- one method per function with a body ---

    def map_(self) -> Function | None:
        if not self.items(None):
            self.fail("Map needs columns", hint=f"usage: {SHAPES['Map'].usage}")
        return Map(self.columns(self.items(None)))

    def filter_(self) -> Function | None:
        condition = self.condition(self.items(None), "[")
        if condition is None:
            if not self.items(None):
                self.fail("Filter needs a condition", hint=f"usage: {SHAPES['Filter'].usage}")
            return None
        return Filter(condition)

    def flat_map(self) -> Function | None:
        branches: list[Branch] = []
        when: Clause | None = None
        for clause in self.op.clauses:
            if clause.keyword == "when":
                when = clause
                continue
            condition = self.condition(when.items, "when") if when else None
            branches.append(Branch(condition, self.columns(clause.items)))
            when = None
        if when is not None:
            self.fail("expected `emit` after this condition", when.span)
        return FlatMap(tuple(branches))

    def fold(self) -> Function | None:
        for word in dict.fromkeys((*self.op.reads, *self.op.writes)):
            if word.name not in self.variables:
                hint = suggest(word.name, self.variables)
                declare = f"declare it: variable ${word.name}(field type = value);"
                self.fail(f'unknown variable "${word.name}"', word.span, hint or declare)
                return None
        emits = [c for c in self.op.clauses if c.keyword == "emit"]
        if len(emits) > 1:
            self.fail("Fold has at most one `emit`", emits[1].span)
        emit = self.columns(emits[0].items) if emits else None
        when = self.condition(self.items("when"), "when")
        updates = tuple(u for i in self.items("set") if (u := self.update(i)) is not None)
        return Fold(self.column_names("by"), when, updates, emit)

    def update(self, item: Item) -> Update | None:
        target = item.target
        if not isinstance(target, VariableName):
            self.fail("expected `$variable.field = expression`", item.span)
            return None
        written = {w.name for w in self.op.writes}
        if target.variable not in written:
            self.fail(
                f"${target.variable} is set here but is not among the operator's outputs",
                target.span,
                f"write (..., ${target.variable}) <- Fold[...]",
            )
            return None
        fields = self.variables.get(target.variable)
        if fields is None or fields.get(target.field) is None:
            known = {n: s for n, s in self.variables.items() if n in written}
            check_into(target, Scope(Schema(), "", known), self.faults)
            return None
        term = self.term(item.value, fields[target.field])
        return None if term is None else Update(target.variable, target.field, term)

    def range_(self) -> Function | None:
        if any(c.keyword == "unbounded" for c in self.op.clauses):
            return Range(None)
        values = [i.value for i in self.items(None)]
        if len(values) == 1 and isinstance(values[0], Constant) and values[0].type == DURATION:
            assert isinstance(values[0].value, int)
            return Range(values[0].value)
        self.fail("Range needs one duration", hint=f"usage: {SHAPES['Range'].usage}")
        return None

    def rows(self) -> Function | None:
        counts = self.whole(self.items(None), "a number of rows")
        if len(counts) != 1:
            self.fail("Rows needs a number of rows", hint=f"usage: {SHAPES['Rows'].usage}")
            return None
        return Rows(counts[0], self.column_names("by"))

    def latest(self) -> Function | None:
        return Latest(self.column_names("by"))

    def join(self) -> Function | None:
        pairs: list[tuple[str, str]] = []
        for item in self.items("on"):
            left, right = item.target or item.value, item.value
            if isinstance(left, Name) and isinstance(right, Name):
                pairs.append((left.name, right.name))
            else:
                self.fail("expected `column` or `left = right`", item.span)
        return Join(tuple(pairs), self.condition(self.items("where"), "where"))

    def aggregate(self) -> Function | None:
        found = [self.aggregation(i) for i in self.items(None)]
        if not found:
            self.fail("Aggregate needs aggregates", hint=f"usage: {SHAPES['Aggregate'].usage}")
        by = self.column_names("by")
        names = [(n, self.op.span) for n in by]
        names += [(a.name, i.span) for a, i in zip(found, self.items(None), strict=True) if a]
        _check_names(names, self.faults)
        return Aggregate(by, tuple(a for a in found if a is not None))

    def aggregation(self, item: Item) -> Aggregation | None:
        call = item.value
        if not isinstance(item.target, Name) or not isinstance(call, Apply):
            self.fail("expected `name = sum(expression)` or the like", item.span)
            return None
        if call.function not in AGGREGATIONS:
            hint = f"aggregates are: {listing(AGGREGATIONS)}."
            near = suggest(call.function, AGGREGATIONS)
            self.fail(f'unknown aggregate "{call.function}"', call.function_span,
                      f"{hint} {near}" if near else hint)  # fmt: skip
            return None
        if len(call.args) > 1:
            self.fail(f"{call.function} takes one argument", call.span)
            return None
        term = self.term(call.args[0]) if call.args else None
        if call.args and term is None:
            return None
        found = Aggregation(item.target.name, call.function, term)
        try:
            found.result_type()
        except FunctionFault as fault:
            self.fail(str(fault), call.span)
            return None
        return found

    def weights(self) -> tuple[int, ...]:
        return self.whole(self.items(None), "a weight")


@dataclass(frozen=True)
class Shape:
    """Which clauses the body of a function has, and how it is built from them."""

    clauses: tuple[str | None, ...]
    usage: str
    build: Callable[[_Body], Function | None]


SHAPES: dict[str, Shape] = {
    "Map": Shape((None,), "Map[name = expression, column, ...]", _Body.map_),
    "Filter": Shape((None,), "Filter[condition]", _Body.filter_),
    "FlatMap": Shape(("when", "emit"), "FlatMap[when condition emit a = x; emit a = y]",
                     _Body.flat_map),
    "Fold": Shape(("by", "when", "set", "emit"),
                  "Fold[by key; when condition; set $v.field = x; emit a = $v.field]", _Body.fold),
    "Merge": Shape((), "Merge", lambda _: Merge()),
    "Now": Shape((), "Now", lambda _: Now()),
    "Range": Shape((None, "unbounded"), "Range[5 min] or Range[unbounded]", _Body.range_),
    "Rows": Shape((None, "by"), "Rows[10] or Rows[10 by key]", _Body.rows),
    "Latest": Shape(("by",), "Latest[by key]", _Body.latest),
    "Join": Shape(("on", "where"), "Join[on key, left = right; where condition]", _Body.join),
    "Aggregate": Shape(("by", None), "Aggregate[by key; total = sum(x), n = count()]",
                       _Body.aggregate),
    "Distinct": Shape((), "Distinct", lambda _: Distinct()),
    "Istream": Shape((), "Istream", lambda _: Istream()),
    "Dstream": Shape((), "Dstream", lambda _: Dstream()),
    "Rstream": Shape((), "Rstream", lambda _: Rstream()),
    "Duplicate": Shape((), "Duplicate", lambda _: Duplicate()),
    "RoundRobinSplit": Shape((None,), "RoundRobinSplit[1, 1]",
                             lambda b: RoundRobinSplit(b.weights())),
    "RoundRobinJoin": Shape((None,), "RoundRobinJoin[1, 1]",
                            lambda b: RoundRobinJoin(b.weights())),
}  # fmt: skip
