"""Linking: the programs of all nodes become one program.

Queues and variables of a node get the node's name in front, so that nodes cannot meet by
accident. What one node gives under a name, others read under that name; a queue that
several read is duplicated. So a project of any size is one plan.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace

from millstream.calculus.ending import has_end
from millstream.calculus.functions import Assign, Duplicate, Fold, Function, Map, Update
from millstream.calculus.graph import Input, Operator, Program, Variable, without_copies
from millstream.calculus.rename import rename_variables
from millstream.calculus.tables import RunScript
from millstream.calculus.terms import Column
from millstream.calculus.types import QueueType
from millstream.calculus.verify import verified
from millstream.errors import CheckError, Fault, listing, suggest
from millstream.project.file import NodeTable, ProjectFile, StreamTable


@dataclass(frozen=True, slots=True)
class Linked:
    """One program for a project; its outputs bear the names they have in the project."""

    program: Program
    streams: tuple[StreamTable, ...]


def link(project: ProjectFile, programs: dict[str, Program], asked: Collection[str] = ()) -> Linked:
    """Wire the programs of a project's nodes together.

    What other nodes read is no output, unless it has a sink or is `asked` for.
    """
    linker = _Linker(project, programs, asked)
    program = linker.linked()
    if linker.faults:
        raise CheckError(linker.faults)
    program = without_copies(program)
    used = set(program.input_names)
    return Linked(verified(program), tuple(s for s in project.streams if s.name in used))


@dataclass
class _Linker:
    """Mutable: collects the operators, and the faults."""

    project: ProjectFile
    programs: dict[str, Program]
    asked: Collection[str] = ()
    faults: list[Fault] = field(default_factory=list)

    def linked(self) -> Program:
        provided = self._provided()
        readers = self._readers(provided)
        operators: list[Operator] = []
        variables: list[Variable] = []
        for node in self.project.nodes:
            program = self.programs[node.name]
            operators += [_prefixed(op, node) for op in program.operators]
            variables += [replace(v, name=f"{node.name}.{v.name}") for v in program.variables]
        inputs = [self._input(s, provided) for s in self.project.streams if readers.get(s.name)]
        outputs: list[str] = []
        for name, type_ in provided.items():
            if type_ is None:
                continue
            targets = list(readers.get(name, []))
            is_stream = any(s.name == name for s in self.project.streams)
            has_sink = any(s.name == name for s in self.project.sinks)
            is_free = not is_stream and (not targets or name in self.asked)
            wants_output = has_sink or is_free
            output = None
            if wants_output:
                # A stream that is read and written out too cannot have its name twice.
                output = f"{name}.out" if is_stream and targets else name
                outputs.append(output)
            operators += self._wires(name, type_, targets, output)
        return Program(tuple(inputs), tuple(outputs), tuple(operators), tuple(variables))

    def _provided(self) -> dict[str, QueueType | None]:
        """Every name that can be read, with its type where it is known."""
        provided: dict[str, QueueType | None] = {}
        for stream in self.project.streams:
            columns = stream.columns
            provided[stream.name] = (
                None if columns is None else QueueType(columns, stream.is_relation)
            )
        for node in self.project.nodes:
            program = self.programs[node.name]
            types = program.queue_types()
            for name, queue in _outputs(node, program).items():
                if queue not in program.outputs:
                    hint = f"it has: {listing(program.outputs)}"
                    self.faults.append(Fault(f'node "{node.name}" has no output "{queue}"',
                                             node.span, hint))  # fmt: skip
                elif name in provided:
                    self.faults.append(Fault(f'"{name}" is provided twice', node.span))
                else:
                    provided[name] = types[queue]
        for sink in self.project.sinks:
            if sink.name not in provided:
                hint = f"there are: {listing(provided)}. {suggest(sink.name, provided) or ''}"
                self.faults.append(
                    Fault(f'nothing provides "{sink.name}"', sink.span, hint.strip())
                )
        return provided

    def _readers(
        self, provided: dict[str, QueueType | None]
    ) -> dict[str, list[tuple[str, QueueType]]]:
        """For every name, the node queues that read it."""
        readers: dict[str, list[tuple[str, QueueType]]] = {}
        for node in self.project.nodes:
            program = self.programs[node.name]
            for alias in node.inputs:
                if alias not in program.input_names:
                    hint = f"it has: {listing(program.input_names)}"
                    self.faults.append(Fault(f'node "{node.name}" has no input "{alias}"',
                                             node.span, hint))  # fmt: skip
            for input_ in program.inputs:
                name = node.inputs.get(input_.name, input_.name)
                if name not in provided:
                    hint = f"there are: {listing(provided)}. {suggest(name, provided) or ''}"
                    self.faults.append(
                        Fault(f'nothing provides "{name}", which node "{node.name}" reads',
                              node.span, hint.strip())
                    )  # fmt: skip
                    continue
                readers.setdefault(name, []).append((f"{node.name}.{input_.name}", input_.type))
                if provided[name] is None:
                    provided[name] = input_.type
        return readers

    def _input(self, stream: StreamTable, provided: dict[str, QueueType | None]) -> Input:
        """The input of a stream; what the project does not say its first reader may say."""
        type_ = provided[stream.name]
        assert type_ is not None
        readers = [
            one
            for node in self.project.nodes
            for one in self.programs[node.name].inputs
            if node.inputs.get(one.name, one.name) == stream.name
        ]
        once = stream.is_read_once or any(one.is_read_once for one in readers)
        time = stream.time or next((one.time for one in readers if one.time), None)
        slack = stream.slack or max((one.slack for one in readers), default=0)
        is_log = any(reader.is_log for reader in readers)
        # What has no key for one reader may still say something to another.
        keys = tuple(k for k in type_.schema.names if all(k in one.keys for one in readers))
        bounds = dict.fromkeys(b for one in readers for b in one.within)
        within = tuple(b for b in bounds if all(b in one.within for one in readers))
        is_numbered = not once and time is None and bool(readers)
        is_numbered = is_numbered and all(one.is_numbered for one in readers)
        return Input(
            stream.name, type_, None if once else time, slack, stream.span, once, is_log,
            unit=stream.times.unit, zone=stream.times.zone, time_format=stream.times.format,
            keys=keys if readers else (), within=within, is_numbered=is_numbered,
            ends=self._end(), closes=self._closes(),
            is_early=self._is_early(stream, readers, slack),
        )  # fmt: skip

    def _is_early(self, stream: StreamTable, readers: list[Input], slack: int) -> bool:
        """Whether nobody waits for the slack of a stream; all of its readers must agree."""
        early = [reader.is_early for reader in readers]
        if slack and any(early) and not all(early):
            message = f'"{stream.name}" is read with EMIT EARLY by one node, and without by another'
            hint = "time cannot be waited for and not: put one of them into a project of its own"
            self.faults.append(Fault(message, stream.span, hint))
        return bool(early) and all(early)

    def _end(self) -> int | None:
        """How far time goes on at the end of a finite run, if all programs want that."""
        inside = {name for program in self.programs.values() for name in program.outputs}
        inputs = [
            one
            for node in self.project.nodes
            for one in self.programs[node.name].inputs
            if node.inputs.get(one.name, one.name) not in inside and not one.closes
        ]
        ends = [input_.ends for input_ in inputs]
        known = [end for end in ends if end is not None]
        return max(known) if known and len(known) == len(ends) else None

    def _closes(self) -> bool:
        """Whether any program tells something when all inputs are over."""
        return any(map(has_end, self.programs.values()))

    def _wires(
        self,
        name: str,
        type_: QueueType,
        targets: list[tuple[str, QueueType]],
        output: str | None,
    ) -> list[Operator]:
        """From what provides a name to all who read it."""
        provider = self._provider(name)
        ends = [target for target, _ in targets]
        operators: list[Operator] = []
        for target, wanted in targets:
            if wanted != type_:
                operators += self._fitted(name, type_, target, wanted)
                ends[ends.index(target)] = f"{target}.all"
        if output is not None:
            ends.append(output)
        if ends and ends != [provider]:
            operators.append(Operator(Duplicate(), (provider,), tuple(ends)))
        return operators

    def _provider(self, name: str) -> str:
        for node in self.project.nodes:
            queue = _outputs(node, self.programs[node.name]).get(name)
            if queue is not None:
                return f"{node.name}.{queue}"
        return name

    def _fitted(
        self, name: str, type_: QueueType, target: str, wanted: QueueType
    ) -> list[Operator]:
        """A reader may want fewer columns, or in another order, but not others."""
        node = target.split(".", 1)[0]
        span = next(n.span for n in self.project.nodes if n.name == node)
        if type_.is_relation != wanted.is_relation:
            is_, asked = _KINDS[type_.is_relation], _KINDS[wanted.is_relation]
            hint = f"write [{asked}.{name}] in place of [{is_}.{name}]"
            self.faults.append(
                Fault(f'node "{node}" reads "{name}" as a {asked}, but it is a {is_}', span,
                      hint if self._provider(name) == name else None)
            )  # fmt: skip
        columns: list[Assign] = []
        for column in wanted.schema:
            given = type_.schema.like(column.name)
            columns.append(Assign(column.name, Column(given or column.name, column.type)))
            actual = None if given is None else type_.schema[given]
            if actual != column.type:
                what = "has no such column" if actual is None else f"has it as {actual}"
                self.faults.append(
                    Fault(f'node "{node}" reads "{column.name}" ({column.type}) of "{name}", '
                          f"which {what}", span, f'"{name}" has: {listing(type_.schema.names)}')
                )  # fmt: skip
        return [Operator(Map(tuple(columns)), (f"{target}.all",), (target,))]


#: What a queue is called, by whether it is a relation.
_KINDS = ("stream", "relation")


def _outputs(node: NodeTable, program: Program) -> dict[str, str]:
    """Names outside the node to queues inside; by default they are the same."""
    renamed = set(node.outputs.values())
    return {**{q: q for q in program.outputs if q not in renamed}, **node.outputs}


def _prefixed(op: Operator, node: NodeTable) -> Operator:
    def named(names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(f"{node.name}.{name}" for name in names)

    return Operator(
        _as_known_outside(op.function, node), named(op.inputs), named(op.outputs),
        named(op.reads), named(op.writes), op.origin,
    )  # fmt: skip


def _as_known_outside(function: Function, node: NodeTable) -> Function:
    """With the names that variables and inputs, which it names itself, have in the project."""
    match function:
        case Fold():
            return _with_variables(function, node.name)
        case RunScript(input_name=name):
            return replace(function, input_name=node.inputs.get(name, name))
        case _:
            return function


def _with_variables(function: Fold, node: str) -> Fold:
    return Fold(
        function.by,
        function.when and rename_variables(function.when, node),
        tuple(
            Update(f"{node}.{u.variable}", u.field, rename_variables(u.term, node))
            for u in function.updates
        ),
        function.emit
        and tuple(Assign(c.name, rename_variables(c.term, node)) for c in function.emit),
    )
