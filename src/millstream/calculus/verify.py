"""What every program must obey, as a table of named rules.

Run after every translation and after every pass. A rule yields the faults it finds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping

from millstream.calculus.functions import Filter, FlatMap, Fold, Map, RoundRobinJoin
from millstream.calculus.graph import Operator, Program, in_dependency_order, infer_types
from millstream.calculus.terms import Column, columns_read, walk
from millstream.calculus.types import TIME, TIME_COLUMN, WEIGHT_COLUMN
from millstream.errors import CheckError, Fault, listing, suggest

Rule = Callable[[Program], Iterator[Fault]]


def verify(program: Program) -> list[Fault]:
    """Every violation of every rule. Later rules assume the earlier ones hold."""
    for group in RULES:
        faults = [fault for rule in group.values() for fault in rule(program)]
        if faults:
            return faults
    return []


def verified(program: Program) -> Program:
    """The program itself, or a `CheckError` with all that is wrong with it."""
    faults = verify(program)
    if faults:
        raise CheckError(faults)
    return program


def _at(op: Operator, message: str, hint: str | None = None) -> Fault:
    return Fault(message, op.origin, hint, place=None if op.origin else op.id)


def queues_defined_once(program: Program) -> Iterator[Fault]:
    counts = Counter(program.input_names)
    for input_ in program.inputs:
        if counts[input_.name] > 1:
            yield Fault(f'the input "{input_.name}" is declared more than once', input_.span)
            return
    seen = set(program.input_names)
    for op in program.operators:
        for queue in op.outputs:
            if queue in seen:
                yield _at(op, f'the queue "{queue}" is defined more than once')
            seen.add(queue)


def queues_used_once(program: Program) -> Iterator[Fault]:
    seen: set[str] = set()
    for op in program.operators:
        for queue in op.inputs:
            if queue in seen:
                hint = f"make copies first: (a, b) <- Duplicate({queue});"
                yield _at(op, f'the queue "{queue}" is used more than once', hint)
            seen.add(queue)
    for queue in program.outputs:
        if queue in seen:
            hint = f"make copies first: (a, b) <- Duplicate({queue});"
            yield Fault(f'the queue "{queue}" is used more than once, once as output', hint=hint)
        seen.add(queue)


def queues_known(program: Program) -> Iterator[Fault]:
    defined = set(program.input_names) | {q for op in program.operators for q in op.outputs}
    for op in program.operators:
        for queue in op.inputs:
            if queue not in defined:
                yield _at(op, f'unknown queue "{queue}"', suggest(queue, defined))
    for queue in program.outputs:
        if queue not in defined:
            yield Fault(f'unknown output queue "{queue}"', hint=suggest(queue, defined))


def queues_not_left_over(program: Program) -> Iterator[Fault]:
    used = set(program.outputs) | {q for op in program.operators for q in op.inputs}
    for input_ in program.inputs:
        if input_.name not in used:
            yield Fault(f'the input "{input_.name}" is never used', input_.span, "remove it")
    for op in program.operators:
        for queue in op.outputs:
            if queue not in used:
                hint = f"declare it: output {queue};"
                yield _at(op, f'the queue "{queue}" is defined but never used', hint)


def state_fits_function(program: Program) -> Iterator[Fault]:
    """Folds use declared variables; all others thread exactly their private ones."""
    declared = {v.name for v in program.variables}
    for op in program.operators:
        if isinstance(op.function, Fold):
            yield from _fold_state(op, declared)
            continue
        count = op.function.state_count(len(op.inputs))
        if len(op.reads) != count or op.writes != op.reads:
            given = ", ".join(f"${v}" for v in op.variables) or "none"
            wanted = f"{count} variable{'s' if count != 1 else ''}, read and written"
            yield _at(op, f"{op.function.name} needs {wanted}; got {given}", _state_hint(op, count))


def _state_hint(op: Operator, count: int) -> str | None:
    if not count:
        return None
    state = ", ".join(f"$v{n}" if count > 1 else "$v" for n in range(1, count + 1))
    left, right = ", ".join((*op.outputs, state)), ", ".join((*op.inputs, state))
    return f"write ({left}) <- {op.function.name}...({right});"


def _fold_state(op: Operator, declared: set[str]) -> Iterator[Fault]:
    assert isinstance(op.function, Fold)
    for variable in op.variables:
        if variable not in declared:
            hint = suggest(variable, declared) or f"declare it: variable ${variable}(...);"
            yield _at(op, f'unknown variable "${variable}"', hint)
    for variable in sorted(op.function.variables_read() - set(op.reads)):
        yield _at(op, f'"${variable}" is read but not among the operator\'s inputs')
    for variable in sorted(set(op.writes) ^ op.function.variables_written()):
        if variable in op.writes:
            yield _at(op, f'"${variable}" is among the outputs but never set')
        else:
            yield _at(op, f'"${variable}" is set but not among the operator\'s outputs')


def private_state_stays_private(program: Program) -> Iterator[Fault]:
    for variable, ops in program.accessors().items():
        if len(ops) > 1 and any(_is_private(op, variable) for op in ops):
            names = " and ".join(op.function.name for op in ops)
            yield _at(ops[1], f'"${variable}" is private state and cannot be shared by {names}')


def _is_private(op: Operator, variable: str) -> bool:
    shared = op.reads[len(op.reads) - op.function.shared_count :]
    return not isinstance(op.function, Fold) and variable not in shared


def columns_named_once(program: Program) -> Iterator[Fault]:
    types, _ = infer_types(program)
    for op in program.operators:
        for queue in op.outputs:
            names = Counter(types[queue].schema.names if queue in types else ())
            for name, count in names.items():
                if count > 1:
                    yield _at(op, f'the queue "{queue}" has two columns "{name}"')
                if name in (TIME_COLUMN, WEIGHT_COLUMN):
                    yield _at(op, f'"{name}" is a reserved name; every item has it')


def unread_fields_are_all_set(program: Program) -> Iterator[Fault]:
    """A variable that is written but not read is replaced whole, as in the paper."""
    for op in program.operators:
        if not isinstance(op.function, Fold):
            continue
        for name in (v for v in op.writes if v not in op.reads):
            updated = {u.field for u in op.function.updates if u.variable == name}
            missing = [f for f in program.variable(name).schema.names if f not in updated]
            if missing:
                yield _at(
                    op,
                    f'"${name}" is not read, so all its fields must be set; missing: '
                    f"{', '.join(missing)}",
                    f"or read it: Fold[...](..., ${name})",
                )


def functions_fit_queues(program: Program) -> Iterator[Fault]:
    yield from infer_types(program)[1]


def columns_known(program: Program) -> Iterator[Fault]:
    """What works row by row reads columns that its rows have, of the types that these have."""
    types = program.queue_types()
    for op in program.operators:
        if not isinstance(op.function, (Map, Filter, FlatMap, Fold)):
            continue
        known = {field.name: field.type for field in types[op.inputs[0]].schema}
        for one in (t for term in op.function.terms() for t in walk(term)):
            if not isinstance(one, Column) or one.name == TIME_COLUMN:
                continue
            if one.name not in known:
                yield _at(op, f'no column "{one.name}" here', suggest(one.name, known))
            elif known[one.name] != one.type:
                yield _at(op, f'"{one.name}" is {known[one.name]} here, not {one.type}')


def keys_agree(program: Program) -> Iterator[Fault]:
    """Folds that share a variable use keys of the same types."""
    types = program.queue_types()
    for variable, ops in program.accessors().items():
        keys = []
        for op in ops:
            if isinstance(op.function, Fold):
                schema = types[op.inputs[0]].schema
                keys.append(tuple(schema[name] for name in op.function.by))
        if len(set(keys)) > 1:
            yield _at(ops[1], f'the operators that use "${variable}" have different keys')


def time_is_not_read_from_changes(program: Program) -> Iterator[Fault]:
    """A change that takes a row away has another time than the one that brought it."""
    types = program.queue_types()
    for op in program.operators:
        sees_changes = any(types[q].is_relation for q in op.inputs)
        if sees_changes and any(TIME_COLUMN in columns_read(t) for t in op.function.terms()):
            hint = f"take the time along before the window: Map[..., at = {TIME_COLUMN}]"
            yield _at(op, f"{TIME_COLUMN} cannot be read from a relation", hint)


def cycles_close_in_round_robin_joins(program: Program) -> Iterator[Fault]:
    """Any other function with several inputs would wait for itself."""
    ready = set(program.input_names)
    for op in in_dependency_order(program):
        if not op.function.can_begin([q in ready for q in op.inputs]):
            yield _at(op, "this operator is in a cycle that no RoundRobinJoin closes")
            return
        ready.update(op.outputs)


def time_passes_where_it_is_waited_for(program: Program) -> Iterator[Fault]:
    """A cycle could only say that time has passed if it had heard so from itself."""
    waiting = [op for op in program.operators if not op.function.acts_at_once]
    if not waiting:
        return
    readers = program.consumers()
    reported: set[str] = set()
    for first in (op for op in program.operators if isinstance(op.function, RoundRobinJoin)):
        behind = _behind(first, readers)
        if first.id not in behind:
            continue
        for op in (o for o in waiting if o.id in behind):
            if op.id not in reported:
                reported.add(op.id)
                where = "in" if first.id in _behind(op, readers) else "behind"
                message = f"{op.function.name} waits for time to pass, but {where} a cycle it never"
                yield _at(op, f"{message} does: nothing would come out", _AT_ONCE)


_AT_ONCE = "there use what takes each item as it comes: Map, Filter, FlatMap, Fold, Duplicate"


def _behind(first: Operator, readers: Mapping[str, tuple[Operator, int]]) -> set[str]:
    """The ids of the operators that hear from one, itself among them if it is in a cycle."""
    heard: set[str] = set()
    waiting = [first]
    while waiting:
        for op, _ in (readers[q] for q in waiting.pop().outputs if q in readers):
            if op.id not in heard:
                heard.add(op.id)
                waiting.append(op)
    return heard


def early_inputs_do_not_wait_for_others(program: Program) -> Iterator[Fault]:
    """Time is one for a program: an input with a slack holds back what is early beside it."""
    early = [one.name for one in program.inputs if one.is_early]
    for input_ in program.inputs:
        if input_.is_early and (input_.time is None or input_.type.schema.get(input_.time) != TIME):
            yield Fault(
                f'"{input_.name}" is early, but has no column that is its time', input_.span
            )
        if input_.is_early and input_.type.is_relation:
            yield Fault(f'"{input_.name}" is early, but a relation', input_.span)
        if early and input_.waits and not input_.is_read_once:
            message = (
                f'"{input_.name}" waits for its slack, and so does all that is early beside it'
            )
            hint = f"run what reads {listing(early)} early by itself, or all of it with EMIT EARLY"
            yield Fault(message, input_.span, hint)


RULES: tuple[dict[str, Rule], ...] = (
    {
        "queues-defined-once": queues_defined_once,
        "queues-used-once": queues_used_once,
        "queues-known": queues_known,
        "queues-not-left-over": queues_not_left_over,
    },
    {
        "state-fits-function": state_fits_function,
        "private-state-stays-private": private_state_stays_private,
        "cycles-close-in-round-robin-joins": cycles_close_in_round_robin_joins,
        "time-passes-where-it-is-waited-for": time_passes_where_it_is_waited_for,
    },
    {
        "functions-fit-queues": functions_fit_queues,
        "columns-named-once": columns_named_once,
        "unread-fields-are-all-set": unread_fields_are_all_set,
    },
    {
        "columns-known": columns_known,
        "keys-agree": keys_agree,
        "time-is-not-read-from-changes": time_is_not_read_from_changes,
        "early-inputs-do-not-wait-for-others": early_inputs_do_not_wait_for_others,
    },
)
