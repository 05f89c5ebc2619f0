"""Expressions: from the tree to terms, and statements that must come before them.

A term has no effects. So what pops, steps or calls becomes a statement of its own whose result
is kept, and what stands to the left of it and could change is kept as well: everything is
evaluated from left to right.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace

from millstream.calculus.procedures import (
    ArrayOf,
    Assign,
    Body,
    Choose,
    RecordOf,
    Shape,
)
from millstream.calculus.terms import Call, Literal, Place, Read, Term, walk
from millstream.errors import suggest
from millstream.languages.streamit import ast
from millstream.languages.streamit.making import NOTHING, Lowered, Making, Stop
from millstream.languages.streamit.shapes import (
    COMPLEX,
    is_number,
    spoken,
    wider,
)
from millstream.source import Span
from millstream.values.core.machine import single, wrapped
from millstream.values.core.table import SCALARS
from millstream.values.types import BIT, BOOLEAN, INT32, SINGLE, TEXT, Type

_ARITHMETIC = {"+": "add", "-": "sub", "*": "mul", "/": "div", "%": "rem"}
_BITWISE = {"&": "and", "|": "or", "^": "xor"}
_SHIFTS = {"<<": "shl", ">>": "shr"}
_COMPARED = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne"}
_LOGICAL = {"&&": "and", "||": "or"}
_OF_TRUTHS = {"==": "==", "!=": "!=", "^": "!=", "&": "and", "|": "or"}
#: The single that is nearest to the circle's number.
_PI = 3.1415927410125732


class TermLowering(Making):
    """Mutable: lowers expressions."""

    # --- expressions ---

    def value(self, expression: ast.Expression) -> Lowered:
        match expression:
            case ast.Number():
                return self.number(expression)
            case ast.Truth(value, span):
                return Lowered(Literal(value, BOOLEAN, span), BOOLEAN)
            case ast.Quoted(value, span):
                return Lowered(Literal(value, TEXT, span), TEXT)
            case ast.Name() | ast.Member() | ast.Item():
                return self.named(expression)
            case ast.Unary():
                return self.unary(expression)
            case ast.Binary(operator) if operator in _LOGICAL:
                return self.logical(expression)
            case ast.Binary():
                left, right = self.operands((expression.left, expression.right))
                return self.binary(expression.operator, left, right, expression.span)
            case ast.Choice():
                return self.choice(expression)
            case ast.Cast(type_, operand, span):
                return self.converted(self.value(operand), self.shape(type_), span)
            case ast.Invoke(function, _, span):
                result = self.invoked(expression)
                if result is NOTHING:
                    self.fail(f"{function} gives nothing back", span)
                return result
            case ast.Listed():
                return self.listed(expression)
            case ast.Step():
                return self.step(expression)
            case ast.Set():
                return self.assign(expression)

    def number(self, number: ast.Number) -> Lowered:
        if number.is_imaginary:
            variable = self.fresh(COMPLEX)
            value = Literal(float(number.value), SINGLE, number.span)
            self.made.append(Assign(Place(variable.name, ("imag",)), value))
            return self.held(variable, number.span)
        if isinstance(number.value, float):
            return Lowered(_single(number.value, number.span), SINGLE)
        if number.value >= 2**32:
            self.fail("this number does not fit into an int", number.span)
        # 0xFFFFFFFF is -1, as in C.
        return Lowered(Literal(wrapped(number.value), INT32, number.span), INT32)

    def named(self, expression: ast.Expression) -> Lowered:
        if isinstance(expression, ast.Name) and self.names.get(expression.name) is None:
            if expression.name == "pi":
                return Lowered(Literal(_PI, SINGLE, expression.span), SINGLE)
            constant = self.program.constants.get(expression.name)
            if constant is not None:
                return Lowered(replace(constant, span=expression.span), constant.type)
        place, shape = self.place(expression)
        return self.at(place, shape, expression.span)

    def place(self, expression: ast.Expression) -> tuple[Place, Shape]:
        """Where something is held that can be assigned to."""
        match expression:
            case ast.Name(name, span):
                variable = self.names.get(name)
                if variable is None and name in self.program.constants:
                    self.fail(f"{name} is a constant, which nothing can be assigned to", span)
                if variable is None and name in self.program.spoilt:
                    raise Stop
                if variable is None:
                    hint = suggest(name, (*self.names.visible(), *self.program.constants))
                    if name in self.program.streams:
                        hint = f"it is a stream: write `add {name};`"
                    self.fail(f'unknown name "{name}"', span, hint)
                return Place(variable.name, (), span), variable.shape
            case ast.Member(of, name, span):
                place, shape = self.place_of(of)
                part = shape.part(name) if isinstance(shape, RecordOf) else None
                if part is None:
                    known = [part for part, _ in shape.parts] if isinstance(shape, RecordOf) else ()
                    self.fail(
                        f"{self.called(shape)} has no part {name}", span, suggest(name, known)
                    )
                return Place(place.variable, (*place.path, name), span), part
            case ast.Item(of, index, span):
                place, shape = self.place_of(of)
                if not isinstance(shape, ArrayOf):
                    self.fail(f"{spoken(shape)} has no elements", span)
                number = self.converted(self.value(index), INT32, index.span).term
                match number, shape.size:
                    case Literal(int(n)), Literal(int(count)) if not 0 <= n < count:
                        last = f"0 to {count - 1}" if count else "none"
                        self.fail(f"there is no element {n}: this array has {last}", span)
                return Place(place.variable, (*place.path, number), span), shape.element
            case _:
                self.fail("this is no variable", expression.span)

    def called(self, shape: Shape) -> str:
        """A type as the text calls it: a struct by its name."""
        for struct in self.program.text.structs:
            if isinstance(shape, RecordOf) and shape == self.shape(ast.TypeName(struct.name)):
                return struct.name
        return spoken(shape)

    def place_of(self, expression: ast.Expression) -> tuple[Place, Shape]:
        """The place of what has parts: if it is no variable, its value is kept in one."""
        if isinstance(expression, ast.Name | ast.Member | ast.Item):
            return self.place(expression)
        value = self.keep(self.value(expression))
        if not isinstance(value.operand, Place):
            self.fail(f"{spoken(value.shape)} has no parts", expression.span)
        return value.operand, value.shape

    # --- conversions ---

    def converted(self, value: Lowered, wanted: Shape, span: Span | None) -> Lowered:
        """The value as another type, as C converts it."""
        if _alike(value.shape, wanted):
            return value
        if not (is_number(value.shape) and is_number(wanted)):
            self.fail(f"expected {spoken(wanted)}, got {spoken(value.shape)}", span)
        if wanted == COMPLEX:
            variable = self.fresh(COMPLEX)
            real = self.converted(value, SINGLE, span).operand
            self.made.append(Assign(Place(variable.name, ("real",)), real))
            return self.held(variable)
        if value.shape == COMPLEX:
            self.fail("a complex number is more than one number", span, "take .real or .imag of it")
        return self.converted_number(value, wanted, span)

    def converted_number(self, value: Lowered, wanted: Shape, span: Span | None) -> Lowered:
        assert isinstance(wanted, Type) and isinstance(value.shape, Type)
        if isinstance(value.operand, Literal) and wanted == SINGLE:
            return Lowered(_single(float(value.operand.value or 0), span), SINGLE)
        if wanted == BOOLEAN:
            zero = self.converted_number(Lowered(Literal(0, INT32), INT32), value.shape, span)
            return self.call(f"{value.shape}_ne", (value, zero), span)
        if value.shape == wanted:
            return value
        if INT32 not in (value.shape, wanted):
            value = self.converted_number(value, INT32, span)
        assert isinstance(value.shape, Type)
        call = Call(f"{wanted}_of_{value.shape}", (value.term,), wanted, span)
        return Lowered(call, wanted)

    # --- operators ---

    def unary(self, unary: ast.Unary) -> Lowered:
        operand = self.value(unary.operand)
        shape = operand.shape
        if unary.operator == "!":
            if shape == BIT:
                return self.call("bit_not", (operand,), unary.span)
            truth = self.converted(operand, BOOLEAN, unary.span)
            return Lowered(Call("not", (truth.term,), BOOLEAN, unary.span), BOOLEAN)
        if unary.operator == "~":
            if shape == BIT:
                return self.call("bit_not", (operand,), unary.span)
            return self.call("int32_not", (self.converted(operand, INT32, unary.span),), unary.span)
        # A literal has one zero only; the machine has two, and tells 1 / -0.0 from 1 / 0.0.
        if (
            isinstance(operand.operand, Literal)
            and shape in (INT32, SINGLE)
            and (shape == INT32 or operand.operand.value != 0)
        ):
            assert isinstance(shape, Type)
            negative = -operand.operand.value  # type: ignore[operator]
            if isinstance(negative, int):
                negative = wrapped(negative)
            return Lowered(Literal(negative, shape, unary.span), shape)
        if shape == COMPLEX:
            return self.negative(self.keep(operand), unary.span)
        if shape in (BIT, BOOLEAN):
            operand = self.converted(operand, INT32, unary.span)
        if operand.shape not in (INT32, SINGLE):
            self.fail(f"cannot take the negative of {spoken(shape)}", unary.span)
        return self.call(f"{operand.shape}_neg", (operand,), unary.span)

    def call(self, function: str, arguments: Sequence[Lowered], span: Span | None) -> Lowered:
        types = tuple(a.term.type for a in arguments)
        signature = SCALARS[function].rule(types)
        assert not isinstance(signature, str), f"{function}: {signature}"
        call = Call(function, tuple(a.term for a in arguments), signature.result, span)
        return Lowered(call, signature.result)

    def binary(self, operator: str, left: Lowered, right: Lowered, span: Span) -> Lowered:
        shape = wider(left.shape, right.shape)
        if operator == "+" and TEXT in (left.shape, right.shape):
            texts = [self.text(side, span) for side in (left, right)]
            return self.call("||", texts, span)
        if shape is None or not is_number(shape):
            self.fail(f"cannot do {spoken(left.shape)} {operator} {spoken(right.shape)}", span)
        if operator in _SHIFTS:
            sides = [self.converted(side, INT32, span) for side in (left, right)]
            return self.call(f"int32_{_SHIFTS[operator]}", sides, span)
        if shape == BOOLEAN and operator in _OF_TRUTHS:
            call = Call(_OF_TRUTHS[operator], (left.term, right.term), BOOLEAN, span)
            return Lowered(call, BOOLEAN)
        if shape == BOOLEAN or (shape == BIT and operator in _ARITHMETIC):
            shape = INT32
        sides = [self.converted(side, shape, span) for side in (left, right)]
        if shape == COMPLEX:
            return self.of_complex(operator, self.keep(sides[0]), self.keep(sides[1]), span)
        if operator in _BITWISE and shape == SINGLE:
            self.fail(f"{operator} is for whole numbers, not for float", span)
        named = {**_ARITHMETIC, **_BITWISE, **_COMPARED}[operator]
        return self.call(f"{shape}_{named}", sides, span)

    def text(self, value: Lowered, span: Span | None) -> Lowered:
        """A value as it is printed."""
        if value.shape == TEXT:
            return value
        if value.shape == COMPLEX:
            real, imag = (self.text(self.part(value, p), span) for p in ("real", "imag"))
            plus, i = (Lowered(Literal(t, TEXT), TEXT) for t in (" + ", "i"))
            first = self.call("||", (real, plus), span)
            return self.call("||", (self.call("||", (first, imag), span), i), span)
        if not isinstance(value.shape, Type):
            self.fail(f"{spoken(value.shape)} cannot be printed", span, "print its elements")
        return self.call(f"{value.shape}_text", (value,), span)

    def part(self, value: Lowered, name: str) -> Lowered:
        return self.at(Place(value.place.variable, (*value.place.path, name)), SINGLE)

    def of_complex(self, operator: str, left: Lowered, right: Lowered, span: Span) -> Lowered:
        a, b = self.part(left, "real"), self.part(left, "imag")
        c, d = self.part(right, "real"), self.part(right, "imag")

        def do(name: str, x: Lowered, y: Lowered) -> Lowered:
            return self.call(f"single_{name}", (x, y), span)

        if operator in ("==", "!="):
            same = Call("and", (do("eq", a, c).term, do("eq", b, d).term), BOOLEAN, span)
            return Lowered(same if operator == "==" else Call("not", (same,), BOOLEAN), BOOLEAN)
        match operator:
            case "+" | "-":
                name = _ARITHMETIC[operator]
                real, imag = do(name, a, c), do(name, b, d)
            case "*":
                real = do("sub", do("mul", a, c), do("mul", b, d))
                imag = do("add", do("mul", a, d), do("mul", b, c))
            case "/":
                size = self.keep(do("add", do("mul", c, c), do("mul", d, d)))
                real = do("div", do("add", do("mul", a, c), do("mul", b, d)), size)
                imag = do("div", do("sub", do("mul", b, c), do("mul", a, d)), size)
            case _:
                self.fail(f"complex numbers know no {operator}", span)
        return self.complex(real, imag)

    def negative(self, value: Lowered, span: Span) -> Lowered:
        """Both parts, each with its sign turned: 0 - 0.0 would lose that of a zero."""
        parts = (self.part(value, name) for name in ("real", "imag"))
        return self.complex(*(self.call("single_neg", (part,), span) for part in parts))

    def complex(self, real: Lowered, imag: Lowered) -> Lowered:
        variable = self.fresh(COMPLEX)
        self.made.append(Assign(Place(variable.name, ("real",)), real.operand))
        self.made.append(Assign(Place(variable.name, ("imag",)), imag.operand))
        return self.held(variable)

    def logical(self, binary: ast.Binary) -> Lowered:
        """The right side is only looked at if the left one does not decide."""
        left = self.truth(binary.left)
        before = len(self.made)
        right = self.truth(binary.right)
        effects = tuple(self.made[before:])
        del self.made[before:]
        if not effects and not can_trap(right.term):
            call = Call(_LOGICAL[binary.operator], (left.term, right.term), BOOLEAN, binary.span)
            return Lowered(call, BOOLEAN)
        variable = self.fresh(BOOLEAN)
        place = Place(variable.name)
        self.made.append(Assign(place, left.operand))
        decide = (*effects, Assign(place, right.operand))
        holds = Read(place, BOOLEAN)
        branches: tuple[Body, Body] = (decide, ()) if binary.operator == "&&" else ((), decide)
        self.made.append(Choose(holds, *branches, span=binary.span))
        return self.held(variable)

    def truth(self, expression: ast.Expression) -> Lowered:
        """A condition; a number is true if it is not zero, as in C."""
        return self.converted(self.value(expression), BOOLEAN, expression.span)

    def choice(self, choice: ast.Choice) -> Lowered:
        condition = self.truth(choice.condition)
        then, before_then = self.apart(choice.then, None)
        otherwise, before_otherwise = self.apart(choice.otherwise, None)
        shape = wider(then.shape, otherwise.shape)
        if shape is None:
            both = f"{spoken(then.shape)} and {spoken(otherwise.shape)}"
            self.fail(f"both sides of : must be of one type, but are {both}", choice.span)
        variable = self.fresh(shape)
        branches = []
        for value, effects in ((then, before_then), (otherwise, before_otherwise)):
            before = len(self.made)
            fitting = self.converted(value, shape, choice.span)
            more = tuple(self.made[before:])
            del self.made[before:]
            assigned = Assign(Place(variable.name), fitting.operand)
            branches.append((*effects, *more, assigned))
        self.made.append(Choose(condition.term, branches[0], branches[1], choice.span))
        return self.held(variable)

    def step(self, step: ast.Step) -> Lowered:
        place, shape = self.place(step.target)
        if shape not in (INT32, SINGLE):
            self.fail(f"cannot step {spoken(shape)}", step.span)
        before = self.at(place, shape)
        if not step.is_before:
            before = self.keep(before)
        one = Lowered(Literal(1, INT32), INT32)
        after = self.binary(step.operator[0], before, one, step.span)
        self.made.append(Assign(place, after.operand, step.span))
        return self.at(place, shape) if step.is_before else before

    def listed(self, listed: ast.Listed, wanted: Shape | None = None) -> Lowered:
        """`{1, 2, 3}`: of the type that is wanted, else of its widest element."""
        if isinstance(wanted, ArrayOf):
            element: Shape = wanted.element
        elif not listed.elements:
            self.fail("an array needs elements", listed.span)
        else:
            element = self.common(listed)
        shape = ArrayOf(element, Literal(len(listed.elements), INT32))
        variable = self.fresh(wanted if isinstance(wanted, ArrayOf) else shape)
        for number, expression in enumerate(listed.elements):
            place = Place(variable.name, (Literal(number, INT32),), expression.span)
            value = self.fitting(expression, element)
            self.made.append(Assign(place, value.operand, expression.span))
        return self.held(variable, listed.span)

    def common(self, listed: ast.Listed) -> Shape:
        """The type of the elements, found out by a look at each."""
        shapes: list[Shape] = []
        for expression in listed.elements:
            value, _ = self.apart(expression, None)
            shapes.append(value.shape)
        common: Shape | None = shapes[0]
        for shape in shapes[1:]:
            alike = common is not None and _alike(common, shape)
            common = common if alike or common is None else wider(common, shape)
        if common is None:
            self.fail("the elements of an array must be of one type", listed.span)
        return common

    def fitting(self, expression: ast.Expression, wanted: Shape) -> Lowered:
        """An expression as a type; a list of elements takes it as its own."""
        if isinstance(expression, ast.Listed) and isinstance(wanted, ArrayOf):
            return self.listed(expression, wanted)
        return self.converted(self.value(expression), wanted, expression.span)

    @abstractmethod
    def assign(self, statement: ast.Set) -> Lowered:
        """Assign; what a place holds then is the value."""

    @abstractmethod
    def invoked(self, invoke: ast.Invoke) -> Lowered:
        """What a call gives."""


def _single(value: float, span: Span | None) -> Literal:
    return Literal(single(value), SINGLE, span)


def _alike(shape: Shape, other: Shape) -> bool:
    """Whether one can be assigned to the other; how large arrays are is seen when it runs."""
    if isinstance(shape, ArrayOf) and isinstance(other, ArrayOf):
        return _alike(shape.element, other.element)
    return shape == other


def can_trap(term: Term) -> bool:
    """Whether a term could end the run: by an index, or by dividing by zero."""
    for node in walk(term):
        if isinstance(node, Read) and any(not isinstance(step, str) for step in node.place.path):
            return True
        if isinstance(node, Call) and node.function in ("int32_div", "int32_rem"):
            return True
    return False
