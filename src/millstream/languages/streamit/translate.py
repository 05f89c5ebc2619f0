"""The translation of appendix B: each actor is an operator, each channel a queue."""

from __future__ import annotations

from typing import Any

from millstream.calculus.functions import Duplicate, RoundRobinJoin, RoundRobinSplit
from millstream.calculus.functions import Filter as Selection
from millstream.calculus.graph import Input, Program
from millstream.calculus.procedures import ArrayOf, Push, RecordOf, Shape, statements_in
from millstream.calculus.terms import Call, Column, Literal
from millstream.calculus.types import BOOLEAN, INTEGER, TEXT, QueueType, Schema
from millstream.calculus.wiring import Queue, Wiring
from millstream.calculus.work import PRINTED, Interleave, Pace, Work, row_of_item, schema_of_items
from millstream.errors import CheckError, Fault
from millstream.languages.streamit.balance import Balance, Unbalanced, balanced
from millstream.languages.streamit.build import Built, build
from millstream.languages.streamit.flat import Actor, Channel, Flat, flattened
from millstream.languages.streamit.graph import Filter, Weights
from millstream.languages.streamit.lower import PRINTED as PRINTED_OUTPUT
from millstream.languages.streamit.printing import order_of
from millstream.languages.streamit.read import read
from millstream.source import Source

#: A row for the initialisation, then one for each steady state.
TICKS = "iterations"
ENTRY, EXIT, TEXTS = "items", "out", "printed"


def program_of(source: Source) -> Program:
    """A StreamIt text as a program of the calculus."""
    built = build(source, read(source))
    flat = flattened(built.node)
    try:
        balance = balanced(flat)
    except Unbalanced as error:
        raise CheckError(error.fault) from None
    return _Translation(built, flat, balance).program()


class _Translation:
    """Mutable: queues for channels, and operators between them."""

    def __init__(self, built: Built, flat: Flat, balance: Balance) -> None:
        self.built = built
        self.flat = flat
        self.balance = balance
        self.wiring = Wiring(reserved=(EXIT, TEXTS))
        self.queues: dict[int, Queue] = {}
        self.ticks: Queue | None = None
        self.printed: list[Queue] = []
        self.printing: list[Actor] = []

    def program(self) -> Program:
        shapes = self.shapes()
        for channel in self.flat.channels:
            shape = shapes[channel.number]
            type_ = QueueType(schema_of_items(shape))
            if channel is self.flat.entry:
                queue = self.wiring.input(Input(ENTRY, type_))
            else:
                queue = Queue(self.wiring.fresh("q"), type_)
            self.queues[channel.number] = queue
        for number, actor in enumerate(self.flat.actors):
            if isinstance(actor.work, Filter):
                self.filter(actor, actor.work, number)
            else:
                self.dealer(actor, actor.work, shapes)
        outputs: dict[str, Queue] = {}
        if self.flat.exit is not None:
            outputs[EXIT] = self.queues[self.flat.exit.number]
        if self.printed:
            outputs[TEXTS] = self.texts()
        if not outputs:
            span = self.built.node.span
            raise CheckError(Fault("this program gives nothing and prints nothing", span))
        return self.wiring.program(outputs)

    def shapes(self) -> dict[int, Shape]:
        """What travels on each channel; dealers pass on what they get."""
        shapes: dict[int, Shape] = {}
        for actor in self.flat.actors:
            if isinstance(actor.work, Filter):
                for channel, shape in (
                    *((c, actor.work.taken) for c in actor.inputs),
                    *((c, actor.work.given) for c in actor.outputs),
                ):
                    if shape is not None:
                        shapes[channel.number] = shape
        missing = True
        while missing:
            missing = False
            for actor in self.flat.actors:
                ends = (*actor.inputs, *actor.outputs)
                known = [shapes[c.number] for c in ends if c.number in shapes]
                if isinstance(actor.work, Weights) and known:
                    for channel in ends:
                        missing |= channel.number not in shapes
                        shapes.setdefault(channel.number, known[0])
        return shapes

    # --- actors ---

    def filter(self, actor: Actor, node: Filter, number: int) -> None:
        prints = any(
            isinstance(s, Push) and s.output == PRINTED_OUTPUT
            for body in node.code.bodies()
            for s in statements_in(body)
        )
        pace = None
        if actor.is_source:
            pace = Pace(self.balance.initially[number], self.balance.repeats[number])
        pairs = zip(node.code.parameters, node.arguments, strict=True)
        arguments = tuple(_frozen(slot.shape, value) for slot, value in pairs)
        work = Work(node.code, arguments, node.taken, node.given, node.rates, node.first, pace,
                    prints)  # fmt: skip
        given = tuple(self.queues[c.number] for c in actor.outputs)
        if prints:
            given += (Queue(self.wiring.fresh("printed_by"), PRINTED),)
            self.printed.append(given[-1])
            self.printing.append(actor)
        taken = self.taken(actor)
        state = tuple(slot.name for slot in node.code.fields)
        self.wiring.connect(work, (taken,), given, actor.span, state)

    def taken(self, actor: Actor) -> Queue:
        if not actor.is_source:
            return self.queues[actor.inputs[0].number]
        if self.ticks is None:
            type_ = QueueType(Schema.of(number=INTEGER))
            self.ticks = self.wiring.input(Input(TICKS, type_))
        return self.ticks

    def dealer(self, actor: Actor, weights: Weights, shapes: dict[int, Shape]) -> None:
        """A split or a join; a side that gets nothing is left out."""
        inputs = [(c, n) for c, n in zip(actor.inputs, actor.pops, strict=True) if n]
        outputs = [(c, n) for c, n in zip(actor.outputs, actor.pushes, strict=True) if n]
        taken = tuple(self.queues[c.number] for c, _ in inputs)
        given = tuple(self.queues[c.number] for c, _ in outputs)
        if actor.path.endswith(".join"):
            rows = tuple(_rows(c, shapes[c.number]) for c, _ in inputs)
            enqueued = rows if any(rows) else ()
            join = RoundRobinJoin(tuple(n for _, n in inputs), enqueued)
            self.wiring.connect(join, taken, given, actor.span)
        elif weights.kind == "duplicate":
            self.wiring.connect(Duplicate(), taken, given, actor.span)
        else:
            split = RoundRobinSplit(tuple(n for _, n in outputs))
            self.wiring.connect(split, taken, given, actor.span)

    def texts(self) -> Queue:
        """What is printed, without the firings that print nothing."""
        queue = self.printed[0]
        if len(self.printed) > 1:
            order = order_of(self.flat, self.balance, self.printing)
            interleave = Interleave(order.begins, order.repeats)
            queue = self.wiring.add(interleave, *self.printed, name="printed_by_all")
        says = Call("!=", (Column("text", TEXT), Literal("", TEXT)), BOOLEAN)
        return self.wiring.add(Selection(says), queue, name="said")


def _rows(channel: Channel, shape: Shape) -> tuple[Any, ...]:
    return tuple(row_of_item(shape, value) for value in channel.enqueued)


def _frozen(shape: Shape, value: Any) -> Any:
    match shape:
        case ArrayOf(element):
            return tuple(_frozen(element, part) for part in value)
        case RecordOf(parts):
            return tuple(_frozen(part, value[name]) for name, part in parts)
        case _:
            return value
