"""The translation of appendix B: each actor is an operator, each channel a queue."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from millstream.calculus.functions import Duplicate, Merge, RoundRobinJoin, RoundRobinSplit
from millstream.calculus.functions import Filter as Selection
from millstream.calculus.graph import Input, Operator, Program
from millstream.calculus.procedures import ArrayOf, Code, Push, RecordOf, Shape, statements_in
from millstream.calculus.terms import Call, Column, Literal
from millstream.calculus.types import BOOLEAN, INTEGER, TEXT, QueueType, Schema
from millstream.calculus.wiring import Queue, Wiring
from millstream.calculus.work import (
    PRINTED,
    TURN,
    Interleave,
    Pace,
    Rates,
    Work,
    row_of_item,
    schema_of_items,
)
from millstream.errors import CheckError, Fault
from millstream.languages.language import Translation
from millstream.languages.streamit import ast
from millstream.languages.streamit.balance import Balance, Unbalanced, balanced
from millstream.languages.streamit.build import build
from millstream.languages.streamit.clocks import with_clocks
from millstream.languages.streamit.compose import Built
from millstream.languages.streamit.files import Entry, Files, Rounds, files_of
from millstream.languages.streamit.flat import Actor, Channel, Flat, flattened
from millstream.languages.streamit.graph import Filter, Weights
from millstream.languages.streamit.lowering import PRINTED as PRINTED_OUTPUT
from millstream.languages.streamit.messages import Link, ahead, links_of, tellings_of
from millstream.languages.streamit.printing import order_of
from millstream.languages.streamit.read import read
from millstream.meaning.linear import linear_of
from millstream.source import Source

#: A row for the initialisation, then one for each steady state.
TICKS = "iterations"
#: More operators than these are only counted.
_MOST_NOTED = 60
#: Matrices of more filters, or with more numbers, are not shown.
_MOST_LINEAR, _MOST_CELLS = 12, 1024
ENTRY, EXIT, TEXTS = "items", "out", "printed"


def translated(source: Source, folder: Path) -> Translation:
    """A StreamIt text as a program of the calculus; its files are seen from a folder."""
    return translation_of(read(source), source, folder)


def translation_of(text: ast.Text, source: Source, folder: Path) -> Translation:
    built, odd, why_not = build(source, text, folder)
    flat = flattened(built.node)
    try:
        balance = balanced(flat)
    except Unbalanced as error:
        raise CheckError(list(error.faults)) from None
    faults: list[Fault] = []
    if flat.entry is not None:
        balance = with_clocks(flat, balance, shapes_of(flat).get(flat.entry.number))
    links = links_of(flat, balance, faults)
    if faults:
        raise CheckError(faults)
    balance = ahead(balance, links)
    files = files_of(flat, balance, folder)
    if why_not and flat.entry is not None:
        odd += (Fault("what is printed while this is built is not shown: it takes items, and "
                      "prints when they come", built.node.span),)  # fmt: skip
        why_not = ""
    program = _Made(built, flat, balance, files, links, why_not).program()
    ticks = TICKS if TICKS in program.input_names else None
    sources = [n for n, actor in enumerate(flat.actors) if actor.is_source]
    paces = [min((counts[n] for n in sources), default=0)
             for counts in (balance.initially, balance.repeats)]  # fmt: skip
    rounds = Rounds(files, ticks, sum(balance.repeats), paces[0], max(1, paces[1]))
    sinks = {file.name: f"raw:{file.path}" for file in files.written}
    if TEXTS in program.outputs:
        sinks[TEXTS] = "raw:-"
    may_repeat = flat.entry is None
    entry = Entry(ENTRY, *balance.entry, built.node.span)
    # Beside items from outside, files are read to their end.
    read_whole = {file.name: f"raw:{file.path}" for file in files.read}
    return Translation(
        program, rounds.sources(None) if may_repeat else read_whole, sinks, noted(program),
        warnings=(*odd, *(files.leftovers() if may_repeat else ())),
        rounds=rounds.sources if may_repeat else None,
        leftovers=None if may_repeat or flat.changes else entry.leftovers,
    )  # fmt: skip


class _Made:
    """Mutable: queues for channels, and operators between them."""

    def __init__(
        self, built: Built, flat: Flat, balance: Balance, files: Files, links: list[Link],
        told: str,
    ) -> None:  # fmt: skip
        #: What has been printed while the graph was built.
        self.told = told
        self.files = files
        self.built = built
        self.flat = flat
        self.balance = balance
        self.wiring = Wiring(reserved=(EXIT, TEXTS))
        self.queues: dict[int, Queue] = {}
        self.ticks: Queue | None = None
        self.printed: list[Queue] = []
        self.printing: list[Actor] = []
        #: Whether code prints, by its place in memory; held, so that it stays there.
        self.known: dict[int, tuple[Code, bool]] = {}
        self.links = links
        #: What tells those who wait that a sender has fired.
        self.turns = {
            link.box: Queue(self.wiring.fresh("turns"), TURN) for link in links if link.waits
        }

    def program(self) -> Program:
        shapes = shapes_of(self.flat)
        for channel in self.flat.channels:
            shape = shapes[channel.number]
            type_ = QueueType(schema_of_items(shape))
            file = self.files.read_into(channel)
            if channel is self.flat.entry or file is not None:
                name = ENTRY if file is None else file.name
                queue = self.wiring.input(Input(name, type_))
            else:
                queue = Queue(self.wiring.fresh("q"), type_)
            self.queues[channel.number] = queue
        for number, actor in enumerate(self.flat.actors):
            if isinstance(actor.work, Filter) and actor.work.file is None:
                self.filter(actor, actor.work, number)
            elif not isinstance(actor.work, Filter):
                self.dealer(actor, actor.work, shapes)
        outputs: dict[str, Queue] = {}
        if self.flat.exit is not None:
            outputs[EXIT] = self.queues[self.flat.exit.number]
        for file in self.files.written:
            queue = self.queues[file.channel.number]
            passes = self.wiring.add(Selection(Literal(True, BOOLEAN)), queue, name="kept")
            outputs[file.name] = passes
        if self.printed or self.told:
            outputs[TEXTS] = self.texts()
        if not outputs:
            span = self.built.node.span
            raise CheckError(Fault("this program gives nothing and prints nothing", span))
        return self.wiring.program(outputs)

    # --- actors ---

    def filter(self, actor: Actor, node: Filter, number: int) -> None:
        # A sink that prints nothing still sends its firings somewhere: they may fail.
        prints = self.prints(node.code) or not actor.outputs
        pace = None
        if actor.is_source:
            pace = Pace(self.balance.initially[number], self.balance.repeats[number])
        pairs = zip(node.code.parameters, node.arguments, strict=True)
        arguments = tuple(_frozen(slot.shape, value) for slot, value in pairs)
        sent = [link for link in self.links if link.sender == number]
        heard = [link for link in self.links if link.receiver == number]
        given = tuple(self.queues[c.number] for c in actor.outputs)
        given += tuple(self.turns[link.box] for link in sent if link.waits)
        work = Work(
            node.code, arguments, node.taken, node.given, node.rates, node.first, pace, prints,
            tellings_of(self.links, number), tuple(link.hearing for link in heard),
            sum(link.waits for link in heard), sum(link.waits for link in sent),
            path=actor.path, span=actor.span,
        )  # fmt: skip
        if prints:
            given += (Queue(self.wiring.fresh("printed_by"), PRINTED),)
            self.printed.append(given[-1])
            self.printing.append(actor)
        taken = self.taken(actor)
        state = tuple(slot.name for slot in node.code.fields)
        turns = tuple(self.turns[link.box] for link in heard if link.waits)
        boxes = tuple(link.box for link in (*sent, *heard))
        self.wiring.connect(work, (taken, *turns), given, actor.span, state, boxes)

    def prints(self, code: Code) -> bool:
        """Whether anything in a procedure prints; many filters have the same one."""
        if id(code) not in self.known:
            statements = (s for body in code.bodies() for s in statements_in(body))
            is_said = any(isinstance(s, Push) and s.output == PRINTED_OUTPUT for s in statements)
            self.known[id(code)] = (code, is_said)
        return self.known[id(code)][1]

    def taken(self, actor: Actor) -> Queue:
        return self.tick_queue() if actor.is_source else self.queues[actor.inputs[0].number]

    def tick_queue(self) -> Queue:
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
        begun = (self.begun(),) if self.told else ()
        queue = (*begun, *self.printed)[0]
        if len(begun) + len(self.printed) > 1 and self.flat.changes:
            # How often they fire is not known: who is further downstream is first at each time.
            queue = self.wiring.add(Merge(), *begun, *reversed(self.printed), name="printed_by_all")
        elif len(begun) + len(self.printed) > 1:
            order = order_of(self.flat, self.balance, self.printing, self.links)
            first = len(self.printed)  # the number of what is printed before anything is done
            begins = (first,) * len(begun) + order.begins
            interleave = Interleave(begins, order.repeats)
            queue = self.wiring.add(interleave, *self.printed, *begun, name="printed_by_all")
        says = Call("!=", (Column("text", TEXT), Literal("", TEXT)), BOOLEAN)
        return self.wiring.add(Selection(says), queue, name="said")

    def begun(self) -> Queue:
        """What is printed while the graph is built, by a source that fires once.

        Where time tells the order of what is printed, it goes on with the fastest.
        """
        says = Push(Literal(self.told, TEXT), PRINTED_OUTPUT)
        code = Code("Begin", (), (), None, None, (), (says,), ())
        pace = Pace(1, 0)
        if self.flat.changes:
            pace = Pace(max(1, *self.balance.initially), max(self.balance.repeats))
        work = Work(code, (), None, None, Rates(), Rates(), pace, True, path="Begin")
        queue = Queue(self.wiring.fresh("printed_first"), PRINTED)
        self.wiring.connect(work, (self.tick_queue(),), (queue,), None, ())
        return queue


def shapes_of(flat: Flat) -> dict[int, Shape]:
    """What travels on each channel; dealers pass on what they get."""
    shapes: dict[int, Shape] = {}
    for actor in flat.actors:
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
        for actor in flat.actors:
            ends = (*actor.inputs, *actor.outputs)
            known = [shapes[c.number] for c in ends if c.number in shapes]
            if isinstance(actor.work, Weights) and known:
                for channel in ends:
                    missing |= channel.number not in shapes
                    shapes.setdefault(channel.number, known[0])
    return shapes


def noted(program: Program) -> tuple[str, ...]:
    """The operators as the calculus paper writes them, without the code of the filters.

    After them come the matrices of those that are linear.
    """
    lines = [_as_in_the_paper(operator) for operator in program.operators]
    more = () if len(lines) <= _MOST_NOTED else (f"... {len(lines):,} operators in all",)
    return (*lines[:_MOST_NOTED], *more, *_matrices(program))


def _matrices(program: Program) -> Iterator[str]:
    """What linear filters do, each once, however often it stands in the program."""
    works = dict.fromkeys(
        op.function for op in program.operators if isinstance(op.function, Work)
        and 0 < op.function.rates.peek * op.function.rates.push <= _MOST_CELLS
    )  # fmt: skip
    for work in list(works)[:_MOST_LINEAR]:
        linear = None if work.is_identity else linear_of(work)
        if linear is None:
            continue
        yield f"{work.path} is linear: of {work.rates.peek} items it makes"
        for row, offset in zip(linear.matrix, linear.offset, strict=True):
            numbers = ", ".join(f"{number:g}" for number in row)
            yield f"  ({numbers}) * items + {offset:g}"


def _as_in_the_paper(operator: Operator) -> str:
    match operator.function:
        case Work() as work:
            name = f"wrapFilter-{work.code.name}"
        case RoundRobinSplit(weights):
            name = f"wrapRRSplit-{len(weights)}[{', '.join(map(str, weights))}]"
        case RoundRobinJoin(weights):
            name = f"wrapRRJoin-{len(weights)}[{', '.join(map(str, weights))}]"
        case Duplicate():
            name = f"wrapDupSplit-{len(operator.outputs)}"
        case function:
            name = function.name
    kept = [f"${variable}" for variable in operator.variables]
    given = ", ".join((*operator.outputs, *kept))
    return f"({given}) <- {name}({', '.join((*operator.inputs, *kept))});"


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
