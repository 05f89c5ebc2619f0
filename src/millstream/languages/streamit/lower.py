"""Statements and streams: from the tree to codes of the calculus.

The body of a composite is code as well. What it adds is pushed: number n is the n-th place in
its text where a stream, a split, a join or an enqueued value stands, with the arguments.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from millstream.calculus.procedures import (
    Assign,
    Body,
    Choose,
    Code,
    Leave,
    Let,
    Operand,
    Push,
    RecordOf,
    Repeat,
    Return,
    Routine,
    Scope,
    Shape,
    Slot,
)
from millstream.calculus.terms import Call, Literal, Place, Read, Term
from millstream.languages.streamit import ast
from millstream.languages.streamit.lower_terms import Lowered, Stop, TermLowering
from millstream.languages.streamit.scope import Names, Program, Variable, mentioned, names_in
from millstream.languages.streamit.shapes import spoken
from millstream.source import Span
from millstream.values.types import INT32, TEXT

#: The number of the output that prints.
PRINTED = 1
_LEVEL = "only the body of a pipeline, a splitjoin or a feedbackloop can"


#: Names and the variables they stand for.
Captured = tuple[tuple[str, Variable], ...]


@dataclass(frozen=True, slots=True)
class Site:
    """A place in the body of a composite where something is added to the graph."""

    statement: ast.Place | ast.Split | ast.Enqueue
    #: What an anonymous stream sees of the variables around it, by the names it knows them by.
    captured: Captured = ()


@dataclass(frozen=True, slots=True)
class Lowering:
    """A stream as code, with its rates over its parameters and fields."""

    code: Code
    rates: Mapping[str, Term] = field(default_factory=dict)
    first_rates: Mapping[str, Term] = field(default_factory=dict)
    sites: tuple[Site, ...] = ()


def lowered(
    program: Program, stream: ast.Stream, captured: Captured, taken: Shape | None
) -> Lowering | None:
    """The code of a stream whose input has items of a shape; None if it has faults."""
    before = len(program.faults)
    names = Names()
    for name, variable in captured:
        names.own[name] = variable
        names.used.add(variable.name)
    maker = _StreamLowering(program, names, taken, stream)
    parameters = [Slot(v.name, v.shape) for _, v in captured]
    try:
        parameters += [maker.declared(p.type, p.name) for p in stream.parameters]
        maker.take_sides()
        made = maker.lowered(tuple(parameters))
    except Stop:
        return None
    return made if len(program.faults) == before else None


class _StreamLowering(TermLowering):
    """Mutable: lowers one stream."""

    def __init__(
        self, program: Program, names: Names, taken: Shape | None, stream: ast.Stream
    ) -> None:
        super().__init__(program, names, taken)
        self.stream = stream
        self.given: Shape | None = None
        self.sites: list[Site] = []
        self.in_work = False
        self.result: Shape | None = None
        self.code_names = names
        self.lowering: set[str] = set()
        for helper in program.text.helpers:
            self.callable |= {f"{helper.name}.{r.name}": r for r in helper.routines}
        if isinstance(stream.body, ast.Filter):
            self.callable |= {r.name: r for r in stream.body.routines if not r.is_handler}

    def declared(self, type_: ast.TypeName, name: str) -> Slot:
        variable = self.names.declare(name, self.shape(type_))
        return Slot(variable.name, variable.shape)

    def take_sides(self) -> None:
        """The types that a stream declares; one without a name may leave them open."""
        if self.stream.input is not None:
            self.taken = self.side(self.stream.input)
        if self.stream.output is not None:
            self.given = self.side(self.stream.output)

    def side(self, type_: ast.TypeName) -> Shape | None:
        return None if type_.name == "void" else self.shape(type_)

    def lowered(self, parameters: tuple[Slot, ...]) -> Lowering:
        body = self.stream.body
        if isinstance(body, ast.Filter):
            return self.filter(parameters, body)
        made = self.body(body.body)
        code = Code(self.name, parameters, (), self.taken, self.given, (), None, made,
                    tuple(self.routines.values()))  # fmt: skip
        return Lowering(code, sites=tuple(self.sites))

    @property
    def name(self) -> str:
        return self.stream.name or "Anonymous"

    # --- filters ---

    def filter(self, parameters: tuple[Slot, ...], body: ast.Filter) -> Lowering:
        if body.work is None:
            self.fail("this filter has no work", self.stream.span)
        fields = [self.field(declare) for declare in body.fields]
        before = tuple(self.made)
        self.made.clear()
        init = before + (() if body.init is None else self.body(body.init))
        rates = self.rates(body.work)
        first_rates = {} if body.prework is None else self.rates(body.prework)
        self.in_work = True
        first = None if body.prework is None else self.body(body.prework.body)
        work = self.body(body.work.body)
        if self.counts_firings:
            fields.append(Slot("iter$", INT32))
            count = Call("int32_add", (Read(Place("iter$"), INT32), Literal(1, INT32)), INT32)
            step = (Assign(Place("iter$"), count),)
            work, first = work + step, None if first is None else first + step
        code = Code(self.name, parameters, tuple(fields), self.taken, self.given, init, first, work,
                    tuple(self.routines.values()))  # fmt: skip
        return Lowering(code, rates, first_rates)

    def field(self, declare: ast.Declare) -> Slot:
        """A field; its first value is given before `init`."""
        slot = self.declared(declare.type, declare.name)
        if declare.value is not None:
            value = self.fitting(declare.value, slot.shape)
            self.made.append(Assign(Place(slot.name), value.operand, declare.span))
        return slot

    def rates(self, work: ast.Work) -> dict[str, Term]:
        rates: dict[str, Term] = {}
        for name, rate in work.rates.items():
            if not rate.is_fixed:
                self.fail("rates that change are not supported yet", rate.span)
            assert rate.least is not None
            value, effects = self.apart(rate.least, INT32)
            if effects:
                self.fail("a rate must be a plain calculation", rate.span)
            rates[name] = value.term
        zero = Literal(0, INT32)
        for side, shape in (("pop", self.taken), ("push", self.given)):
            rates.setdefault(side, zero)
            del shape
        rates.setdefault("peek", rates["pop"])
        return rates

    def declared_routine(self, invoke: ast.Invoke) -> Routine:
        """The function that is called, lowered when it is called for the first time."""
        name = invoke.function
        if name in self.lowering:
            self.fail("a function of a filter cannot call itself", invoke.span)
        if name not in self.routines:
            self.routines[name] = self.lowered_routine(name, self.callable[name])
        return self.routines[name]

    def lowered_routine(self, name: str, routine: ast.Routine) -> Routine:
        names, made, result = self.names, self.made, self.result
        self.names, self.made = self.code_names.inner(), []
        self.lowering.add(name)
        try:
            is_void = routine.type is None or routine.type.name == "void"
            self.result = None if is_void else self.shape(routine.type)  # type: ignore[arg-type]
            slots = tuple(self.declared(p.type, p.name) for p in routine.parameters)
            body = self.body(routine.body)
            return Routine(name, slots, self.result, body)
        finally:
            self.lowering.discard(name)
            self.names, self.made, self.result = names, made, result

    # --- statements ---

    def body(self, block: ast.Statement) -> Body:
        """The statements of a block, or one alone, with names of their own."""
        names, made = self.names, self.made
        self.names, self.made = names.inner(), []
        statements = block.statements if isinstance(block, ast.Block) else (block,)
        for statement in statements:
            try:
                self.statement(statement)
            except Stop:
                continue
        body = tuple(self.made)
        self.names, self.made = names, made
        return body

    def statement(self, statement: ast.Statement) -> None:
        match statement:
            case ast.Declare():
                self.declare(statement)
            case ast.Set():
                self.assign(statement)
            case ast.Do(ast.Step() as step):
                self.step(replace(step, is_before=True))  # nobody sees what it was before
            case ast.Do(expression):
                self.value(expression)
            case ast.Push(value, span):
                self.push(value, span)
            case ast.Print():
                self.print(statement)
            case ast.Block():
                self.made.append(Scope(self.body(statement)))
            case ast.If(condition, then, otherwise, span):
                test = self.truth(condition).term
                branches = self.body(then), () if otherwise is None else self.body(otherwise)
                self.made.append(Choose(test, *branches, span))
            case ast.Loop():
                self.loop(statement)
            case ast.Leave(word, span):
                self.made.append(Leave(word, span))
            case ast.Return():
                self.give_back(statement)
            case ast.Send(_, _, _, _, span):
                self.fail("messages to portals are not supported yet", span)
            case ast.Place() | ast.Split() | ast.Enqueue():
                self.add(statement)

    def declare(self, declare: ast.Declare) -> None:
        shape = self.shape(declare.type)
        value = None if declare.value is None else self.fitting(declare.value, shape)
        variable = self.names.declare(declare.name, shape)
        self.made.append(Let(Slot(variable.name, shape), declare.span))
        if value is not None:
            self.made.append(Assign(Place(variable.name), value.operand, declare.span))

    def assign(self, statement: ast.Set) -> None:
        place, shape = self.place(statement.target)
        if not statement.operator:
            value = self.fitting(statement.value, shape)
        else:
            whole = self.changed(statement, place, shape)
            value = self.converted(whole, shape, statement.span)
        self.made.append(Assign(place, value.operand, statement.span))

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

    def push(self, expression: ast.Expression, span: Span) -> None:
        if not self.in_work:
            self.fail("only work and what it calls can push", span)
        if self.given is None and self.stream.output is None:
            self.given = self.apart(expression, None)[0].shape
        if self.given is None:
            self.fail("this filter gives nothing: its output is void", span)
        value = self.fitting(expression, self.given)
        self.made.append(Push(value.operand, 0, span))

    def print(self, statement: ast.Print) -> None:
        empty = Lowered(Literal("", TEXT), TEXT)
        value = empty if statement.value is None else self.value(statement.value)
        text = self.text(value, statement.span)
        if statement.ends_line:
            text = self.call("||", (text, Lowered(Literal("\n", TEXT), TEXT)), statement.span)
        self.made.append(Push(text.operand, PRINTED, statement.span))

    def loop(self, loop: ast.Loop) -> None:
        """Effects of the condition come with every round, so that it is tested inside."""
        names, made = self.names, self.made
        self.names, self.made = names.inner(), []
        for statement in loop.before:
            self.statement(statement)
        condition: Term | None = None
        effects: Body = ()
        if loop.condition is not None:
            before = len(self.made)
            condition = self.truth(loop.condition).term
            effects = tuple(self.made[before:])
            del self.made[before:]
        body, after = self.body(loop.body), self.simple(loop.after)
        if effects:
            assert condition is not None
            stop: Body = (*effects, Choose(condition, (), (Leave("break"),)))
            body = stop + body if loop.tests_first else body
            after = after if loop.tests_first else after + stop
            condition = None
        self.made.append(Repeat(condition, body, after, loop.tests_first, loop.span))
        whole = tuple(self.made)
        self.names, self.made = names, made
        self.made.append(Scope(whole))

    def simple(self, statements: Sequence[ast.Statement]) -> Body:
        before = len(self.made)
        for statement in statements:
            self.statement(statement)
        body = tuple(self.made[before:])
        del self.made[before:]
        return body

    def give_back(self, statement: ast.Return) -> None:
        if statement.value is None:
            if self.result is not None:
                self.fail(f"this function gives {spoken(self.result)} back", statement.span)
            self.made.append(Return(None, statement.span))
            return
        if self.result is None:
            self.fail("there is nothing to give back here", statement.span)
        value = self.fitting(statement.value, self.result)
        self.made.append(Return(value.operand, statement.span))

    # --- what composites add ---

    def add(self, statement: ast.Place | ast.Split | ast.Enqueue) -> None:
        if isinstance(self.stream.body, ast.Filter):
            word = "enqueue" if isinstance(statement, ast.Enqueue) else statement.role
            self.fail(f"{_LEVEL} {word}", statement.span)
        captured: Captured = ()
        values: list[Lowered] = []
        match statement:
            case ast.Place(_, ast.Instance(_, _, arguments)):
                values = self.operands(arguments)
            case ast.Place(_, stream):
                captured = self.seen_by(stream)
                values = [self.held(variable) for _, variable in captured]
            case ast.Split(_, _, weights):
                values = [self.converted(v, INT32, statement.span) for v in self.operands(weights)]
            case ast.Enqueue(value):
                values = [self.value(value)]
        self.made.append(Push(self.together(values), len(self.sites), statement.span))
        self.sites.append(Site(statement, captured))

    def seen_by(self, stream: ast.Instance | ast.Stream) -> Captured:
        """The variables that stand in an anonymous stream, and those their sizes read."""
        visible = self.names.visible()
        seen = {name: visible[name] for name in sorted(mentioned(stream) & visible.keys())}
        sizes = set().union(*(names_in(variable.shape) for variable in seen.values()))
        known = {variable.name for variable in seen.values()}
        by_own_name = {variable.name: variable for variable in visible.values()}
        around = {name: by_own_name[name] for name in sorted(sizes - known)}
        return (*around.items(), *seen.items())

    def together(self, values: Sequence[Lowered]) -> Operand:
        """Arguments as one record."""
        parts = tuple((str(n), value.shape) for n, value in enumerate(values))
        variable = self.fresh(RecordOf(parts))
        for number, value in enumerate(values):
            self.made.append(Assign(Place(variable.name, (str(number),)), value.operand))
        return Place(variable.name)
