"""Statements that columns cannot be asked, done record by record between those that they can.

Such statements become one function, which is given the variables that they read, and gives those
that are read afterwards. A record in which something has no value, or that goes round very often,
is noted, to be run again from the beginning by the meaning of the script.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from millstream.calculus.scripts import (
    Assign,
    Block,
    Choose,
    Const,
    Declare,
    Emit,
    Function,
    Get,
    If,
    Intrinsic,
    Lambda,
    Logic,
    Operate,
    Place,
    Quantifier,
    Scope,
    Script,
    Statement,
    Var,
    nodes_in,
)
from millstream.kernels.records.column import NotOnColumns
from millstream.kernels.scripts.counting_loops import Counting
from millstream.kernels.scripts.generate import Generated, Writer
from millstream.kernels.scripts.runtime import UNDEFINED, Running
from millstream.kernels.scripts.sending import Lists
from millstream.values.records.running import Rejected, deep_calls
from millstream.values.records.types import FunctionOf, resolved

#: What stands for a variable without a value.
NOTHING = object()
#: A record that goes round more often in one part is run from the beginning, with all its rounds.
_MOST_ROUNDS = 20_000


class RecordFunction:
    """Mutable: statements as a function of the variables they read; it gathers what they emit."""

    def __init__(
        self, script: Script, told_tables: Sequence[int], statements: Block,
        functions: Mapping[int, Declare],
    ) -> None:  # fmt: skip
        self.statements = statements
        called = _called(statements, functions)
        inside = list(nodes_in((statements, *called)))
        if any(isinstance(n, Intrinsic) and n.name == "row" for n in inside):
            raise NotOnColumns("a row as a whole")
        own = {id(n) for n in nodes_in(statements)}
        later = {v.number for n in nodes_in(script.body) if id(n) not in own for v in _used(n)}
        declared = {v.number for n in inside for v in _declared(n)}
        changed = {v.number for n in inside for v in _changed(n)}
        known = {v.number: v for n in inside for v in (*_used(n), *_declared(n)) if v.level >= 0}
        self.inputs = tuple(v for v in known.values() if v.number not in declared)
        self.outputs = tuple(
            v for v in known.values()
            if v.number in changed & later and not isinstance(resolved(v.type), FunctionOf)
        )  # fmt: skip
        if any(isinstance(resolved(v.type), FunctionOf) for v in self.inputs):
            raise NotOnColumns("a function that is chosen")
        made = _PartWriter(script).part(self, called)
        self.lists = Lists(script, told_tables)
        names = made.names | self.lists.names() | {"NOTHING": NOTHING}
        self.running = Running(made.text, made.places, names, {})

    def __call__(
        self, rows: list[int], given: Sequence[Sequence[Any]]
    ) -> tuple[list[Any], list[int]]:
        """Of each row its outputs, None if it has come to an end; and rows that need care."""
        running, run = self.running, self.running.function
        made: list[Any] = []
        careful: list[int] = []
        with deep_calls():
            for arguments in zip(rows, *given, strict=True):
                running.begin(_MOST_ROUNDS)
                try:
                    made.append(run(*arguments))
                except (Rejected, *UNDEFINED):
                    careful.append(arguments[0])
                    made.append(None)
        return made, careful


class _PartWriter(Writer):
    """Mutable: the lines so far."""

    def __init__(self, script: Script) -> None:
        super().__init__(script, (), by_table=True)
        self.counting = Counting(script)

    def part(self, part: RecordFunction, functions: Sequence[Declare]) -> Generated:
        parameters = "".join(f", {self.var(v)}" for v in part.inputs)
        self.begin(f"def run(r{parameters}):")
        for var in part.inputs:
            self.take(var)
        for declare in functions:
            self.statement(declare)
        self.block(part.statements)
        self.line(f"return ({''.join(f'{self.given(v)}, ' for v in part.outputs)})")
        return self.done()

    def take(self, var: Var) -> None:
        name = self.var(var)
        own = f"{name} = {self.kept(var, name)}" if var.number in self.held else "pass"
        if var.number in self.sure:
            self.line(own)
            return
        self.line(f"if {name} is NOTHING: del {name}")
        self.line(f"else: {own}")

    def given(self, var: Var) -> str:
        """The name of what is given of a variable, which may have no value."""
        name = self.var(var)
        if var.number in self.sure:
            return name
        given = self.temporary()
        self.line("try:")
        self.line(f"  {given} = {name}")
        self.line("except NameError:")
        self.line(f"  {given} = NOTHING")
        return given


def _used(node: Any) -> Iterator[Var]:
    """The variables that a node itself reads or changes."""
    match node:
        case Get(var) | Place(var):
            yield var


def _declared(node: Any) -> Iterator[Var]:
    match node:
        case Declare(var) | Quantifier(_, var):
            yield var
        case Choose(tag):
            yield tag
        case Function():
            yield from node.parameters


def _changed(node: Any) -> Iterator[Var]:
    match node:
        case Declare(var) | Place(var):
            yield var


def changed_in(statement: Statement) -> tuple[Var, ...]:
    """The variables that a statement may give values, but functions."""
    variables = (v for n in nodes_in(statement) for v in _changed(n))
    return tuple(v for v in variables if not isinstance(resolved(v.type), FunctionOf))


def _called(statements: Block, functions: Mapping[int, Declare]) -> tuple[Declare, ...]:
    """Functions that are declared before some statements, which mention them, or those they do."""
    own = {n.var.number for n in nodes_in(statements) if isinstance(n, Declare)}
    numbers: set[int] = set()
    waiting: list[Any] = [statements]
    while waiting:
        for node in nodes_in(waiting.pop()):
            number = node.var.number if isinstance(node, Get) else -1
            if number in functions and number not in numbers | own:
                numbers.add(number)
                waiting.append(functions[number])
    return tuple(d for number, d in functions.items() if number in numbers and d.var.level == 0)


# --- which statements are done together ------------------------------------------------


def parts_of(
    script: Script,
    told_tables: Sequence[int],
    refused: Collection[int],
    functions: Mapping[int, Declare],
) -> dict[int, RecordFunction]:
    """Parts by the first of their statements; all that columns refuse are in one."""
    refused = {*refused, *_wholly(script.body, refused)}
    parts: dict[int, RecordFunction] = {}
    for block in _blocks(script.body, refused):
        for together in _together(block, refused):
            parts[id(together[0])] = RecordFunction(script, told_tables, together, functions)
    return parts


def _wholly(block: Block, refused: Collection[int]) -> Iterator[int]:
    """Statements of which nothing is left that columns would be worth it for."""
    for statement in block:
        inner: Block
        match statement:
            case Scope(inner):
                condition: Any = ()
            case If(condition, then, otherwise):
                inner = (*then, *otherwise)
            case _:
                continue
        within = {*refused, *_wholly(inner, refused)}
        yield from within - {*refused}
        are_done = all(id(s) in within or _is_cheap(s) for s in inner)
        if are_done and any(id(s) in within for s in inner) and _are_cheap(condition):
            yield id(statement)


def _blocks(block: Block, refused: Collection[int]) -> Iterator[Block]:
    """A block, and those inside of it whose statements are done one after the other."""
    yield block
    for statement in block:
        match statement:
            case _ if id(statement) in refused:
                continue
            case If(_, then, otherwise):
                yield from _blocks(then, refused)
                yield from _blocks(otherwise, refused)
            case Scope(body):
                yield from _blocks(body, refused)


def _together(block: Block, refused: Collection[int]) -> Iterator[Block]:
    """Statements that are refused, with what is cheap between them."""
    begun, end = None, 0
    for at, statement in enumerate(block):
        if id(statement) in refused:
            begun, end = at if begun is None else begun, at + 1
        elif begun is not None and not _is_cheap(statement):
            yield block[begun:end]
            begun = None
    if begun is not None:
        yield block[begun:end]


def _is_cheap(statement: Statement) -> bool:
    """Whether doing a statement in every record costs no more than handing its variable over."""
    match statement:
        case Declare(_, Lambda()) | Declare(_, None):
            return True
        case Declare(_, value) | Assign(_, value):
            return _are_cheap(value)
        case Emit(_, indexes, value, weight):
            return _are_cheap((indexes, value, weight))
        case _:
            return False


def _are_cheap(node: Any) -> bool:
    return all(
        isinstance(n, _CHEAP) or (isinstance(n, Intrinsic) and n.name == "len")
        for n in nodes_in(node)
    )


_CHEAP = (Const, Get, Operate, Logic)
