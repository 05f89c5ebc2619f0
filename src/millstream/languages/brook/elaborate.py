"""From a program as written to a typed program; all faults at once.

Operators are elaborated when the types of their inputs are known, because terms are
checked against them. What hangs on a faulty operator is left out without further ado.
"""

from __future__ import annotations

from millstream.calculus.check import Scope, check_into
from millstream.calculus.functions import (
    Function,
    FunctionFault,
)
from millstream.calculus.graph import Input, Operator, Program, Variable
from millstream.calculus.syntax import Constant, Expression, Word
from millstream.calculus.terms import Literal
from millstream.calculus.types import (
    TIME,
    Field,
    QueueType,
    Row,
    Schema,
    Type,
    Value,
)
from millstream.errors import CheckError, Fault, listing, suggest
from millstream.languages.brook.bodies import Body
from millstream.languages.brook.clauses import check_names
from millstream.languages.brook.written import (
    WrittenInput,
    WrittenOperator,
    WrittenProgram,
    WrittenVariable,
)


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
    readers: dict[str, list[int]] = {}
    for number, op in enumerate(written.operators):
        for queue in op.inputs:
            readers.setdefault(queue.name, []).append(number)
    waiting = list(reversed(range(len(written.operators))))
    while waiting:
        number = waiting.pop()
        op = written.operators[number]
        if number not in done and _is_ready(op, types):
            done[number] = _operator(op, types, schemas, faults)
            waiting += [n for q in op.outputs for n in readers.get(q.name, ())]
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
    check_names([(word.name, word.span) for word in written.columns], faults)
    if word is not None and schema.get(word.name) not in (TIME, None):
        message = f'"{word.name}" is of type {schema[word.name]}, but an event time must be a time'
        faults.append(Fault(message, word.span))
    slack = written.slack.value if written.slack else 0
    assert isinstance(slack, int)
    if slack < 0:
        assert written.slack
        faults.append(Fault("a slack cannot be negative", written.slack.span))
    if written.is_read_once and (word or not written.type.is_relation):
        what = "has no times" if word else "must be a relation"
        faults.append(Fault(f"an input that is read once {what}", (word or written.name).span))
    return Input(written.name.name, written.type, word.name if word else None, slack,
                 written.name.span, written.is_read_once,
                 values=_values(written, faults), is_early=written.is_early)  # fmt: skip


def _values(written: WrittenInput, faults: list[Fault]) -> tuple[Row, ...] | None:
    """The rows that an input brings itself."""
    if written.values is None:
        return None
    if not written.is_read_once:
        faults.append(Fault("only an input that is read once can have values", written.name.span))
    fields = written.type.schema.fields
    rows: list[Row] = []
    for row in written.values:
        if len(row) != len(fields):
            message = f"expected {len(fields)} values in a row, got {len(row)}"
            faults.append(Fault(message, row[0].span if row else written.name.span))
            continue
        rows.append(tuple(_literal(v, f.type, faults) for v, f in zip(row, fields, strict=True)))
    return tuple(rows)


def _literal(value: Expression, type_: Type, faults: list[Fault]) -> Value:
    """The value of a literal of a type."""
    term = check_into(value, Scope(Schema(), "a value"), faults, wanted=type_)
    if term is not None and not isinstance(term, Literal):
        faults.append(Fault("expected a literal", value.span))
    return term.value if isinstance(term, Literal) else None


def _variable(written: WrittenVariable, faults: list[Fault]) -> Variable:
    check_names([(f.name.name, f.name.span) for f in written.fields], faults)
    fields = tuple(Field(f.name.name, f.type) for f in written.fields)
    initial: list[Value] = []
    for one in written.fields:
        value = one.initial or Constant(None, one.type)
        term = check_into(value, Scope(Schema(), "an initial value"), faults, wanted=one.type)
        if term is not None and not isinstance(term, Literal):
            faults.append(Fault("an initial value must be a literal", value.span))
        initial.append(term.value if isinstance(term, Literal) else None)
    return Variable(written.name.name, fields, tuple(initial), written.name.span)


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
    body = Body(op, inputs, variables, faults)
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
    "Latest": True, "Held": True, "Until": True, "Distinct": True, "Except": True, "Top": True,
    "Istream": False, "Dstream": False, "Rstream": False, "RoundRobinSplit": False,
    "RoundRobinJoin": False,
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
