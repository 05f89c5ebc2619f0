"""The graph of a program: the bodies of composites are run, and what they add is connected.

Types are known from left to right: what comes into a stream is what the one before it gives,
so that anonymous streams need no types.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from millstream.calculus.procedures import ArrayOf, Code, RecordOf, Shape
from millstream.calculus.terms import Literal, Term
from millstream.calculus.work import Rates
from millstream.errors import CheckError, suggest
from millstream.languages.streamit import ast
from millstream.languages.streamit.graph import (
    Feedback,
    Filter,
    Node,
    Pipeline,
    SplitJoin,
    Weights,
)
from millstream.languages.streamit.lower import Captured, Lowering, lowered
from millstream.languages.streamit.lower_terms import Stop, TermLowering
from millstream.languages.streamit.scope import Names, Program, Variable, mentioned
from millstream.languages.streamit.shapes import spoken
from millstream.meaning.procedures import Frame, Machine, Trap
from millstream.source import Source, Span
from millstream.values.core.machine import single
from millstream.values.types import INT32, SINGLE

#: More filters than any machine would run, and deeper than any person would write.
MOST_FILTERS = 1_000_000
DEEPEST = 400


@dataclass(frozen=True, slots=True)
class Built:
    """A graph with the types of its two sides."""

    node: Node
    taken: Shape | None
    given: Shape | None


def build(source: Source, text: ast.Text) -> Built:
    """The graph of the program in a text, or a `CheckError` with all that is wrong."""
    program = Program(text)
    builder = _Builder(source, program)
    try:
        built = builder.built()
    except Stop:
        built = None
    if program.faults or built is None:
        raise CheckError(sorted(program.faults, key=lambda f: f.span.start if f.span else 0))
    return built


class _Nothing:
    """The host of code that only calculates."""

    def pop(self) -> Any:
        raise AssertionError("nothing is popped while a graph is built")

    def peek(self, index: int) -> Any:
        raise AssertionError("nothing is peeked while a graph is built")

    def push(self, output: int, value: Any) -> None:
        """What `init` prints is not kept: it would be printed once per instance."""


@dataclass
class _Added:
    """Mutable: what a composite has added, by the numbers of its places."""

    calls: list[tuple[int, list[Any]]] = field(default_factory=list)

    def pop(self) -> Any:
        raise AssertionError("composites have no items")

    def peek(self, index: int) -> Any:
        raise AssertionError("composites have no items")

    def push(self, output: int, value: Any) -> None:
        self.calls.append((output, list(value.values())))


@dataclass
class _Parts:
    """Mutable: what the body of a composite has said so far."""

    children: list[tuple[ast.Place, Captured, list[Any]]] = field(default_factory=list)
    roles: dict[str, tuple[ast.Place, Captured, list[Any]]] = field(default_factory=dict)
    weights: dict[str, Weights] = field(default_factory=dict)
    enqueued: list[Any] = field(default_factory=list)


class _Builder:
    """Mutable: the definitions of a text, and how much has been built of it."""

    def __init__(self, source: Source, program: Program) -> None:
        self.source = source
        self.program = program
        self.values: dict[str, Any] = {}
        self.made: dict[tuple[int, str], Lowering | None] = {}
        self.filters = 0
        self.depth = 0

    def fail(self, message: str, span: Span | None, hint: str | None = None) -> NoReturn:
        self.program.fault(message, span, hint)
        raise Stop

    # --- definitions ---

    def built(self) -> Built:
        self.define()
        main = self.main()
        return self.stream(main, (), [], None, None, main.name or "")

    def define(self) -> None:
        program = self.program
        for struct in program.text.structs:
            maker = TermLowering(program, Names(), None)
            parts = tuple((p.name, maker.shape(p.type)) for p in struct.fields)
            program.structs[struct.name] = RecordOf(parts)
        for stream in program.text.streams:
            assert stream.name is not None
            if stream.name in program.streams:
                self.program.fault(f"there are two streams {stream.name}", stream.span)
            program.streams[stream.name] = stream
        for static in program.text.statics:
            self.define_statics(static)

    def define_statics(self, static: ast.Static) -> None:
        """Constants are the fields of a filter that is never fired."""
        body = ast.Filter(static.fields, static.init, None,
                          ast.Work({}, ast.Block((), static.span), static.span), ())  # fmt: skip
        stream = ast.Stream("static", None, None, (), body, static.span)
        made = lowered(self.program, stream, (), None)
        if made is None:
            raise Stop
        machine = self.started(made.code, [], static.span)
        for slot in made.code.fields:
            self.program.statics[slot.name] = Variable(slot.name, fixed(slot.shape, machine))
            self.values[slot.name] = machine.variables[slot.name]

    def main(self) -> ast.Stream:
        """The program: from void to void, or the one that no other adds."""
        streams = self.program.text.streams
        whole = [s for s in streams if s.input and s.output
                 and s.input.name == s.output.name == "void"]  # fmt: skip
        if len(whole) > 1:
            both = " and ".join(str(s.name) for s in whole[:2])
            self.fail(f"there are two programs: {both} are void->void", whole[1].span)
        if whole:
            return whole[0]
        added = {name for s in streams for name in _instances(s) if name != s.name}
        alone = [s for s in streams if s.name not in added]
        if len(alone) != 1:
            names = ", ".join(str(s.name) for s in alone) or "none"
            self.fail("expected one stream that no other adds, or one void->void: "
                      f"got {names}", alone[1].span if len(alone) > 1 else None)  # fmt: skip
        return alone[0]

    # --- streams ---

    def stream(
        self, stream: ast.Stream, captured: Captured, arguments: list[Any], taken: Shape | None,
        span: Span | None, path: str,
    ) -> Built:  # fmt: skip
        """An instance of a stream whose input has items of a shape."""
        self.depth += 1
        if self.depth > DEEPEST:
            self.fail(f"streams add each other more than {DEEPEST} levels deep", stream.span,
                      "does a stream that adds itself come to an end?")  # fmt: skip
        statics = () if captured else self.statics_of(stream)
        given = [self.values[name] for name, _ in statics] + arguments
        made = self.lowered(stream, (*statics, *captured), taken)
        wanted = len(made.code.parameters)
        if len(given) != wanted:
            count = len(stream.parameters)
            self.fail(f"{stream.name} takes {count} argument{'s' if count != 1 else ''}, "
                      f"got {len(arguments)}", span)  # fmt: skip
        given = [
            self.argument(value, slot.shape, span)
            for value, slot in zip(given, made.code.parameters, strict=True)
        ]
        if isinstance(stream.body, ast.Filter):
            built = self.filter(stream, made, given, path)
        else:
            built = self.composite(stream, stream.body, made, given, taken, path)
        self.depth -= 1
        if path != stream.name and not alike(taken, built.taken):
            self.fail(f"{path} takes {spoken(built.taken)}, but is given {spoken(taken)}",
                      span or stream.span)  # fmt: skip
        return built

    def argument(self, value: Any, shape: Shape, span: Span | None) -> Any:
        """A value as the parameter wants it."""
        if shape == SINGLE and isinstance(value, int):
            return single(float(value))
        if shape == INT32 and isinstance(value, float):
            self.fail(f"expected an int, got {value}", span, "write (int) before it")
        if isinstance(shape, ArrayOf) and isinstance(value, list):
            return [self.argument(element, shape.element, span) for element in value]
        return value

    def statics_of(self, stream: ast.Stream) -> Captured:
        names = mentioned(stream) | mentioned(self.program.text.helpers)
        statics = self.program.statics
        return tuple((name, statics[name]) for name in sorted(names & statics.keys()))

    def lowered(self, stream: ast.Stream, captured: Captured, taken: Shape | None) -> Lowering:
        key = (id(stream), "" if stream.input is not None else str(taken))
        if key not in self.made:
            self.made[key] = lowered(self.program, stream, captured, taken)
        made = self.made[key]
        if made is None:
            raise Stop
        return made

    def started(self, code: Code, arguments: list[Any], span: Span) -> Machine:
        try:
            return Machine.started(code, arguments, _Nothing())
        except Trap as trap:
            self.fail(trap.message, trap.span or span)

    def filter(self, stream: ast.Stream, made: Lowering, arguments: list[Any], path: str) -> Built:
        self.filters += 1
        if self.filters > MOST_FILTERS:
            self.fail(f"this program has more than {MOST_FILTERS:,} filters", stream.span)
        code = made.code
        machine = self.started(code, arguments, stream.span)
        rates = self.rates(made.rates, machine, stream)
        first = self.rates(made.first_rates, machine, stream) if made.first_rates else None
        taken = None if code.taken is None else fixed(code.taken, machine)
        given = None if code.given is None else fixed(code.given, machine)
        node = Filter(path, code, tuple(arguments), taken, given, rates, first, stream.span)
        return Built(node, taken, given)

    def rates(self, terms: Mapping[str, Term], machine: Machine, stream: ast.Stream) -> Rates:
        frame = Frame(machine, None, {})
        values = {name: frame.value(term) for name, term in terms.items()}
        wrong = [name for name, value in values.items() if value < 0]
        if wrong:
            self.fail(f"the {wrong[0]} rate of {stream.name} is {values[wrong[0]]}", stream.span)
        return Rates(values["pop"], max(values["peek"], values["pop"]), values["push"])

    # --- composites ---

    def composite(
        self, stream: ast.Stream, body: ast.Composite, made: Lowering, arguments: list[Any],
        taken: Shape | None, path: str,
    ) -> Built:  # fmt: skip
        added = _Added()
        machine = self.started(made.code, arguments, stream.span)
        if stream.input is not None:
            taken = None if made.code.taken is None else fixed(made.code.taken, machine)
        try:
            machine.run(made.code.body, added)
        except Trap as trap:
            self.fail(trap.message, trap.span or stream.span)
        parts = self.parts(made, added)
        match body.kind:
            case "pipeline":
                return self.pipeline(stream, parts, taken, path)
            case "splitjoin":
                return self.split_join(stream, parts, taken, path)
            case "feedbackloop":
                return self.feedback(stream, parts, taken, path)

    def parts(self, made: Lowering, added: _Added) -> _Parts:
        parts = _Parts()
        for number, values in added.calls:
            site = made.sites[number]
            match site.statement:
                case ast.Place("add"):
                    parts.children.append((site.statement, site.captured, values))
                case ast.Place(role):
                    parts.roles[role] = (site.statement, site.captured, values)
                case ast.Split(role, kind, _, span):
                    parts.weights[role] = Weights(kind, tuple(values), span)
                case ast.Enqueue():
                    parts.enqueued += values
        return parts

    def child(
        self, added: tuple[ast.Place, Captured, list[Any]], taken: Shape | None, path: str
    ) -> Built:
        statement, captured, values = added
        if isinstance(statement.stream, ast.Stream):
            name = f"{path}.{statement.stream.kind}"
            return self.stream(statement.stream, captured, values, taken, statement.span, name)
        instance = statement.stream
        stream = self.program.streams.get(instance.name) or _built_in(instance)
        if stream is None:
            hint = suggest(instance.name, self.program.streams)
            self.fail(f'unknown stream "{instance.name}"', instance.span, hint)
        return self.stream(stream, (), values, taken, instance.span, f"{path}.{instance.name}")

    def pipeline(self, stream: ast.Stream, parts: _Parts, taken: Shape | None, path: str) -> Built:
        if not parts.children:
            self.fail("this pipeline adds nothing", stream.span)
        shape, nodes = taken, []
        for number, added in enumerate(parts.children):
            built = self.child(added, shape, f"{path}[{number}]")
            nodes.append(built)
            shape = built.given
        whole = Pipeline(path, tuple(b.node for b in nodes), stream.span)
        return Built(whole, nodes[0].taken, nodes[-1].given)

    def split_join(
        self, stream: ast.Stream, parts: _Parts, taken: Shape | None, path: str
    ) -> Built:
        for role in ("split", "join"):
            if role not in parts.weights:
                self.fail(f"this splitjoin has no {role}", stream.span)
        children = parts.children
        if not children:
            self.fail("this splitjoin adds nothing", stream.span)
        split = self.weighted(parts.weights["split"], len(children), "split")
        join = self.weighted(parts.weights["join"], len(children), "join")
        nodes = []
        for number, added in enumerate(children):
            gets = split.kind == "duplicate" or split.counts[number] > 0
            nodes.append(self.child(added, taken if gets else None, f"{path}[{number}]"))
        given = next((b.given for b in nodes if b.given is not None), None)
        whole = SplitJoin(path, split, tuple(b.node for b in nodes), join, stream.span)
        return Built(whole, taken, given)

    def weighted(self, weights: Weights, count: int, role: str) -> Weights:
        """One weight is for all; without any, one item each."""
        if weights.kind == "duplicate":
            return weights
        counts = weights.counts or (1,)
        if len(counts) == 1:
            counts *= count
        if len(counts) != count:
            self.fail(f"this {role} has {len(counts)} weights for {count} streams", weights.span)
        if min(counts) < 0:
            self.fail(f"a weight of this {role} is {min(counts)}", weights.span)
        return Weights(weights.kind, counts, weights.span)

    def feedback(self, stream: ast.Stream, parts: _Parts, taken: Shape | None, path: str) -> Built:
        ends = [Weights("roundrobin", (), stream.span)] * 2
        for number, role in enumerate(("join", "split")):
            ends[number] = parts.weights.get(role, ends[number])
        join, split = (self.weighted(end, 2, role)
                       for end, role in zip(ends, ("join", "split"), strict=True))  # fmt: skip
        body = self.part(parts, "body", taken, path, stream)
        loop = self.part(parts, "loop", body.given, path, stream)
        whole = Feedback(path, join, body.node, loop.node, split, tuple(parts.enqueued),
                         stream.span)  # fmt: skip
        return Built(whole, taken, body.given)

    def part(
        self, parts: _Parts, role: str, taken: Shape | None, path: str, stream: ast.Stream
    ) -> Built:
        """The body or the loop; one that is missing lets everything through."""
        added = parts.roles.get(role)
        if added is not None:
            return self.child(added, taken, f"{path}.{role}")
        return self.stream(_identity(stream.span), (), [], taken, None, f"{path}.{role}")


def _identity(span: Span) -> ast.Stream:
    one = ast.Number(1, False, span)
    pop = ast.Invoke("pop", (), span)
    rate = ast.Rate(one, one, span)
    work = ast.Work({"push": rate, "pop": rate}, ast.Block((ast.Push(pop, span),), span), span)
    return ast.Stream("Identity", None, None, (), ast.Filter((), None, None, work, ()), span)


def _built_in(instance: ast.Instance) -> ast.Stream | None:
    return _identity(instance.span) if instance.name == "Identity" else None


def _instances(stream: ast.Stream) -> set[str]:
    """The streams that are added somewhere in one."""
    names: set[str] = set()

    def look(node: object) -> None:
        if isinstance(node, ast.Instance):
            names.add(node.name)
        if isinstance(node, tuple | list):
            for part in node:
                look(part)
        elif hasattr(node, "__dataclass_fields__") and not isinstance(node, Span):
            for name in node.__dataclass_fields__:
                look(getattr(node, name))

    look(stream)
    return names


def alike(shape: Shape | None, other: Shape | None) -> bool:
    """Whether items of two streams are the same, sizes included."""
    return shape == other


def fixed(shape: Shape, machine: Machine) -> Shape:
    """A shape with its sizes as they are for the arguments of a machine."""
    match shape:
        case ArrayOf(element, size):
            count = Frame(machine, None, {}).value(size)
            return ArrayOf(fixed(element, machine), Literal(count, INT32))
        case RecordOf(parts):
            return RecordOf(tuple((name, fixed(part, machine)) for name, part in parts))
        case _:
            return shape
