"""What a sheet sends and computes alone is a sheet of its own.

Law: outputs that have no computed cell in common know nothing of each other. Each is sent by the
ticks of its own cells, so a sheet with these alone, and the inputs that they need, sends the same.

    before  (x, y) <- Sheet[by sym, sym; ...; output d = D1; output e = E2](trades, quotes);
    after   (x) <- Sheet[by sym; ...; output d = D1](trades);
            (y) <- Sheet[by sym; ...; output e = E2](quotes);

It is done where one of them then needs fewer inputs, or keeps nothing where the others do: it
waits for nobody, needs no key, and selections can move before it. Those that are alike in this
stay together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

from millstream.calculus.functions import Duplicate
from millstream.calculus.graph import Operator, Program, rewritten
from millstream.calculus.sheets import Address, Fed, Sheet, SheetCell, reached

#: The numbers of the inputs that some outputs need, and whether their cells keep something.
_Kind = tuple[tuple[int, ...], bool]


def split_sheets(program: Program) -> Program:
    """Take apart all sheets that can be; the same program if there are none."""
    taken = {name for op in program.operators for name in op.variables}
    instead: dict[int, list[Operator]] = {}
    for op in program.operators:
        if isinstance(op.function, Sheet) and len(op.outputs) > 1:
            kinds = _kinds(op.function)
            if len(kinds) > 1:
                instead[id(op)] = list(_parts(op, op.function, kinds, taken))
    return rewritten(program, instead)


def refusals(program: Program) -> Iterator[tuple[Operator, str]]:
    """The sheets with several outputs that stay one, and why."""
    for op in program.operators:
        if isinstance(op.function, Sheet) and len(op.outputs) > 1:
            groups = _groups(op.function)
            if len(groups) == 1:
                yield op, "what it sends is made of the same cells"
            elif len(_kinds(op.function)) == 1:
                yield op, "all that it sends needs the same inputs, and keeps something alike"


def _kinds(sheet: Sheet) -> dict[_Kind, list[int]]:
    """The outputs by what they need; those with cells in common together."""
    cells = {c.address: c for c in sheet.cells}
    kinds: defaultdict[_Kind, list[int]] = defaultdict(list)
    for group in _groups(sheet):
        part = _with_outputs(sheet, group, cells)
        fed = sorted({c.rule.input for c in part.cells if isinstance(c.rule, Fed)})
        kinds[tuple(fed), bool(part.remembered)] += group
    return {kind: sorted(outputs) for kind, outputs in kinds.items()}


def _groups(sheet: Sheet) -> list[list[int]]:
    """The numbers of the outputs, those that have a computed cell in common together."""
    cells = {c.address: c for c in sheet.cells}
    groups: list[tuple[set[Address], list[int]]] = []
    for number, columns in enumerate(sheet.outputs):
        needed = reached((c.address for c in columns), cells)
        computed = {a for a in needed if not isinstance(cells[a].rule, Fed)}
        outputs = [number]
        apart = []
        for others, numbers in groups:
            if computed.isdisjoint(others):
                apart.append((others, numbers))
            else:
                computed |= others
                outputs = [*numbers, *outputs]
        groups = [*apart, (computed, outputs)]
    return [sorted(outputs) for _, outputs in groups]


def _with_outputs(sheet: Sheet, outputs: list[int], cells: dict[Address, SheetCell]) -> Sheet:
    shown = tuple(sheet.outputs[n] for n in outputs)
    needed = reached((c.address for columns in shown for c in columns), cells)
    return replace(sheet, cells=tuple(c for c in sheet.cells if c.address in needed), outputs=shown)


def _parts(
    op: Operator, sheet: Sheet, kinds: dict[_Kind, list[int]], taken: set[str]
) -> Iterator[Operator]:
    """The sheets that come instead, and before them the copies that they read."""
    cells = {c.address: c for c in sheet.cells}
    waiting, kept = op.reads[: len(op.inputs)], op.reads[len(op.inputs) :]
    names = dict(zip((c.address for c in sheet.stateful()), kept, strict=True))
    # An input that nobody needs must be read all the same: time goes on with it.
    used = {n for inputs, _ in kinds for n in inputs}
    idle = tuple(n for n in range(len(op.inputs)) if n not in used)
    readers: dict[int, list[str]] = {n: [] for n in range(len(op.inputs))}
    parts = []
    given: set[str] = set()

    def own(name: str) -> str:
        """A variable of a part: the first that wants it has that of the whole."""
        wanted, number = name, 1
        while wanted in given or (wanted != name and wanted in taken):
            number += 1
            wanted = f"{name} {number}"
        given.add(wanted)
        return wanted

    for place, ((inputs, _), outputs) in enumerate(kinds.items()):
        read = tuple(sorted((*inputs, *idle))) if place == 0 else inputs
        part = _renumbered(_with_outputs(sheet, outputs, cells), read)
        variables = tuple(own(waiting[n]) for n in read)
        variables += tuple(own(names[c.address]) for c in part.stateful())
        for n in read:
            readers[n].append(f"{op.inputs[n]}.{op.outputs[outputs[0]]}")
        read_from = tuple(readers[n][-1] for n in read)
        sent = tuple(op.outputs[n] for n in outputs)
        parts.append(Operator(part, read_from, sent, variables, variables, op.origin))
    alone = {queues[0]: op.inputs[n] for n, queues in readers.items() if len(queues) == 1}
    for n, queues in readers.items():
        if len(queues) > 1:
            yield Operator(Duplicate(), (op.inputs[n],), tuple(queues), origin=op.origin)
    for part_ in parts:
        yield replace(part_, inputs=tuple(alone.get(q, q) for q in part_.inputs))


def _renumbered(sheet: Sheet, inputs: tuple[int, ...]) -> Sheet:
    """The sheet with some of its inputs only, whose numbers change."""
    numbers = {old: new for new, old in enumerate(inputs)}
    cells = tuple(
        replace(c, rule=replace(c.rule, input=numbers[c.rule.input]))
        if isinstance(c.rule, Fed)
        else c
        for c in sheet.cells
    )
    keys = tuple(sheet.keys[n] for n in inputs) if sheet.keys else ()
    return replace(sheet, cells=cells, keys=keys)
