"""From nodes to statements: how values are loaded and computed in a loop."""

from __future__ import annotations

from dataclasses import dataclass, field

from millstream.kernels.loop.codegen_function import Body, Held, literal
from millstream.kernels.loop.codegen_scalars import chained, operation, shape_of
from millstream.kernels.loop.rows_nodes import Apply, Constant, Node, Source, fails
from millstream.values.core.casts import SAME

_ZERO = {"f": "0.0", "i": "0", "b": "False", "s": "0"}


def held_shape(node: Node) -> str:
    """The shape of the variable; texts are held as integers."""
    shape = shape_of(node.type)
    return "i" if shape == "s" else shape


def element(array: str, place: str, shape: str) -> str:
    """An element of an array; booleans lie there as bytes."""
    return f"{array}[{place}] != 0" if shape == "b" else f"{array}[{place}]"


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
class Values:
    """Mutable: the values of a row that have been computed so far, and under which guard."""

    body: Body
    leaves: Leaves
    is_masked: bool
    known: dict[Node, list[tuple[int, Held]]] = field(default_factory=dict)

    def keep(self, node: Node, guard: int, held: Held) -> Held:
        self.known.setdefault(node, []).append((guard, held))
        return held

    def get(self, node: Node, guard: int) -> Held:
        """The value, computed now if it is not yet known here."""
        if isinstance(node, Constant):
            return self._constant(node, guard)
        for known_under, held in reversed(self.known.get(node, ())):
            if self.body.is_within(guard, known_under):
                return held
        if isinstance(node, Source) or (isinstance(node, Apply) and node.is_before_loop):
            return self.keep(node, guard, self._leaf(node, guard))
        assert isinstance(node, Apply), "state is loaded before it is read"
        return self.keep(node, guard, self._computed(node, guard))

    def settle(self, node: Apply, guard: int, base: int) -> None:
        """Compute a whole term where it is defined, and count its faults."""
        if node.is_before_loop:
            if node.can_fail and self.is_masked:
                self._count(guard, base, f"{self._leaf_param('faults', node)}[{self.body.row}]")
            return
        held = self.get(node, guard)
        if held.has_faults:
            self._count(guard, base, f"{held.name}[2]")
            self._without_faults(node, guard, held)

    def _without_faults(self, node: Node, guard: int, held: Held) -> Held:
        name = self.body.assign(guard, f"{self._use('settled')}({held.name})")
        return self.keep(node, guard, Held(name, is_boxed=True))

    def _count(self, guard: int, base: int, faults: str) -> None:
        function = self.body.function
        count = f"{self._use('count_faults')}({function.param('counters', 'Ai')}, {base}, {faults})"
        self.body.add(guard, f"if {faults} != 0:\n    {count}")

    def _use(self, name: str) -> str:
        return self.body.function.use(name)

    # --- leaves ---

    def _constant(self, node: Constant, guard: int) -> Held:
        if node.value is None:
            zero = _ZERO[shape_of(node.type)]
            return Held(self.body.assign(guard, f"{self._use('boxed')}({zero}, False)"), True)
        if isinstance(node.value, str):
            return Held(self.body.function.param("code", "Si", self.leaves.text(node.value)))
        return Held(literal(node.value))

    def _leaf_param(self, kind: str, node: Node) -> str:
        type_ = {"column": "A" + held_shape(node), "valid": "Ab", "faults": "Ai"}[kind]
        return self.body.function.param(kind, type_, self.leaves.number(node))

    def _leaf(self, node: Node, guard: int) -> Held:
        row = self.body.row
        value = element(self._leaf_param("column", node), row, held_shape(node))
        if not self.is_masked or (isinstance(node, Source) and node.is_time):
            return Held(self.body.assign(guard, value))
        valid = element(self._leaf_param("valid", node), row, "b")
        if fails(node):
            faults = element(self._leaf_param("faults", node), row, "i")
            call = f"{self._use('boxed_with_faults')}({value}, {valid}, {faults})"
            return Held(self.body.assign(guard, call), is_boxed=True, has_faults=True)
        return Held(self.body.assign(guard, f"{self._use('boxed')}({value}, {valid})"), True)

    # --- calls ---

    def _arguments(self, node: Apply, guard: int) -> list[Held]:
        """The arguments; what was evaluated elsewhere has had its faults counted there."""
        arguments = []
        for arg in node.args:
            held = self.get(arg, guard)
            if held.has_faults and isinstance(arg, Apply) and arg.is_settled:
                held = self._without_faults(arg, guard, held)
            arguments.append(held)
        return arguments

    def _computed(self, node: Apply, guard: int) -> Held:
        args = self._arguments(node, guard)
        if node.function == "if":
            return self._call(guard, "choose", args)
        if node.function == "is_null":
            return self._call(guard, "is_null", args) if args[0].is_boxed else Held("False")
        of_two = chained(node.function, node.type)
        if of_two is not None:
            held = args[0]
            for other in args[1:]:
                held = self._call(guard, of_two.name, [held, other])
            return held
        return self._operation(node, guard, args)

    def _operation(self, node: Apply, guard: int, args: list[Held]) -> Held:
        compiled = operation(node.function, tuple(a.type for a in node.args))
        if compiled == SAME:
            return args[0]
        if compiled.name == "power":
            args = [self._hidden(arg, guard) for arg in args]
        if compiled.plain is not None and not any(a.is_boxed for a in args):
            return Held(self.body.assign(guard, compiled.plain.format(*(a.name for a in args))))
        if not compiled.faults:
            return self._call(guard, compiled.name, args)
        names = ", ".join(a.name for a in args)
        call = f"{self._use(compiled.name)}({node.bit}, {names})"
        return Held(self.body.assign(guard, call), is_boxed=True, has_faults=True)

    def _call(self, guard: int, name: str, args: list[Held]) -> Held:
        call = f"{self._use(name)}({', '.join(a.name for a in args)})"
        return Held(
            self.body.assign(guard, call),
            is_boxed=any(a.is_boxed for a in args),
            has_faults=any(a.has_faults for a in args),
        )

    def _hidden(self, arg: Held, guard: int) -> Held:
        """The value in a way LLVM cannot see through.

        It replaces powers of constants by products and the like, which round differently
        from the function of the C library that Python calls.
        """
        one = Held(self.body.function.param("one", "Sf"))
        return self._call(guard, "multiply_numbers", [arg, one])
