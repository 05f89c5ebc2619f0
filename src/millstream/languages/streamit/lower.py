"""Statements and streams: from the tree to codes of the calculus.

The body of a composite is code as well. What it adds is pushed: number n is the n-th place in
its text where a stream, a split, a join or an enqueued value stands, with the arguments, behind
what is printed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from millstream.calculus.procedures import (
    Assign,
    Body,
    Choose,
    Code,
    Invoke,
    Leave,
    Let,
    Push,
    RecordOf,
    Repeat,
    Return,
    Routine,
    Scope,
    Shape,
    Slot,
    changed_in,
    statements_in,
)
from millstream.calculus.terms import Call, Literal, Place, Read, Term, walk
from millstream.calculus.work import FIRST_MESSAGE
from millstream.errors import suggest
from millstream.languages.streamit import ast
from millstream.languages.streamit.lower_parts import PartLowering
from millstream.languages.streamit.lowering import (
    PORTAL,
    PRINTED,
    Calculated,
    Captured,
    Lowering,
    Said,
    Sent,
)
from millstream.languages.streamit.making import Lowered, Stop
from millstream.languages.streamit.pushes import without_pushes
from millstream.languages.streamit.scope import (
    Names,
    Program,
    Variable,
)
from millstream.languages.streamit.shapes import (
    is_portal,
    replaced,
    spoken,
    wider,
    with_values,
)
from millstream.source import Source, Span
from millstream.values.types import BOOLEAN, INT32, TEXT

#: Without a latency a message comes with what is pushed by the firing that sends it.
_NOW = ast.Number(0, False, Span(Source("", ""), 0, 0))

_Declared = TypeVar("_Declared", ast.Parameter, ast.Declare)


def lowered(
    program: Program, stream: ast.Stream, captured: Captured, taken: Shape | None,
    wanted: Shape | None = None,
) -> Lowering | None:  # fmt: skip
    """The code of a stream whose input has items of a shape; None if it does not come so far.

    One that does not say what it gives gives what is wanted, else the widest that it pushes.
    """
    before = len(program.faults)
    try:
        if wanted is None and stream.output is None and isinstance(stream.body, ast.Filter):
            wanted = _pushed_by(_StreamLowering(program, captured, taken, stream))
        maker = _StreamLowering(program, captured, taken, stream, wanted)
        made = maker.lowered()
    except Stop:
        return None
    return replace(made, has_faults=maker.has_stopped or len(program.faults) > before)


def arguments_wanted(name: str | None, parameters: tuple[ast.Parameter, ...], got: int) -> str:
    count = len(parameters)
    return f"{name} takes {count} argument{'s' if count != 1 else ''}, got {got}"


def _pushed_by(maker: _StreamLowering) -> Shape | None:
    maker.lowered()
    shapes = list(maker.pushed)
    whole = shapes[0] if shapes else None
    for shape in shapes[1:]:
        whole = None if whole is None else wider(whole, shape) or whole
    return whole


class _StreamLowering(PartLowering):
    """Mutable: lowers one stream."""

    def __init__(
        self, program: Program, captured: Captured, taken: Shape | None, stream: ast.Stream,
        wanted: Shape | None = None,
    ) -> None:  # fmt: skip
        super().__init__(program, Names(), taken, stream)
        for name, variable in captured:
            self.names.own[name] = variable
            self.names.used.add(variable.name)
        self.captured = captured
        self.given: Shape | None = None
        #: What it gives if it does not say so, and what it has pushed.
        self.wanted = wanted
        self.pushed: list[Shape] = []
        self.sent: list[Sent] = []
        self.result: Shape | None = None
        #: How many loops the statement stands in that is looked at.
        self.loops = 0
        self.code_names = self.names
        self.lowering: set[str] = set()
        #: What fields are at first, where parameters alone tell it.
        self.first_values: dict[str, Term] = {}
        for helper in program.text.helpers:
            self.callable |= {f"{helper.name}.{r.name}": r for r in helper.routines}
            self.callable |= {r.name: r for r in helper.routines}
        if isinstance(stream.body, ast.Filter):
            self.callable |= {r.name: r for r in stream.body.routines if not r.is_handler}

    def declared(self, parameter: ast.Parameter) -> Slot:
        variable = self.names.declare(
            parameter.name, self.shape_for(parameter.name, parameter.type)
        )
        return Slot(variable.name, variable.shape)

    def shape_for(self, name: str, type_: ast.TypeName) -> Shape:
        """The type of a variable; if there is none, nobody is told that its name is unknown."""
        try:
            return self.shape(type_)
        except Stop:
            self.program.spoilt.add(name)
            raise

    def declarations(
        self, declare: Callable[[_Declared], Slot], declared: Iterable[_Declared]
    ) -> list[Slot]:
        """Those that have no faults; the faults of all are told."""
        slots = [self.tried(declare, one) for one in declared]
        return [slot for slot in slots if slot is not None]

    def take_sides(self) -> None:
        """The types that a stream declares; one without a name may leave them open."""
        if self.stream.input is not None and self.stream.input.name != "void":
            self.taken = self.tried(self.shape, self.stream.input)
            self.is_taken_unknown = self.taken is None
        if self.stream.output is not None and self.stream.output.name != "void":
            self.given = self.tried(self.shape, self.stream.output)
            self.is_given_unknown = self.given is None

    def lowered(self) -> Lowering:
        own = self.declarations(self.declared, self.stream.parameters)
        parameters = (*(Slot(v.name, v.shape) for _, v in self.captured), *own)
        self.take_sides()
        body = self.stream.body
        if isinstance(body, ast.Filter):
            return self.filter(parameters, body)
        made = self.body(body.body)
        code = Code(self.name, parameters, (), self.taken, self.given, (), None, made,
                    tuple(self.routines.values()))  # fmt: skip
        return Lowering(code, sites=tuple(self.sites))

    @property
    def name(self) -> str:
        """A filter without a name is called by the one function that it calls, if there is one."""
        if self.stream.name is not None:
            return self.stream.name
        called = [name.rpartition(".")[2] for name in self.routines]
        return called[0] if len(called) == 1 else "Anonymous"

    # --- filters ---

    def filter(self, parameters: tuple[Slot, ...], body: ast.Filter) -> Lowering:
        if body.work is None:
            self.fail("this filter has no work", self.stream.span)
        fields = self.declarations(self.field, body.fields)
        before = tuple(self.made)
        self.made.clear()
        init = before + (() if body.init is None else self.body(body.init))
        silent = without_pushes(init)
        spoken = init if silent != init or self.prints_in(init) else None
        rates = self.rates(body.work)
        first_rates = None if body.prework is None else self.rates(body.prework)
        self.in_work = True
        first = None if body.prework is None else self.body(body.prework.body)
        work = self.body(body.work.body)
        for routine in body.routines:
            if routine.is_handler:
                self.tried(self.handler, routine)
        self.check_rates(body.work, rates, work + (first or ()))
        if self.counts_firings:
            fields.append(Slot("iter$", INT32))
            count = Call("int32_add", (Read(Place("iter$"), INT32), Literal(1, INT32)), INT32)
            step = (Assign(Place("iter$"), count),)
            work, first = work + step, None if first is None else first + step
        code = Code(self.name, parameters, tuple(fields), self.taken, self.given, silent, first,
                    work, tuple(self.routines.values()))  # fmt: skip
        return Lowering(code, rates, first_rates, (), tuple(self.sent), spoken)

    def handler(self, routine: ast.Routine) -> None:
        self.routines[routine.name] = self.lowered_routine(routine.name, routine)

    def prints_in(self, body: Body) -> bool:
        """Whether some function prints that is called there, or by those that are."""
        called = {s.routine for s in statements_in(body) if isinstance(s, Invoke)}
        bodies = [r.body for r in self.routines.values() if r.name in called]
        return any(without_pushes(b) != b or self.prints_in(b) for b in bodies)

    def field(self, declare: ast.Declare) -> Slot:
        """A field; its first value is given before `init`.

        Arrays are made before anything has a value: a field in their sizes stands for its first.
        """
        shape = with_values(self.shape_for(declare.name, declare.type), self.first_values)
        variable = self.names.declare(declare.name, shape)
        if declare.value is not None:
            before = len(self.made)
            value = self.fitting(declare.value, shape)
            if len(self.made) == before and not isinstance(value.operand, Place):
                self.first_values[variable.name] = replaced(value.operand, self.first_values)
            self.made.append(Assign(Place(variable.name), value.operand, declare.span))
        return Slot(variable.name, shape)

    def rates(self, work: ast.Work) -> Said:
        least: dict[str, Calculated] = {}
        most: dict[str, Calculated | None] = {}
        for name, rate in work.rates.items():
            fewest = None if rate.least is None else self.tried(self.calculated, rate.least)
            if fewest is not None:
                least[name] = fewest
            if not rate.is_fixed:
                most[name] = None if rate.most is None else self.tried(self.calculated, rate.most)
        return Said(least, most)

    def check_rates(self, work: ast.Work, rates: Said, done: Body) -> None:
        """Rates are fixed once `init` is done: what firings change cannot be in them."""
        changed, waiting = changed_in(done), [done]
        seen: set[str] = set()
        while waiting:
            called = {s.routine for s in statements_in(waiting.pop()) if isinstance(s, Invoke)}
            bodies = [self.routines[name].body for name in called - seen if name in self.routines]
            seen |= called
            changed |= set().union(*map(changed_in, bodies))
            waiting += bodies
        for name, rate in rates.least.items():
            read = {n.place.variable for n in walk(rate.term) if isinstance(n, Read)}
            for variable in sorted(read & changed):
                self.program.fault(f"the {name} rate is not constant: firings change {variable}",
                                   work.rates[name].span,
                                   f"`{name} *` says that it changes")  # fmt: skip

    def calculated(self, expression: ast.Expression) -> Calculated:
        value, before = self.apart(expression, INT32)
        return Calculated(before, value.term)

    def declared_routine(self, invoke: ast.Invoke) -> Routine:
        """The function that is called, lowered when it is called for the first time."""
        name = invoke.function
        if name in self.lowering:
            self.fail("a function of a filter cannot call itself", invoke.span)
        if name not in self.routines:
            self.routines[name] = self.lowered_routine(name, self.callable[name])
        return self.routines[name]

    def lowered_routine(self, name: str, routine: ast.Routine) -> Routine:
        names, made, result, loops = self.names, self.made, self.result, self.loops
        self.names, self.made, self.loops = self.code_names.inner(), [], 0
        self.lowering.add(name)
        try:
            is_void = routine.type is None or routine.type.name == "void"
            self.result = None if is_void else self.shape(routine.type)  # type: ignore[arg-type]
            slots = tuple(self.declarations(self.declared, routine.parameters))
            body = self.body(routine.body)
            return Routine(name, slots, self.result, body)
        finally:
            self.lowering.discard(name)
            self.names, self.made, self.result, self.loops = names, made, result, loops

    # --- statements ---

    def body(self, block: ast.Statement) -> Body:
        """The statements of a block, or one alone, with names of their own."""
        names, made = self.names, self.made
        self.names, self.made = names.inner(), []
        statements = block.statements if isinstance(block, ast.Block) else (block,)
        for statement in statements:
            self.tried(self.statement, statement)
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
            case ast.Do(ast.Invoke() as call) if self.portal_named(call.function):
                portal, _, handler = call.function.partition(".")
                self.send(ast.Send(portal, handler, call.arguments, (_NOW, _NOW), call.span))
            case ast.Do(ast.Invoke() as call):
                self.invoked(call)
            case ast.Do(expression):
                self.value(expression)
            case ast.Push(value, span):
                self.push(value, span)
            case ast.Print():
                self.print(statement)
            case ast.Block():
                self.made.append(Scope(self.body(statement)))
            case ast.If(condition, then, otherwise, span):
                test = self.tried(self.truth, condition)
                branches = self.body(then), () if otherwise is None else self.body(otherwise)
                if test is None:
                    raise Stop
                self.made.append(Choose(test.term, *branches, span))
            case ast.Loop():
                self.loop(statement)
            case ast.Leave(word, span):
                if not self.loops:
                    self.fail(f"`{word}` stands outside of a loop", span)
                self.made.append(Leave(word, span))
            case ast.Return():
                self.give_back(statement)
            case ast.Send():
                self.send(statement)
            case ast.AddStream() | ast.Split() | ast.Enqueue():
                self.add(statement)

    def portal_named(self, name: str) -> Variable | None:
        """The portal before the dot of a name, if there is one."""
        variable = self.names.get(name.partition(".")[0]) if "." in name else None
        return variable if variable is not None and is_portal(variable.shape) else None

    def send(self, send: ast.Send) -> None:
        """A message is pushed to an output of its own, as a record of its arguments."""
        portal = self.portal_named(f"{send.portal}.")
        if portal is None:
            self.fail(f'there is no portal "{send.portal}"', send.span)
        if not self.in_work:
            self.fail("only work and what it calls can send messages", send.span)
        assert isinstance(portal.shape, RecordOf)
        listener = portal.shape.parts[0][0]
        parameters = self.handler_of(listener, send)
        pairs = zip(send.arguments, parameters, strict=True)
        values = [self.fitting(argument, self.shape(p.type)) for argument, p in pairs]
        least, most = send.latency
        wanted = most or least
        latency = None if wanted is None else self.calculated(wanted)
        output = FIRST_MESSAGE + len(self.sent)
        self.made.append(Push(self.together(values), output, send.span))
        self.sent.append(Sent(output, portal.name, listener, send.handler, latency, send.span))

    def handler_of(self, listener: str, send: ast.Send) -> tuple[ast.Parameter, ...]:
        body = self.program.streams[listener].body
        routines = body.routines if isinstance(body, ast.Filter) else ()
        handlers = {r.name: r for r in routines if r.is_handler}
        if send.handler not in handlers:
            hint = suggest(send.handler, handlers)
            self.fail(f'{listener} has no handler "{send.handler}"', send.span, hint)
        parameters = handlers[send.handler].parameters
        if len(parameters) != len(send.arguments):
            self.fail(arguments_wanted(send.handler, parameters, len(send.arguments)), send.span)
        return parameters

    def declare(self, declare: ast.Declare) -> None:
        shape = self.shape_for(declare.name, declare.type)
        if declare.name in self.names.own:
            self.fail(f"there is a variable {declare.name} in this block already", declare.span)
        try:
            value = None if declare.value is None else self.fitting(declare.value, shape)
        finally:
            variable = self.names.declare(declare.name, shape)
        self.made.append(Let(Slot(variable.name, shape), declare.span))
        if isinstance(shape, RecordOf) and is_portal(shape):
            place = Place(variable.name, (shape.parts[0][0],))
            self.made.append(Assign(place, Literal(f"{PORTAL}{variable.name}", TEXT)))
        if value is not None:
            self.made.append(Assign(Place(variable.name), value.operand, declare.span))

    def push(self, expression: ast.Expression, span: Span) -> None:
        if not self.in_work:
            self.fail("only work and what it calls can push", span)
        if self.is_given_unknown:
            raise Stop
        if self.given is None and self.stream.output is None:
            self.given = self.wanted
        if self.given is None and self.stream.output is not None:
            self.fail("this filter gives nothing: its output is void", span)
        value = self.value(expression) if self.given is None else self.fitting(
            expression, self.given)  # fmt: skip
        self.pushed.append(value.shape)
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
            self.tried(self.statement, statement)
        condition: Term | None = None
        effects: Body = ()
        if loop.condition is not None:
            test = self.tried(lambda test: self.apart(test, BOOLEAN), loop.condition)
            condition, effects = (None, ()) if test is None else (test[0].term, test[1])
        self.loops += 1
        body = self.body(loop.body)
        self.loops -= 1
        after = self.simple(loop.after)
        if effects:
            assert condition is not None
            if loop.tests_first:
                body = (*effects, Choose(condition, (), (Leave("break"),)), *body)
                condition = None
            else:
                goes_on = self.fresh(BOOLEAN)
                after += (*effects, Assign(Place(goes_on.name), condition))
                condition = Read(Place(goes_on.name), BOOLEAN)
        self.made.append(Repeat(condition, body, after, loop.tests_first, loop.span))
        whole = tuple(self.made)
        self.names, self.made = names, made
        self.made.append(Scope(whole))

    def simple(self, statements: Sequence[ast.Statement]) -> Body:
        before = len(self.made)
        for statement in statements:
            self.tried(self.statement, statement)
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
