"""The graph of a program: the bodies of composites are run, and what they add is connected.

Types are known from left to right: what comes into a stream is what the one before it gives,
so that anonymous streams need no types.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NoReturn

from millstream.calculus.procedures import ArrayOf, Code, RecordOf, Shape
from millstream.calculus.terms import Literal
from millstream.calculus.work import Rates
from millstream.errors import CheckError, Fault
from millstream.languages.streamit import ast
from millstream.languages.streamit.compose import (
    UNKNOWN,
    Added,
    Built,
    Composing,
    CompositeBody,
    Nothing,
    PrintedWhileBuilt,
    alike,
)
from millstream.languages.streamit.graph import Filter, Message, Weights
from millstream.languages.streamit.looks import (
    declared_in,
    described,
    fixed,
    instances,
    needs_fields,
)
from millstream.languages.streamit.lower import arguments_wanted, lowered
from millstream.languages.streamit.lower_calls import CallLowering
from millstream.languages.streamit.lowering import (
    FIRST_SITE,
    PRINTED,
    Calculated,
    Captured,
    Lowering,
    Said,
    Sent,
)
from millstream.languages.streamit.making import Stop
from millstream.languages.streamit.scope import (
    IDENTITY,
    READER,
    WRITER,
    Names,
    Program,
    Variable,
    mentioned,
)
from millstream.languages.streamit.shapes import COMPLEX, is_portal, spoken
from millstream.languages.streamit.sizes import Pair, pairs_in
from millstream.languages.streamit.unseen import Unseen, check_file
from millstream.meaning.procedures import Frame, Machine, Trap
from millstream.source import Source, Span
from millstream.values.core.machine import converted, single
from millstream.values.types import TEXT, Type

#: More filters than any machine would run, and deeper than any person would write.
MOST_FILTERS = 100_000
#: Loops of one body that builds the graph, or of one `init`, do no more statements than these.
MOST_STEPS, MOST_STEPS_OF_INIT = 600_000, 10_000_000
DEEPEST = 400


class Hopeless(Exception):
    """Nothing more can be found out by going on."""


def build(source: Source, text: ast.Text, folder: Path) -> tuple[Built, tuple[Fault, ...], str]:
    """The graph of the program in a text, what is odd about it, and what it prints meanwhile.

    If something is wrong, then a `CheckError` has all that is.
    """
    program = Program(text)
    builder = _Builder(source, program, folder)
    try:
        built = builder.built()
    except (Stop, Hopeless):
        built = None
    if program.faults:
        builder.look_at_the_rest()
    if program.faults or built is None:
        raise CheckError(sorted(program.faults, key=lambda f: f.span.start if f.span else 0))
    return built, tuple(program.warnings), "".join(builder.told.texts)


@dataclass
class _Added:
    """Mutable: what a composite has added, by the numbers of its places."""

    told: PrintedWhileBuilt
    calls: list[tuple[int, list[Any]]] = field(default_factory=list)

    def pop(self) -> Any:
        raise AssertionError("composites have no items")

    def peek(self, index: int) -> Any:
        raise AssertionError("composites have no items")

    def push(self, output: int, value: Any) -> None:
        if output == PRINTED:
            self.told.push(output, value)
            return
        if len(self.calls) == MOST_FILTERS:
            raise Trap(f"more than {MOST_FILTERS:,} streams are added here", None)
        self.calls.append((output - FIRST_SITE, list(value.values())))


class _Builder(Composing):
    """Mutable: the definitions of a text, and how much has been built of it."""

    def __init__(self, source: Source, program: Program, folder: Path) -> None:
        self.source = source
        self.folder = folder
        self.program = program
        self.values: dict[str, Any] = {}
        self.made: dict[tuple[int, Shape | None, Shape | None], Lowering | None] = {}
        #: What is known by its number in memory: others would get that number if it were gone.
        self.alive: list[ast.Stream | Lowering] = []
        #: Filters whose `init` has been done, and whether their rates depend on it.
        self.begun_once: dict[int, bool] = {}
        self.size_pairs: dict[int, tuple[Pair, ...]] = {}
        self.mentions: dict[tuple[int, int], Captured] = {}
        self.told = PrintedWhileBuilt([])
        self.identities = {}
        self.filters = 0
        self.depth = 0

    def give_up(self, message: str, span: Span | None, hint: str | None = None) -> NoReturn:
        self.program.fault(message, span, hint)
        raise Hopeless

    # --- definitions ---

    def built(self) -> Built:
        self.define()
        main = self.main()
        return self.stream(main, (), [], None, None, main.name or "")

    def look_at_the_rest(self) -> None:
        """Faults of streams that were not come to, because others had some."""
        rest = Unseen(self.program, self.folder, self.statics_of, {key[0] for key in self.made})
        rest.look_at(self.made.values())

    def define(self) -> None:
        program = self.program
        for stream in program.text.streams:
            assert stream.name is not None
            if stream.name in program.streams:
                self.program.fault(f"there are two streams {stream.name}", stream.span)
            program.streams[stream.name] = stream
        for static in program.text.statics:
            self.define_statics(static)
        maker = CallLowering(program, Names(), None)
        for struct in program.text.structs:
            maker.struct(struct.name)

    def define_statics(self, static: ast.Static) -> None:
        """Constants are the fields of a filter that is never fired."""
        body = ast.Filter(static.fields, static.init, None,
                          ast.Work({}, ast.Block((), static.span), static.span), ())  # fmt: skip
        stream = ast.Stream("static", None, None, (), body, static.span)
        statics = self.statics_of(stream)
        made = lowered(self.program, stream, statics, None)
        if made is None or made.has_faults:
            self.program.spoilt.update(declare.name for declare in static.fields)
            return
        machine = self.machine(made, [self.values[name] for name, _ in statics], static.span)
        for slot in made.code.fields:
            value = machine.variables[slot.name]
            if isinstance(slot.shape, Type):
                self.program.constants[slot.name] = Literal(value, slot.shape)
            else:
                self.program.statics[slot.name] = Variable(slot.name, fixed(slot.shape, machine))
                self.values[slot.name] = value

    def main(self) -> ast.Stream:
        """The program: from void to void, or the one that no other adds."""
        streams = self.program.text.streams
        whole = [s for s in streams if s.input and s.output
                 and s.input.name == s.output.name == "void"]  # fmt: skip
        added = {name for s in streams for name in instances(s) if name != s.name}
        whole = [s for s in whole if s.name not in added] or whole
        if len(whole) > 1:
            both = " and ".join(str(s.name) for s in whole[:2])
            # What else is wrong is told with it, as far as the first one goes.
            self.program.fault(f"there are two programs: {both} are void->void", whole[1].span)
        if whole:
            return whole[0]
        alone = [s for s in streams if s.name not in added]
        if not streams:
            place = Span(self.source, 0, len(self.source.text.split("\n", 1)[0]))
            self.fail("there is no stream in this text", place,
                      "a program is written as void->void pipeline Main { ... }")  # fmt: skip
        if len(alone) != 1:
            names = ", ".join(str(s.name) for s in alone) or "none"
            self.fail("expected one stream that no other adds, or one void->void: "
                      f"got {names}", alone[1].span if len(alone) > 1 else None)  # fmt: skip
        return alone[0]

    # --- streams ---

    def stream(
        self, stream: ast.Stream, captured: Captured, arguments: list[Any], taken: Shape | None,
        span: Span | None, path: str, wanted: Shape | None = None,
    ) -> Built:  # fmt: skip
        """An instance of a stream whose input has items of a shape.

        If it does not say what it gives, then it should give what is wanted.
        """
        if taken is UNKNOWN and stream.input is None:
            raise Stop
        self.depth += 1
        if self.depth > DEEPEST:
            self.give_up(f"streams add each other more than {DEEPEST} levels deep", stream.span,
                         "does a stream that adds itself come to an end?")  # fmt: skip
        taken_in = {name for name, _ in captured}
        statics = tuple(s for s in self.statics_of(stream) if s[0] not in taken_in)
        given = [self.values[name] for name, _ in statics] + arguments
        made = self.lowered(stream, (*statics, *captured), taken, wanted)
        if len(given) != len(made.code.parameters):
            self.fail(arguments_wanted(stream.name, stream.parameters, len(arguments)), span)
        given = [
            self.argument(value, slot.shape, span)
            for value, slot in zip(given, made.code.parameters, strict=True)
        ]
        self.check_arrays(made.code, given, span)
        if isinstance(stream.body, ast.Filter):
            built = self.filter(stream, made, given, path)
        else:
            built = self.composite(stream, stream.body, made, given, taken, path, wanted)
        self.depth -= 1
        is_whole = path == stream.name
        if not is_whole and taken is not UNKNOWN and not alike(taken, built.taken):
            self.fail(f"{path} takes {spoken(built.taken)}, but is given {spoken(taken)}",
                      span or stream.span)  # fmt: skip
        return built

    def argument(self, value: Any, shape: Shape, span: Span | None) -> Any:
        """A value as the parameter wants it."""
        match shape, value:
            case ArrayOf(element), list():
                return [self.argument(part, element, span) for part in value]
            case RecordOf(parts), dict() if value.keys() == dict(parts).keys():
                return {name: self.argument(value[name], part, span) for name, part in parts}
            case (RecordOf(), bool() | int() | float()) if shape == COMPLEX:
                return {"real": single(float(value)), "imag": 0.0}
            case Type(), bool() | int() | float():
                return converted(value, shape)
            case Type(), str() if shape == TEXT:
                return value
        self.fail(f"expected {spoken(shape)}, got {described(value)}", span)

    def statics_of(self, stream: ast.Stream) -> Captured:
        """The constants that a stream mentions and that have to be handed to it."""
        if not self.program.statics:
            return ()
        key = id(stream), len(self.program.statics)
        if key not in self.mentions:
            self.alive.append(stream)
            self.mentions[key] = self.found_statics(stream)
        return self.mentions[key]

    def found_statics(self, stream: ast.Stream) -> Captured:
        names = mentioned(stream) | mentioned(self.program.text.helpers)
        statics = self.program.statics
        return tuple((name, statics[name]) for name in sorted(names & statics.keys()))

    def lowered(
        self, stream: ast.Stream, captured: Captured, taken: Shape | None, wanted: Shape | None
    ) -> Lowering:
        key = (id(stream), None if stream.input else taken, None if stream.output else wanted)
        if key not in self.made:
            self.alive.append(stream)
            self.made[key] = lowered(self.program, stream, captured, taken, wanted)
        made = self.made[key]
        if made is None or made.has_faults:
            raise Stop
        return made

    def started(self, code: Code, arguments: list[Any], span: Span) -> Machine:
        try:
            return Machine.started(code, arguments, self.told, MOST_STEPS_OF_INIT)
        except Trap as trap:
            self.fail(trap.message, trap.span or span)

    def machine(self, made: Lowering, arguments: list[Any], span: Span) -> Machine:
        """What rates are worked out with; `init` is only done again if they may need it."""
        key = id(made)
        if made.spoken_init is not None:
            return self.started(replace(made.code, init=made.spoken_init), arguments, span)
        if key not in self.begun_once:
            self.alive.append(made)
            self.begun_once[key] = needs_fields(made)
            return self.started(made.code, arguments, span)
        if self.begun_once[key]:
            return self.started(made.code, arguments, span)
        slots = zip(made.code.parameters, arguments, strict=True)
        return Machine(made.code, {slot.name: value for slot, value in slots})

    def check_sizes(self, made: Lowering, machine: Machine, span: Span) -> None:
        if id(made) not in self.size_pairs:
            self.alive.append(made)
            self.size_pairs[id(made)] = pairs_in(made.code)
        frame = Frame(machine, None, {})
        for left, right, place in self.size_pairs[id(made)]:
            sizes = frame.value(left), frame.value(right)
            if sizes[0] != sizes[1]:
                self.fail(f"an array of {sizes[1]} does not fit into an array of {sizes[0]}",
                          place or span)  # fmt: skip

    def check_arrays(self, code: Code, arguments: list[Any], span: Span | None) -> None:
        """Arrays are given as long as parameters say, which may depend on other parameters."""
        slots = list(zip(code.parameters, arguments, strict=True))
        for slot, value in slots:
            if isinstance(slot.shape, ArrayOf):
                machine = Machine(code, {slot.name: value for slot, value in slots})
                size = Frame(machine, None, {}).value(slot.shape.size)
                if len(value) != size:
                    message = f"an array of {len(value)} does not fit into an array of {size}"
                    self.fail(message, span)

    def filter(self, stream: ast.Stream, made: Lowering, arguments: list[Any], path: str) -> Built:
        self.filters += 1
        if self.filters > MOST_FILTERS:
            self.give_up(f"this program has more than {MOST_FILTERS:,} filters", stream.span)
        code = made.code
        machine = (self.started(code, arguments, stream.span)
                   if made.sent and made.spoken_init is None
                   else self.machine(made, arguments, stream.span))  # fmt: skip
        self.check_sizes(made, machine, stream.span)
        rates = self.rates(made.rates, machine, stream)
        first = None
        if made.first_rates is not None:
            first = self.rates(made.first_rates, machine, stream)
        taken = None if code.taken is None else fixed(code.taken, machine)
        given = None if code.given is None else fixed(code.given, machine)
        messages = tuple(self.message(sent, machine) for sent in made.sent)
        # A portal is no value: who is meant by it is known by now.
        kept = [n for n, slot in enumerate(code.parameters) if not is_portal(slot.shape)]
        if len(kept) < len(arguments):
            code = replace(code, parameters=tuple(code.parameters[n] for n in kept))
            arguments = [arguments[n] for n in kept]
        node = Filter(path, code, tuple(arguments), taken, given, rates, first, stream.span,
                      messages=messages)  # fmt: skip
        return Built(node, taken, given)

    def message(self, sent: Sent, machine: Machine) -> Message:
        portal = machine.variables[sent.portal][sent.listener]
        latency = None
        if sent.latency is not None:
            frame = Frame(machine, Nothing(), {})
            try:
                frame.run(sent.latency.before)
                latency = int(frame.value(sent.latency.term))
            except Trap as trap:
                self.fail(trap.message, trap.span or sent.span)
        return Message(sent.output, portal, sent.handler, latency, sent.span)

    def rates(self, said: Said, machine: Machine, stream: ast.Stream) -> Rates:
        def worked_out(rate: Calculated) -> int:
            frame = Frame(machine, Nothing(), {})
            try:
                frame.run(rate.before)
                return int(frame.value(rate.term))
            except Trap as trap:
                self.fail(trap.message, trap.span or stream.span)

        least = {"pop": 0, "peek": 0, "push": 0}
        least |= {name: worked_out(rate) for name, rate in said.least.items()}
        wrong = [name for name, value in least.items() if value < 0]
        if wrong:
            self.fail(f"the {wrong[0]} rate of {stream.name} is {least[wrong[0]]}", stream.span)
        pop, peek, push = least["pop"], max(least["peek"], least["pop"]), least["push"]
        if not said.most:
            return Rates(pop, peek, push)
        most = {name: None if rate is None else worked_out(rate)
                for name, rate in said.most.items()}  # fmt: skip
        pops, peeks = most.get("pop", pop), most.get("peek", least["peek"])
        seen = None if pops is None or peeks is None else max(pops, peeks)
        return Rates(pop, peek, push, (pops, seen, most.get("push", push)))

    # --- composites ---

    def composite(
        self, stream: ast.Stream, body: ast.Composite, made: Lowering, arguments: list[Any],
        taken: Shape | None, path: str, wanted: Shape | None,
    ) -> Built:  # fmt: skip
        added = _Added(self.told)
        machine = self.started(made.code, arguments, stream.span)
        said = tuple(
            None if shape is None else fixed(shape, machine)
            for shape in (made.code.taken, made.code.given)
        )
        if taken is UNKNOWN or path == stream.name:
            taken = said[0]
        machine.steps_left = MOST_STEPS
        try:
            machine.run(made.code.body, added)
        except Trap as trap:
            self.fail(trap.message, trap.span or stream.span)
        parts = self.parts(made, added, path)
        build = {
            "pipeline": self.pipeline, "splitjoin": self.split_join, "feedbackloop": self.feedback,
        }[body.kind]  # fmt: skip
        wanted = wanted if stream.output is None else said[1]
        built = build(stream, parts, taken, path, wanted)
        self.compare(stream, said, built)
        return built

    def compare(self, stream: ast.Stream, said: tuple[Shape | None, ...], built: Built) -> None:
        """What a composite says of itself is a remark: its parts are what counts."""
        if stream.input is not None and not alike(said[0], built.taken):
            self.program.warn(f"{stream.name} is said to take {spoken(said[0])}, but takes "
                              f"{spoken(built.taken)}", stream.span)  # fmt: skip
        elif stream.output is not None and not alike(said[1], built.given):
            self.program.warn(f"{stream.name} is said to give {spoken(said[1])}, but gives "
                              f"{spoken(built.given)}", stream.span)  # fmt: skip

    def parts(self, made: Lowering, added: _Added, path: str) -> CompositeBody:
        parts = CompositeBody()
        for number, given in added.calls:
            site = made.sites[number]
            values = [declared_in(value, path) for value in given]
            match site.statement:
                case ast.AddStream("add"):
                    parts.children.append((site.statement, site.captured, values))
                case ast.AddStream(role, span=span) | ast.Split(role, span=span) if (
                    role in parts.said
                ):
                    self.fail(f"there is one `{role}` already", span)
                case ast.AddStream(role):
                    parts.roles[role] = (site.statement, site.captured, values)
                case ast.Split(role, kind, _, span):
                    parts.weights[role] = Weights(kind, tuple(values), span)
                case ast.Enqueue(_, span):
                    parts.enqueued += [(value, span) for value in values]
        return parts

    def child(self, added: Added, taken: Shape | None, path: str, wanted: Shape | None) -> Built:
        """A stream that was added; the last of its values are the portals it listens to."""
        statement, captured, values = added
        count = len(values) - len(statement.portals)
        portals = tuple(text for value in values[count:] for text in value.values())
        built = self.added(statement, captured, values[:count], taken, path, wanted)
        if not portals:
            return built
        if not isinstance(built.node, Filter):
            self.fail("only a filter can listen to a portal", statement.span)
        return replace(built, node=replace(built.node, portals=portals))

    def added(
        self, statement: ast.AddStream, captured: Captured, values: list[Any], taken: Shape | None,
        path: str, wanted: Shape | None,
    ) -> Built:  # fmt: skip
        if isinstance(statement.stream, ast.Stream):
            name = f"{path}.{statement.stream.kind}"
            return self.stream(statement.stream, captured, values, taken, statement.span, name,
                               wanted)  # fmt: skip
        instance = statement.stream
        stream = self.program.streams.get(instance.name)
        if stream is None and instance.name in (READER, WRITER):
            return self.file(instance, values, taken, f"{path}.{instance.name}")
        if stream is None and instance.name == IDENTITY and taken is None:
            self.fail("there is nothing here that Identity could pass on", instance.span)
        if stream is None and instance.name == IDENTITY:
            stream = self.identity(instance.span)
        assert stream is not None, instance.name
        return self.stream(stream, (), values, taken, instance.span, f"{path}.{instance.name}")

    def file(
        self, instance: ast.Instance, values: list[Any], taken: Shape | None, path: str
    ) -> Built:
        """A filter that only reads or writes a file."""
        name = instance.name
        if instance.type is None or len(values) != 1 or not isinstance(values[0], str):
            self.fail(f"expected the type of its items and the name of a file, such as "
                      f'{name}<float>("samples.in")', instance.span)  # fmt: skip
        if name == READER:
            check_file(self.program, self.folder, values[0], instance.span)
        shape = CallLowering(self.program, Names(), None).shape(instance.type)
        input_, output = (None, shape) if name == READER else (shape, None)
        rates = Rates(push=1) if name == READER else Rates(1, 1)
        if taken is not UNKNOWN and not alike(taken, input_):
            self.fail(f"{path} takes {spoken(input_)}, but is given {spoken(taken)}",
                      instance.span)  # fmt: skip
        code = Code(name, (), (), input_, output, (), None, ())
        node = Filter(path, code, (), input_, output, rates, None, instance.span, values[0])
        return Built(node, input_, output)
