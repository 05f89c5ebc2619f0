"""Assignments, and calls: items, functions of the program, and mathematics."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from millstream.calculus.procedures import (
    Assign,
    Invoke,
    Peek,
    Pop,
    RecordOf,
    Routine,
    Shape,
    statements_in,
)
from millstream.calculus.terms import Literal, Place, Read, walk
from millstream.errors import suggest
from millstream.languages.streamit import ast
from millstream.languages.streamit.lower_terms import TermLowering
from millstream.languages.streamit.making import NOTHING, Lowered, Stop
from millstream.languages.streamit.scope import Names
from millstream.languages.streamit.shapes import COMPLEX
from millstream.source import Span
from millstream.values.types import INT32, SINGLE

_PLAIN = (
    "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "exp", "log", "log10",
    "sqrt", "floor", "ceil", "round", "abs",
)  # fmt: skip
#: Functions of one number, of single precision, by every name they go by.
_FUNCTIONS = {
    **{name: name for name in _PLAIN}, **{f"{name}f": name for name in _PLAIN},
    "ceiling": "ceil", "fabs": "abs", "fabsf": "abs",
}  # fmt: skip
_PAIRS = {
    "pow": "pow", "powf": "pow", "atan2": "atan2", "atan2f": "atan2", "fmod": "rem", "fmodf": "rem",
    "min": "min", "max": "max", "fmin": "min", "fmax": "max",
}  # fmt: skip
_OF_COMPLEX = ("abs", "arg", "exp", "log", "sqrt")
#: What would give another result each time.
_BY_CHANCE = ("random", "rand", "randf", "randInt", "randFloat", "randomInt", "drand48")


@dataclass
class CallLowering(TermLowering):
    """Mutable: expressions, with what they call."""

    #: Structs that are being worked out.
    inside: set[str] = field(default_factory=set)
    #: Whether what is lowered is done at a firing.
    in_work: bool = False
    #: Whether the type of its input, or of its output, has faults.
    is_taken_unknown: bool = False
    is_given_unknown: bool = False

    def struct(self, name: str) -> Shape | None:
        """A struct, worked out when it is needed first; its sizes may be constants."""
        known = self.program.structs
        struct = next((s for s in self.program.text.structs if s.name == name), None)
        if name not in known and struct is not None and name not in self.program.spoilt:
            if name in self.inside:
                self.fail(f"{name} cannot hold itself", struct.span)
            self.inside.add(name)
            maker = CallLowering(self.program, Names(), None, inside=self.inside)
            parts = [(p.name, maker.tried(maker.shape, p.type)) for p in struct.fields]
            self.inside.discard(name)
            if maker.has_stopped:
                self.program.spoilt.add(name)
                return None
            known[name] = RecordOf(tuple((n, shape) for n, shape in parts if shape is not None))
        return known.get(name)

    def assign(self, statement: ast.Set) -> Lowered:
        place, shape = self.place(statement.target)
        if not statement.operator:
            mark = len(self.made)
            value = self.fitting(statement.value, shape)
            place = self.held_place(place, mark)
        else:
            whole = self.changed(statement, place, shape)
            value = self.converted(whole, shape, statement.span)
        self.made.append(Assign(place, value.operand, statement.span))
        return self.at(place, shape)

    def held_place(self, place: Place, mark: int) -> Place:
        """A place as it was before the statements from a mark on, which may change its indexes."""
        effects = self.made[mark:]
        inside = list(statements_in(tuple(effects)))
        read = {node.place.variable for step in place.path if not isinstance(step, str)
                for node in walk(step) if isinstance(node, Read)}  # fmt: skip
        changed = {s.target.variable for s in inside if isinstance(s, Assign)}
        calls = any(isinstance(s, Invoke) for s in inside)
        if not read or not (calls or read & changed):
            return place
        del self.made[mark:]
        steps = [step if isinstance(step, str) else self.keep(Lowered(step, INT32)).term
                 for step in place.path]  # fmt: skip
        self.made += effects
        return replace(place, path=tuple(steps))

    def changed(self, statement: ast.Set, place: Place, shape: Shape) -> Lowered:
        """The value of `x op= y`: what was there before `y` was worked out, and `y`."""
        before = self.at(place, shape)
        mark = len(self.made)
        after = self.value(statement.value)
        effects = self.made[mark:]
        if effects:
            del self.made[mark:]
            before = self.keep(before)
            self.made += effects
        return self.binary(statement.operator, before, after, statement.span)

    def invoked(self, invoke: ast.Invoke) -> Lowered:
        match invoke.function:
            case "pop" | "peek":
                return self.item(invoke)
            case "iter":
                self.arity(invoke, 0)
                self.counts_firings = True
                return Lowered(Read(Place("iter$"), INT32, invoke.span), INT32)
            case name if name in self.callable:
                return self.routine(invoke)
            case _:
                return self.mathematics(invoke)

    def arity(self, invoke: ast.Invoke, count: int) -> None:
        if len(invoke.arguments) != count:
            got = len(invoke.arguments)
            wanted = f"{count or 'no'} argument{'s' if count != 1 else ''}"
            self.fail(f"{invoke.function} takes {wanted}, got {got or 'none'}", invoke.span)

    def item(self, invoke: ast.Invoke) -> Lowered:
        if self.is_taken_unknown:
            raise Stop
        if self.taken is None:
            self.fail(f"there is no input here to {invoke.function} from", invoke.span)
        if not self.in_work:
            self.fail(f"only work and what it calls can {invoke.function}", invoke.span)
        self.arity(invoke, 1 if invoke.function == "peek" else 0)
        if invoke.function == "pop":
            variable = self.fresh(self.taken)
            self.made.append(Pop(Place(variable.name), invoke.span))
            return self.held(variable, invoke.span)
        (argument,) = invoke.arguments
        index = self.converted(self.value(argument), INT32, argument.span)
        variable = self.fresh(self.taken)
        self.made.append(Peek(index.term, Place(variable.name), invoke.span))
        return self.held(variable, invoke.span)

    def routine(self, invoke: ast.Invoke) -> Lowered:
        """A call of a function; without a result it is only for its effects."""
        routine = self.declared_routine(invoke)
        self.arity(invoke, len(routine.parameters))
        arguments = []
        for argument, slot in zip(self.operands(invoke.arguments), routine.parameters, strict=True):
            arguments.append(self.converted(argument, slot.shape, invoke.span).operand)
        target = None if routine.result is None else self.fresh(routine.result)
        place = None if target is None else Place(target.name)
        self.made.append(Invoke(routine.name, tuple(arguments), place, invoke.span))
        if target is None:
            return NOTHING
        return self.held(target, invoke.span)

    def declared_routine(self, invoke: ast.Invoke) -> Routine:
        """The function that is called; outside of streams there is none."""
        raise AssertionError(f"{invoke.function} is not declared here")

    def mathematics(self, invoke: ast.Invoke) -> Lowered:
        name = invoke.function
        if name in _FUNCTIONS or name == "arg":
            self.arity(invoke, 1)
            (value,) = self.operands(invoke.arguments)
            return self.of_number(name, value, invoke.span)
        if name in _PAIRS:
            self.arity(invoke, 2)
            both = self.operands(invoke.arguments)
            is_whole = name in ("min", "max") and all(v.shape != SINGLE for v in both)
            type_ = INT32 if is_whole else SINGLE
            sides = [self.converted(value, type_, invoke.span) for value in both]
            return self.call(f"{type_}_{_PAIRS[name]}", sides, invoke.span)
        if name in _BY_CHANCE:
            hint = "calculate numbers from a seed, such as seed = seed * 1103515245 + 12345"
            self.fail(f"{name} would give other numbers each time", invoke.span, hint)
        known = ("pop", "peek", "iter", *_FUNCTIONS, *_PAIRS, *self.callable)
        portal, dot, _ = name.partition(".")
        if dot and portal not in {helper.name for helper in self.program.text.helpers}:
            hint = "a filter takes a portal that it writes to as a parameter, portal<R> p"
            self.fail(f'unknown helper or portal "{portal}"', invoke.span, hint)
        self.fail(f'unknown function "{name}"', invoke.span, suggest(name, known))

    def of_number(self, name: str, value: Lowered, span: Span) -> Lowered:
        if value.shape == COMPLEX:
            if name not in _OF_COMPLEX:
                self.fail(f"there is no {name} of complex numbers", span)
            return self.of_complex_number(name, self.keep(value), span)
        if name == "abs" and value.shape != SINGLE:
            return self.call("int32_abs", (self.converted(value, INT32, span),), span)
        number = self.converted(value, SINGLE, span)
        if name == "arg":
            zero = Lowered(Literal(0.0, SINGLE), SINGLE)
            return self.call("single_atan2", (zero, number), span)
        return self.call(f"single_{_FUNCTIONS[name]}", (number,), span)

    def of_complex_number(self, name: str, value: Lowered, span: Span) -> Lowered:
        """By its size and its angle, which for `exp` are those of the result."""
        real, imag = self.part(value, "real"), self.part(value, "imag")
        if name == "exp":
            return self.polar(self.call("single_exp", (real,), span), imag, span)
        squares = [self.call("single_mul", (p, p), span) for p in (real, imag)]
        size = self.call("single_sqrt", (self.call("single_add", squares, span),), span)
        angle = self.call("single_atan2", (imag, real), span)
        if name in ("abs", "arg"):
            return size if name == "abs" else angle
        if name == "log":
            return self.complex(self.call("single_log", (size,), span), angle)
        half = self.call("single_mul", (angle, Lowered(Literal(0.5, SINGLE), SINGLE)), span)
        return self.polar(self.call("single_sqrt", (size,), span), half, span)

    def polar(self, size: Lowered, angle: Lowered, span: Span) -> Lowered:
        size, angle = self.keep(size), self.keep(angle)
        parts = [self.call("single_mul", (size, self.call(f"single_{name}", (angle,), span)), span)
                 for name in ("cos", "sin")]  # fmt: skip
        return self.complex(*parts)
