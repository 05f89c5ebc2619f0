"""`millstream check`: all errors at once, nothing started."""

from __future__ import annotations

import argparse
from collections import Counter
from typing import TypeVar

from millstream import api
from millstream.calculus.graph import Operator, Program
from millstream.calculus.sheets import Sheet
from millstream.calculus.windows import Window
from millstream.cli.run import named
from millstream.cli.show import print_json, print_warnings
from millstream.errors import Fault, ProgramError, listing
from millstream.plan.costs import Cost, costs
from millstream.plan.state_kept import Kept, operators_behind, state_kept

#: Of so many operators with state nobody wants to read one by one.
_MUCH = 12

Told = TypeVar("Told", Kept, Cost)


def run(arguments: argparse.Namespace) -> int:
    if arguments.format == "text":
        compiled = api.compile(arguments.file, names=named(arguments.set, "--set"))
        print_warnings(compiled.warnings())
        print(_praise(compiled))
        for line in (*_state(compiled.program), *_slow_cells(compiled.program)):
            print(line)
        return 0
    try:
        api.compile(arguments.file, names=named(arguments.set, "--set"))
    except ProgramError as error:
        print_json([_record(fault) for fault in error.faults])
        return 2
    print_json([])
    return 0


def _praise(compiled: api.Compiled) -> str:
    program = compiled.program
    shared = sorted(program.shared_variables())
    nature = (
        f"the order of firing can matter: {', '.join('$' + v for v in shared)} is shared"
        if shared
        else "deterministic"
    )
    return (
        f"ok: {_counted(len(program.inputs), 'input')}, "
        f"{_counted(len(program.operators), 'operator')}, "
        f"{_counted(len(program.outputs), 'output')}; {nature}"
    )


def _state(program: Program) -> list[str]:
    """What state each output keeps and how it is bounded; what outputs share is told once."""
    from millstream.optimiser.optimise import optimise

    program = optimise(program)
    kept, dear = state_kept(program), costs(program)
    keeping, telling = _Shared("keeps"), _Shared("may have to tell anew")
    lines: list[str] = []
    for output in program.outputs:
        behind = operators_behind(program, output)
        mine = [one for one in kept if one.operator.id in behind]
        again, news = keeping.of(output, mine)
        lines.append(f"{output} keeps {'' if mine else 'no state'}".rstrip())
        lines += [*again, *_of_output(news, has_more=bool(again))]
        again, changes = telling.of(output, [c for c in dear if c.operator.id in behind])
        if again or changes:
            lines += [f"{output} may have to tell anew", *again, *_told_anew(changes)]
    return lines


class _Shared:
    """Mutable: what has been told of earlier outputs, by the operators it is of."""

    def __init__(self, verb: str) -> None:
        self.verb = verb
        self.owners: dict[str, str] = {}

    def of(self, output: str, notes: list[Told]) -> tuple[list[str], list[Told]]:
        """A line for each output that has told some of it, and what none has told."""
        before = [self.owners.get(note.operator.id) for note in notes]
        again = Counter(owner for owner in before if owner is not None)
        all_of = Counter(self.owners.values())
        lines = [
            f"  {'' if count == all_of[owner] else f'{count} of '}what {owner} {self.verb}"
            for owner, count in again.items()
        ]
        news = [one for one, owner in zip(notes, before, strict=True) if owner is None]
        self.owners |= {one.operator.id: output for one in news}
        return lines, news


def _slow_cells(program: Program) -> list[str]:
    """The cells of sheets that no loop computes."""
    sheets = [o for o in program.operators if isinstance(o.function, Sheet)]
    return [line for operator in sheets for line in _slow_cells_of(program, operator)]


def _slow_cells_of(program: Program, operator: Operator) -> list[str]:
    from millstream.kernels.sheets.generated import cells_apart

    assert isinstance(operator.function, Sheet)
    types = program.queue_types()
    cells = cells_apart(operator.function, tuple(types[q] for q in operator.inputs))
    title = f"cells outside of the compiled loop   [{_place(operator)}]"
    return [title, *(f"  {one}" for one in cells)] if cells else []


def _of_output(kept: list[Kept], *, has_more: bool) -> list[str]:
    """What an output keeps; if there is much, only the rows of inputs, for all else is theirs."""
    is_much = len(kept) > _MUCH
    lines: list[str] = []
    unsaid: Counter[str] = Counter()
    for one in kept:
        name = one.operator.function.title
        if is_much and not isinstance(one.operator.function, Window):
            unsaid[name] += 1
            continue
        lines.append(f"  {name}: {one.words}; {one.growth.value}   [{_place(one.operator)}]")
    if unsaid:
        said = [f"{count} {name}" for name, count in unsaid.most_common()]
        is_first = not (lines or has_more)
        lines.append(f"  {'' if is_first else 'and '}the state of {listing(said, _MUCH)}")
    return lines


def _told_anew(dear: list[Cost]) -> list[str]:
    """What changes can cost an output."""
    lines = [
        f"  {one.operator.function.title}: {one.words}   [{_place(one.operator)}]"
        for one in dear[:_MUCH]
    ]
    more = [f"  and more, by {_counted(len(dear) - _MUCH, 'operator')}"] if dear[_MUCH:] else []
    return [*lines, *more]


def _place(operator: Operator) -> str:
    return operator.origin.place if operator.origin else operator.id


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _record(fault: Fault) -> dict[str, object]:
    line = column = None
    file = fault.place
    if fault.span is not None:
        file = fault.span.source.name
        line, column = fault.span.source.line_and_column(fault.span.start)
    return {
        "file": file, "line": line, "column": column, "message": fault.message, "hint": fault.hint,
    }  # fmt: skip
