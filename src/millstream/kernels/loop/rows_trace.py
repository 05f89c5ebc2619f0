"""What happens to one row: operators unrolled into a list of actions.

A row enters by one queue and runs through the operators in their order. A queue between
them holds a fixed number of *slots* for it: one, or after a `FlatMap` one per branch. A
slot is filled if its *guard* holds: guards are numbered, guard 0 always holds, and every
other one is decided below a parent.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from millstream.calculus.functions import Columns, Duplicate, Filter, FlatMap, Fold, Map
from millstream.calculus.graph import Operator, Variable
from millstream.calculus.terms import Term
from millstream.calculus.types import TIME, QueueType, Type
from millstream.kernels.loop.rows_nodes import (
    TIME_NUMBER,
    Apply,
    Names,
    Node,
    Root,
    Source,
    StateRead,
    UnsupportedError,
    is_row_only,
    node_of,
)

_MOST_SLOTS = 1024


@dataclass(frozen=True, slots=True)
class Slot:
    guard: int
    columns: dict[str, Node]


@dataclass(eq=False, slots=True)
class Key:
    """The columns by which a fold finds its record; `space` numbers are shared by the
    folds whose variables are kept under the same keys. Without columns there is one record.
    """  # noqa: D205

    input: int
    nodes: tuple[Node, ...]
    space: int = -1

    @property
    def types(self) -> tuple[Type, ...]:
        return tuple(n.type for n in self.nodes)


@dataclass(frozen=True, slots=True)
class Evaluate:
    """Compute a term and count its faults."""

    guard: int
    node: Apply
    root: Root


@dataclass(frozen=True, slots=True)
class Decide:
    """The guard `opens` holds where `guard` does and the condition is true."""

    guard: int
    node: Node
    opens: int


@dataclass(frozen=True, slots=True)
class Load:
    guard: int
    key: Key
    reads: tuple[StateRead, ...]


@dataclass(frozen=True, slots=True)
class Store:
    guard: int
    key: Key
    updates: tuple[tuple[str, str, Node], ...]


@dataclass(frozen=True, slots=True)
class Send:
    """A row leaves, as the given slot of an output."""

    guard: int
    output: int
    slot: int


Action = Evaluate | Decide | Load | Store | Send


@dataclass(frozen=True, slots=True)
class Output:
    """Where the rows of an output come from, and the columns of each of its slots."""

    input: int
    type: QueueType
    slots: tuple[Slot, ...]

    @property
    def is_every_row(self) -> bool:
        """Does every row of the input leave, once?"""
        return len(self.slots) == 1 and self.slots[0].guard == 0

    def nodes(self, column: str) -> tuple[Node, ...]:
        return tuple(slot.columns[column] for slot in self.slots)


@dataclass(slots=True)
class Trace:
    """Mutable while it is made. `parents` has the parent of every guard."""

    inputs: tuple[QueueType, ...]
    actions: list[list[Action]]
    outputs: list[Output] = field(default_factory=list)
    parents: list[int] = field(default_factory=lambda: [0])
    roots: list[Root] = field(default_factory=list)
    keys: list[Key] = field(default_factory=list)
    spaces: dict[str, int] = field(default_factory=dict)

    @property
    def fault_count(self) -> int:
        return sum(len(root.places) for root in self.roots)


def trace(
    operators: tuple[Operator, ...],
    inputs: tuple[tuple[str, QueueType], ...],
    outputs: tuple[str, ...],
    variables: tuple[Variable, ...],
) -> Trace:
    """Follow a row of each input through the operators.

    Raises `UnsupportedError` if they cannot be compiled.
    """
    return _Tracer(inputs, outputs, variables).run(operators)


def _sources(input_: int, type_: QueueType) -> dict[str, Node]:
    return {f.name: Source(input_, n, f.type) for n, f in enumerate(type_.schema)}


class _Tracer:
    def __init__(
        self,
        inputs: tuple[tuple[str, QueueType], ...],
        outputs: tuple[str, ...],
        variables: tuple[Variable, ...],
    ) -> None:
        self.output_names = outputs
        self.variables = {v.name: v for v in variables}
        self.types: dict[str, QueueType] = dict(inputs)
        self.trace = Trace(tuple(t for _, t in inputs), [[] for _ in inputs])
        self.origin = {name: number for number, (name, _) in enumerate(inputs)}
        self.slots: dict[str, tuple[Slot, ...]] = {
            name: (Slot(0, _sources(n, type_)),) for n, (name, type_) in enumerate(inputs)
        }
        self.times = [Source(n, TIME_NUMBER, TIME) for n in range(len(inputs))]
        self.tied: list[tuple[Key, frozenset[str]]] = []
        self.slot_count = 0

    def run(self, operators: tuple[Operator, ...]) -> Trace:
        for name in self.origin.copy():
            self._leaves(name)
        for op in operators:
            self._operator(op)
            for queue in op.outputs:
                self._leaves(queue)
        self.trace.outputs = [
            Output(self.origin[q], self.types[q], self.slots[q]) for q in self.output_names
        ]
        self._number_spaces()
        return self.trace

    def _leaves(self, queue: str) -> None:
        for output, name in enumerate(self.output_names):
            if name == queue:
                for number, slot in enumerate(self.slots[queue]):
                    self._act(self.origin[queue], Send(slot.guard, output, number))

    def _act(self, input_: int, action: Action) -> None:
        self.trace.actions[input_].append(action)

    def _operator(self, op: Operator) -> None:
        function = op.function
        if not isinstance(function, (Map, Filter, FlatMap, Fold, Duplicate)):
            raise UnsupportedError(f"{function.name} is not a row function")
        (source,) = op.inputs
        origin = self.origin[source]
        types = function.output_types((self.types[source],), len(op.outputs))
        made: list[Slot] = []
        for slot in self.slots[source]:
            match function:
                case Filter(condition):
                    made.append(Slot(self._decided(condition, slot, origin), slot.columns))
                case Map(columns):
                    made.append(
                        self._mapped(columns, slot.guard, Names(self.times[origin], slot.columns))
                    )
                case FlatMap():
                    made += self._branches(function, slot, origin)
                case Fold():
                    made += self._folded(function, slot, origin, op)
                case Duplicate():
                    made.append(slot)
        self.slot_count += len(made)
        if self.slot_count > _MOST_SLOTS:
            raise UnsupportedError(f"the branches of FlatMap multiply to over {_MOST_SLOTS} rows")
        for queue, type_ in zip(op.outputs, types, strict=True):
            self.slots[queue], self.types[queue] = tuple(made), type_
            self.origin[queue] = origin

    # --- terms ---

    def _term(self, term: Term, guard: int, names: Names) -> Node:
        root = Root(term, self.trace.fault_count)
        node = node_of(term, names, root)
        if isinstance(node, Apply) and not node.is_settled:
            self.trace.roots.append(root)
            self._act(names.time.input, Evaluate(guard, node, root))
            node.is_settled = True
        return node

    def _decided(self, condition: Term, slot: Slot, origin: int) -> int:
        names = Names(self.times[origin], slot.columns)
        return self._open(origin, slot.guard, self._term(condition, slot.guard, names))

    def _open(self, origin: int, guard: int, condition: Node) -> int:
        opens = len(self.trace.parents)
        self.trace.parents.append(guard)
        self._act(origin, Decide(guard, condition, opens))
        return opens

    def _mapped(self, columns: Columns, guard: int, names: Names) -> Slot:
        return Slot(guard, {c.name: self._term(c.term, guard, names) for c in columns})

    def _branches(self, function: FlatMap, slot: Slot, origin: int) -> Iterable[Slot]:
        for branch in function.branches:
            guard = slot.guard
            if branch.when is not None:
                guard = self._decided(branch.when, slot, origin)
            yield self._mapped(branch.columns, guard, Names(self.times[origin], slot.columns))

    # --- folds ---

    def _folded(self, fold: Fold, slot: Slot, origin: int, op: Operator) -> tuple[Slot, ...]:
        used = fold.variables_read() | fold.variables_written()
        key = self._key(fold, slot, origin, op) if used else None
        reads = {
            (v, f.name): StateRead(v, f.name, f.type)
            for v in sorted(used)
            for f in self.variables[v].fields
        }
        guard = slot.guard
        before = Names(self.times[origin], slot.columns, dict(reads))
        if key is not None:
            self.tied.append((key, used))
            self._act(origin, Load(guard, key, tuple(reads.values())))
        if fold.when is not None:
            guard = self._open(origin, guard, self._term(fold.when, guard, before))
        updates = tuple(
            (u.variable, u.field, self._term(u.term, guard, before)) for u in fold.updates
        )
        if key is not None and updates:
            self._act(origin, Store(guard, key, updates))
        if fold.emit is None:
            return ()
        after = {(v, f): node for v, f, node in updates}
        return (
            self._mapped(
                fold.emit, guard, Names(self.times[origin], slot.columns, {**reads, **after})
            ),
        )

    def _key(self, fold: Fold, slot: Slot, origin: int, op: Operator) -> Key:
        nodes = tuple(slot.columns[name] for name in fold.by)
        for name, node in zip(fold.by, nodes, strict=True):
            if not is_row_only(node):
                raise UnsupportedError(f'the key "{name}" of {op.id} depends on a variable')
        same = (k for k in self.trace.keys if k.input == origin and k.nodes == nodes)
        key = next(same, None) or Key(origin, nodes)
        if key not in self.trace.keys:
            self.trace.keys.append(key)
        return key

    def _number_spaces(self) -> None:
        """Variables and keys that occur together live in one space."""
        groups: list[tuple[set[Key], set[str]]] = []
        for key, own in self.tied:
            touching = [g for g in groups if key in g[0] or own & g[1]]
            groups = [g for g in groups if g not in touching]
            groups.append(
                (
                    {key}.union(*(g[0] for g in touching)),
                    set(own).union(*(g[1] for g in touching)),
                )
            )
        for number, (keys, used) in enumerate(groups):
            if len({key.types for key in keys}) > 1:
                names = ", ".join(f"${v}" for v in sorted(used))
                raise UnsupportedError(f"{names} is kept under keys of different types")
            for key in keys:
                key.space = number
            self.trace.spaces.update(dict.fromkeys(used, number))
