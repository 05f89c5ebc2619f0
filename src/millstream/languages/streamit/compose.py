"""Pipelines, split-joins and feedback loops: how streams that are built fit together."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

from millstream.calculus.procedures import (
    Code,
    Invoke,
    Push,
    Shape,
    Slot,
    statements_in,
)
from millstream.calculus.terms import Place
from millstream.calculus.work import Rates
from millstream.languages.streamit import ast
from millstream.languages.streamit.graph import (
    Feedback,
    Filter,
    Node,
    Pipeline,
    SplitJoin,
    Weights,
)
from millstream.languages.streamit.lower_calls import CallLowering
from millstream.languages.streamit.lowering import Captured
from millstream.languages.streamit.making import Stop
from millstream.languages.streamit.pushes import without_pushes
from millstream.languages.streamit.read import stream_in
from millstream.languages.streamit.scope import IDENTITY, Names, Program
from millstream.languages.streamit.shapes import spoken
from millstream.meaning.procedures import Machine, Trap
from millstream.source import Span

#: What is given by a stream that has faults.
UNKNOWN: Any = object()


@dataclass(frozen=True, slots=True)
class Built:
    """A graph with the types of its two sides."""

    node: Node
    taken: Shape | None
    given: Shape | None


class Nothing:
    """The host of code that only calculates."""

    def pop(self) -> Any:
        raise AssertionError("nothing is popped while a graph is built")

    def peek(self, index: int) -> Any:
        raise AssertionError("nothing is peeked while a graph is built")

    def push(self, output: int, value: Any) -> None:
        """What is printed here has been, or will be, told elsewhere."""


@dataclass
class PrintedWhileBuilt(Nothing):
    """Mutable: what is printed while a graph is built."""

    texts: list[str]

    def push(self, output: int, value: Any) -> None:
        self.texts.append(value)


@dataclass
class _Pushes(Nothing):
    """Mutable: what is pushed before anything has come."""

    items: list[Any] = field(default_factory=list)

    def push(self, output: int, value: Any) -> None:
        if output == 0:
            self.items.append(value)


#: A place where a stream is added, what that sees of its surroundings, and its arguments.
Added = tuple[ast.AddStream, Captured, list[Any]]


@dataclass
class CompositeBody:
    """Mutable: what the body of a composite has said so far."""

    children: list[Added] = field(default_factory=list)
    roles: dict[str, Added] = field(default_factory=dict)
    weights: dict[str, Weights] = field(default_factory=dict)
    enqueued: list[tuple[Any, Span]] = field(default_factory=list)

    @property
    def said(self) -> set[str]:
        """What is said once only, and has been."""
        return {*self.roles, *self.weights}


class Composing(ABC):
    """Mutable: puts streams together; how one of them is built is left open."""

    program: Program
    #: Streams that let everything through, by their places: instances share what is made of them.
    identities: dict[Span, ast.Stream]

    def identity(self, span: Span) -> ast.Stream:
        if span not in self.identities:
            text = "filter { work push 1 pop 1 { push(pop()); } }"
            self.identities[span] = stream_in(text, span, IDENTITY)
        return self.identities[span]

    def fail(self, message: str, span: Span | None, hint: str | None = None) -> NoReturn:
        self.program.fault(message, span, hint)
        raise Stop

    @abstractmethod
    def stream(
        self, stream: ast.Stream, captured: Captured, arguments: list[Any], taken: Shape | None,
        span: Span | None, path: str, wanted: Shape | None = None,
    ) -> Built:  # fmt: skip
        """An instance of a stream whose input has items of a shape."""

    @abstractmethod
    def child(self, added: Added, taken: Shape | None, path: str, wanted: Shape | None) -> Built:
        """A stream that was added."""

    @abstractmethod
    def argument(self, value: Any, shape: Shape, span: Span | None) -> Any:
        """A value as a parameter takes it."""

    @abstractmethod
    def started(self, code: Code, arguments: list[Any], span: Span) -> Machine:
        """A code after its `init`."""

    def children(
        self, parts: CompositeBody, path: str,
        shape_of: Callable[[int, Built | None], Shape | None],
        wanted_of: Callable[[int], Shape | None],
    ) -> list[Built]:  # fmt: skip
        """All children, each with what it is given; one with faults does not hide the others'."""
        built: list[Built | None] = []
        for number, added in enumerate(parts.children):
            before = built[-1] if built else None
            try:
                taken = shape_of(number, before)
                wanted = wanted_of(number)
                built.append(self.child(added, taken, f"{path}[{number}]", wanted))
            except Stop:
                built.append(None)
        if None in built:
            raise Stop
        return [child for child in built if child is not None]

    def pipeline(
        self, stream: ast.Stream, parts: CompositeBody, taken: Shape | None, path: str,
        wanted: Shape | None,
    ) -> Built:  # fmt: skip
        if not parts.children and taken is None:
            self.fail("this pipeline adds nothing", stream.span)
        if not parts.children:  # such as a delay by nothing: everything goes through
            return self.stream(self.identity(stream.span), (), [], taken, None, path)

        def given_to(number: int, before: Built | None) -> Shape | None:
            if number == 0:
                return taken
            # One with faults gives what it says, so that others are looked at all the same.
            return self.said_output(parts.children[number - 1][0]) if before is None \
                else before.given  # fmt: skip

        def wanted_of(number: int) -> Shape | None:
            is_last = number == len(parts.children) - 1
            return wanted if is_last else self.said_input(parts.children[number + 1][0])

        nodes = self.children(parts, path, given_to, wanted_of)
        whole = Pipeline(path, tuple(b.node for b in nodes), stream.span)
        return Built(whole, nodes[0].taken, nodes[-1].given)

    def split_join(
        self, stream: ast.Stream, parts: CompositeBody, taken: Shape | None, path: str,
        wanted: Shape | None,
    ) -> Built:  # fmt: skip
        if not parts.children:
            self.fail("this splitjoin adds nothing", stream.span)
        split, join = (self.weights_of(stream, parts, role) for role in ("split", "join"))

        def given_to(number: int, before: Built | None) -> Shape | None:
            return taken if split.kind == "duplicate" or split.counts[number] > 0 else None

        nodes = self.children(parts, path, given_to, lambda _: wanted)
        given = [(n, b.given) for n, b in enumerate(nodes) if b.given is not None]
        for number, shape in given:
            if not alike(shape, given[0][1]):
                first = f"{path}[{given[0][0]}] {spoken(given[0][1])}"
                what = f"{path}[{number}] gives {spoken(shape)} and {first}"
                self.fail(f"what is joined must be of one type, but {what}",
                          parts.children[number][0].span)  # fmt: skip
        whole = SplitJoin(path, split, tuple(b.node for b in nodes), join, stream.span)
        return Built(whole, taken, given[0][1] if given else None)

    def weights_of(self, stream: ast.Stream, parts: CompositeBody, role: str) -> Weights:
        """The weights of a splitjoin.

        If something is wrong with them, that is told, and some that fit what the children say
        take their place, so that types are looked at all the same.
        """
        try:
            if role not in parts.weights:
                self.fail(f"this splitjoin has no {role}", stream.span)
            return self.weighted(parts.weights[role], len(parts.children), role)
        except Stop:
            counts = tuple(int(self.is_said_to_flow(place, role)) for place, *_ in parts.children)
            return Weights("roundrobin", counts, stream.span)

    def is_said_to_flow(self, place: ast.AddStream, role: str) -> bool:
        """Whether a child of a splitjoin has, as far as it says, a side for the split or join."""
        return (
            self.said(place, lambda one: one.input if role == "split" else one.output) is not None
        )

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

    def feedback(
        self, stream: ast.Stream, parts: CompositeBody, taken: Shape | None, path: str,
        wanted: Shape | None,
    ) -> Built:  # fmt: skip
        join = self.end(stream, parts, "join", is_outside=taken is not None)
        split = self.end(stream, parts, "split", is_outside=not is_void(stream.output))
        inside = taken
        if taken is None:  # then what its body says, else what it gives, goes round
            place = parts.roles.get("body")
            said = None if place is None else self.said_input(place[0])
            inside = said if said is not None else wanted
        body = self.part(parts, "body", inside, path, stream, wanted)
        loop = self.part(parts, "loop", body.given, path, stream, body.taken)
        if not alike(loop.given, body.taken):
            self.fail(f"the loop gives {spoken(loop.given)} back, but {path}.body takes "
                      f"{spoken(body.taken)}", stream.span)  # fmt: skip
        assert body.taken is not None
        enqueued = tuple(self.argument(v, body.taken, span) for v, span in parts.enqueued)
        before, again = self.begun(loop.node)
        given = None if is_void(stream.output) else body.given
        whole = Feedback(path, join, body.node, again, split, enqueued + before, stream.span)
        node = whole if taken is not None else self.wound_up(whole, body.taken)
        return Built(node, taken, given)

    def begun(self, loop: Node) -> tuple[tuple[Any, ...], Node]:
        """What a loop gives before anything comes to it, and the loop as it is after that.

        A delay is often written so: its `prework` takes nothing and pushes what comes first.
        """
        if isinstance(loop, Pipeline):
            given, last = self.begun(loop.parts[-1])
            return given, replace(loop, parts=(*loop.parts[:-1], last))
        if not isinstance(loop, Filter) or loop.first is None or loop.first.peek > 0:
            return (), loop
        pushes = _Pushes()
        machine = self.started(loop.code, list(loop.arguments), loop.span)
        assert loop.code.first is not None
        if any(isinstance(s, Invoke) for s in statements_in(loop.code.first)):
            self.fail("the prework that begins this loop can call no function", loop.span)
        try:
            machine.run(loop.code.first, pushes)
        except Trap as trap:
            self.fail(trap.message, trap.span or loop.span)
        if len(pushes.items) != loop.first.push:
            self.fail(f"prework pushes {len(pushes.items)} items, but declares {loop.first.push}",
                      loop.span)  # fmt: skip
        init = loop.code.init + without_pushes(loop.code.first)
        code = replace(loop.code, init=init, first=None)
        return tuple(pushes.items), replace(loop, code=code, first=None)

    def wound_up(self, loop: Feedback, shape: Shape) -> Node:
        """A loop that takes nothing would never rest: it is given an empty item for each turn.

        These are dropped behind the join, so that the body does not see them.
        """
        nothing = Code("Turn", (), (Slot("nothing", shape),), None, shape, (), None,
                       (Push(Place("nothing")),))  # fmt: skip
        turns = Filter(
            f"{loop.path}.turn", nothing, (), None, shape, Rates(push=1), None, loop.span
        )
        taken = loop.join.counts[1]
        text = f"""filter {{ work pop {taken + 1} push {taken} {{
            pop(); for (int i = 0; i < {taken}; i++) push(pop()); }} }}"""
        dropped = self.stream(stream_in(text, loop.span), (), [], shape, None, f"{loop.path}.drop")
        join = replace(loop.join, counts=(1, taken))
        body = Pipeline(loop.path, (dropped.node, loop.body), loop.span)
        return Pipeline(loop.path, (turns, replace(loop, join=join, body=body)), loop.span)

    def end(
        self, stream: ast.Stream, parts: CompositeBody, role: str, *, is_outside: bool
    ) -> Weights:
        """The join or the split of a loop: what comes from or goes outside is first."""
        plain = Weights("roundrobin", (int(is_outside), 1), stream.span)
        end = self.weighted(parts.weights.get(role, plain), 2, role)
        if end.kind == "roundrobin" and end.counts[0] > 0 and not is_outside:
            side = "takes nothing from" if role == "join" else "gives nothing to"
            self.fail(f"this loop {side} outside, but its {role} has the weight {end.counts[0]} "
                      "for it", end.span, "write 0 as the first weight")  # fmt: skip
        return end

    def said_input(self, place: ast.AddStream) -> Shape | None:
        """What a stream says that it takes, if no parameter has to be known for it."""
        said = self.said(place, lambda stream: stream.input)
        return None if said is UNKNOWN else said

    def said_output(self, place: ast.AddStream) -> Shape | None:
        """What a stream says that it gives; UNKNOWN if it does not."""
        return self.said(place, lambda stream: stream.output)

    def said(
        self, place: ast.AddStream, side: Callable[[ast.Stream], ast.TypeName | None]
    ) -> Shape | None:
        stream = place.stream
        if isinstance(stream, ast.Instance):
            named = self.program.streams.get(stream.name)
            type_ = stream.type if named is None else side(named)
        else:
            type_ = side(stream)
        if type_ is None or type_.sizes:
            return UNKNOWN  # type: ignore[no-any-return]
        return None if is_void(type_) else CallLowering(self.program, Names(), None).shape(type_)

    def part(
        self, parts: CompositeBody, role: str, taken: Shape | None, path: str, stream: ast.Stream,
        wanted: Shape | None,
    ) -> Built:  # fmt: skip
        """The body or the loop; one that is missing lets everything through."""
        added = parts.roles.get(role)
        if added is not None:
            return self.child(added, taken, f"{path}.{role}", wanted)
        return self.stream(self.identity(stream.span), (), [], taken, None, f"{path}.{role}")


def is_void(type_: ast.TypeName | None) -> bool:
    return type_ is not None and type_.name == "void"


def alike(shape: Shape | None, other: Shape | None) -> bool:
    """Whether items of two streams are the same, sizes included."""
    return shape == other
