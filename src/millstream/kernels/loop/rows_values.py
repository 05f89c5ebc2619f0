"""From nodes to values of the IR: how they are loaded and computed for a row."""

from __future__ import annotations

from dataclasses import dataclass, field

from millstream.calculus.types import NUMBER as NUMBER_TYPE
from millstream.kernels.loop.ir import (
    BOX,
    BOX_WITH_FAULTS,
    CHOOSE,
    FAULTS_OF,
    IS_NULL,
    NO,
    NUMBER,
    SETTLED,
    Const,
    Form,
    Given,
    Guarded,
    Load,
    Local,
    Memory,
    Rep,
    Set,
    Statement,
    TallyFaults,
    Value,
    op,
)
from millstream.kernels.loop.operations import chained, operation, rep_of
from millstream.kernels.loop.rows_nodes import Apply, Constant, Node, Source, StateRead, fails
from millstream.values.core.casts import SAME

_ZERO: dict[Rep, bool | int | float] = {Rep.NUMBER: 0.0, Rep.INTEGER: 0, Rep.TRUTH: False}
_COUNTERS = Memory("counters", Rep.INTEGER)
_PRODUCT = operation("*", (NUMBER_TYPE, NUMBER_TYPE))


def one() -> Local:
    """The number 1, in a way LLVM cannot see."""
    return Local("one", NUMBER)


def _is_sound_divisor(value: Value) -> bool:
    """By a constant that nothing can be divided wrongly by; NaN is no harm, -1 may overflow."""
    return isinstance(value, Const) and value.value not in (0, -1)


@dataclass(slots=True)
class Lines:
    """Mutable: statements, each under a guard; every local that is made here is set once."""

    lines: list[tuple[int, Statement]] = field(default_factory=list)
    made: list[Local] = field(default_factory=list)

    def anew(self) -> Lines:
        """Other statements of the same function."""
        return Lines(made=self.made)

    def add(self, guard: int, statement: Statement) -> None:
        self.lines.append((guard, statement))

    def set(self, guard: int, value: Value) -> Local:
        local = Local(f"v{len(self.made)}", value.form)
        self.made.append(local)
        self.add(guard, Set(local, value))
        return local

    def guarded(self) -> Guarded:
        return Guarded(tuple(self.lines))


@dataclass(slots=True)
class Leaves:
    """Mutable: the columns that functions read, numbered; all functions of a kernel share them.

    A leaf is a column that exists before the loop, or one text for all rows.
    """

    columns: list[Node] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    def number(self, node: Node) -> int:
        if node not in self.columns:
            self.columns.append(node)
        return self.columns.index(node)

    def text(self, text: str) -> int:
        if text not in self.texts:
            self.texts.append(text)
        return self.texts.index(text)


@dataclass(slots=True)
class RowValues:
    """Mutable: the statements that compute values for a row.

    What is known here is what must be: fields of variables as a fold has found them, and whole
    terms, which are evaluated under a guard that holds wherever they are used. That columns are
    read once is a matter of passes.
    """

    lines: Lines
    leaves: Leaves
    row: Local
    known: dict[Node, Value] = field(default_factory=dict)

    def get(self, node: Node, guard: int) -> Value:
        if node in self.known:
            return self.known[node]
        match node:
            case Constant():
                return self._constant(node, guard)
            case StateRead():
                raise AssertionError("state is loaded before it is read")
            case Apply() if not node.is_before_loop:
                value = self._computed(node, guard)
                if node.is_settled:
                    self.known[node] = value
                return value
            case Source() | Apply():
                return self.lines.set(guard, self._leaf(node, guard))

    def load(self, read: StateRead, guard: int, value: Value, there: Value) -> None:
        self.known[read] = self.lines.set(guard, op(BOX, value, there))

    def settle(self, node: Apply, guard: int, base: int) -> None:
        """Compute a whole term where it is defined, and count its faults."""
        if node.is_before_loop:
            if node.can_fail:
                faults = self.lines.set(guard, Load(self._memory("faults", node), self.row))
                self.lines.add(guard, TallyFaults(_COUNTERS, base, faults))
            return
        held = self.get(node, guard)
        self.lines.add(guard, TallyFaults(_COUNTERS, base, op(FAULTS_OF, held)))
        self._without_faults(node, guard, held)

    def _without_faults(self, node: Node, guard: int, held: Value) -> Value:
        if held.form.has_faults:
            held = self.lines.set(guard, op(SETTLED, held))
        self.known[node] = held
        return held

    # --- leaves ---

    def _constant(self, node: Constant, guard: int) -> Value:
        rep = rep_of(node.type)
        if node.value is None:
            return self.lines.set(guard, op(BOX, Const(_ZERO[rep], Form(rep)), NO))
        if isinstance(node.value, str):
            return Given("code", self.leaves.text(node.value))
        assert isinstance(node.value, (bool, int, float)), node.value
        return Const(node.value, Form(rep))

    def _memory(self, kind: str, node: Node) -> Memory:
        rep = {"column": rep_of(node.type), "valid": Rep.TRUTH, "faults": Rep.INTEGER}[kind]
        return Memory(kind, rep, self.leaves.number(node))

    def _leaf(self, node: Source | Apply, guard: int) -> Value:
        value = self.lines.set(guard, Load(self._memory("column", node), self.row))
        if isinstance(node, Source) and node.is_time:
            return value
        valid = Load(self._memory("valid", node), self.row)
        if fails(node):
            return op(BOX_WITH_FAULTS, value, valid, Load(self._memory("faults", node), self.row))
        return op(BOX, value, valid)

    # --- calls ---

    def _arguments(self, node: Apply, guard: int) -> list[Value]:
        """The arguments; what was evaluated elsewhere has had its faults counted there."""
        arguments = []
        for arg in node.args:
            held = self.get(arg, guard)
            if isinstance(arg, Apply) and arg.is_settled and not arg.is_before_loop:
                held = self._without_faults(arg, guard, held)
            arguments.append(held)
        return arguments

    def _computed(self, node: Apply, guard: int) -> Value:
        args = self._arguments(node, guard)
        if node.function == "if":
            return self.lines.set(guard, op(CHOOSE, *args, rep=args[1].form.rep))
        if node.function == "is_null":
            return self.lines.set(guard, op(IS_NULL, *args, rep=Rep.TRUTH))
        of_two = chained(node.function, node.type)
        if of_two is not None:
            held = args[0]
            for other in args[1:]:
                held = self.lines.set(guard, op(of_two, held, other))
            return held
        return self._operation(node, guard, args)

    def _operation(self, node: Apply, guard: int, args: list[Value]) -> Value:
        compiled = operation(node.function, tuple(a.type for a in node.args))
        if compiled == SAME:
            return args[0]
        if compiled.name == "power":
            args = [self._hidden(arg, guard) for arg in args]
        if compiled.sound is not None and _is_sound_divisor(args[-1]):
            compiled = compiled.sound
        place = node.bit if compiled.faults else None
        return self.lines.set(guard, op(compiled, *args, rep=rep_of(node.type), place=place))

    def _hidden(self, arg: Value, guard: int) -> Value:
        """The value in a way LLVM cannot see through.

        It replaces powers of constants by products and the like, which round differently
        from the function of the C library that Python calls.
        """
        return self.lines.set(guard, op(_PRODUCT, arg, one()))
