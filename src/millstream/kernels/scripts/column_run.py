"""A script on columns of records, statement by statement, for all rows at once that come to it.

Loops go round by round, each for the rows that are still in them. Rows in which something is not
plain are noted, to be run again from the beginning by the meaning of the script.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from millstream.calculus.scripts import (
    Apply,
    Assert,
    Assign,
    Block,
    Choose,
    Declare,
    Do,
    Emit,
    Expression,
    Function,
    Get,
    If,
    Lambda,
    Leave,
    Loop,
    Operate,
    Quantifier,
    Return,
    Scope,
    Statement,
    When,
)
from millstream.kernels.records.column import Column, NotOnColumns, Parts, Pieces, either
from millstream.kernels.records.columns import Columns
from millstream.kernels.records.slices import Slices
from millstream.plan.batch import Array
from millstream.values.records.types import BOOL, MapOf, resolved

#: The rows that emit to a table, and the columns of what they emit.
Emitted = tuple[Array, tuple[Column, ...]]
#: After so many rounds of a loop the rows that are still in it are run one by one; after fewer
#: already, if they are less than one in so many.
_MOST_ROUNDS, _FEW_ROUNDS, _FEW = 512, 32, 32


@dataclass(slots=True)
class _Around:
    """Mutable: a loop or a choice under way, and the rows that left it or this round of it."""

    ended: Array
    skipped: Array
    is_loop: bool = True


class ColumnsRun:
    """Mutable: one batch on its way through a script."""

    def __init__(self, functions: Mapping[int, Function]) -> None:
        self.columns: Columns
        self.functions = functions
        self.emits: dict[int, list[Emitted]] = {}
        #: Of each call that is under way: the function, and what was returned in which rows.
        self.calls: list[tuple[int, list[tuple[Array, Column]]]] = []
        self.around: list[_Around] = []

    def body(self, block: Block) -> None:
        for statement in block:
            self.do(statement)

    def do(self, statement: Statement) -> None:
        columns = self.columns
        match statement:
            case Declare(_, Lambda()):
                pass  # it is called by the number of its variable
            case Declare(var, value):
                if value is None:
                    columns.variables.pop(var.number, None)
                else:
                    self.assign(var.number, columns.value(value))
            case Assign(target, value) if not target.path:
                self.assign(target.var.number, self.certain(columns.value(value)))
            case Assert(condition, _):
                holds = self.certain(columns.value(condition)).values
                assert isinstance(holds, np.ndarray)
                columns.look_closer(~holds)
            case Do(value):
                self.certain(columns.value(value))
            case If(condition, then, otherwise):
                self.branch(columns.value(condition), then, otherwise)
            case Choose():
                self.choose(statement)
            case Emit():
                self.emit(statement)
            case Loop():
                self.loop(statement)
            case When((Quantifier(word) as quantifier,)) if word != "all":
                self.when(statement, quantifier)
            case Leave(word):
                self.leave(word)
            case Scope(inner):
                self.body(inner)
            case Return(value):
                if value is not None:
                    self.calls[-1][1].append((columns.active, columns.value(value)))
                columns.active = np.zeros(columns.count, np.bool_)
            case _:
                raise NotOnColumns(f"`{type(statement).__name__.lower()}`")

    def call(self, node: Apply) -> Column:
        """A function is done for all rows at once, as if it stood there."""
        columns = self.columns
        target = node.function.var.number if isinstance(node.function, Get) else -1
        function = self.functions.get(target)
        if function is None or any(number == target for number, _ in self.calls):
            raise NotOnColumns("recursion" if function else "a function that is chosen")
        given = [columns.value(argument) for argument in node.arguments]
        bad, before = either(*(g.bad for g in given)), columns.active
        if bad is not None:
            columns.active = before & ~bad
        for parameter, column in zip(function.parameters, given, strict=True):
            columns.variables[parameter.number] = column
        self.calls.append((target, []))
        around, self.around = self.around, []
        self.body(function.body)
        self.around = around
        _, returned = self.calls.pop()
        # Rows that come to the end without a return have no value.
        bad = either(bad, columns.active if columns.active.any() else None)
        columns.active = before
        if not returned:
            raise NotOnColumns("a function that returns nothing")
        _, result = returned[0]
        for rows, column in returned[1:]:
            result = _mixed(rows, column, result)
        return Column(result.values, either(result.bad, bad))

    def certain(self, column: Column) -> Column:
        """Where there is no value, the record has to be rejected, with a reason."""
        if column.bad is not None:
            self.columns.look_closer(column.bad)
        return column

    def assign(self, number: int, column: Column) -> None:
        columns = self.columns
        old = columns.variables.get(number)
        if old is None or columns.active.all():
            bad = column.bad
            if not columns.active.all():
                bad = either(bad, ~columns.active)
            columns.variables[number] = Column(column.values, bad)
        else:
            columns.variables[number] = _mixed(columns.active, column, old)

    def branch(self, condition: Column, then: Block, otherwise: Block) -> None:
        columns = self.columns
        holds = self.certain(condition).values
        assert isinstance(holds, np.ndarray)
        before = columns.active
        left = np.zeros(columns.count, np.bool_)
        for block, chosen in ((then, holds), (otherwise, ~holds)):
            columns.active = before & chosen & ~columns.careful
            if block and self.is_worth_it():
                self.body(block)
            left |= columns.active
        columns.active = left

    def is_worth_it(self) -> bool:
        """Whether any rows are left; on none at all everything is tried."""
        return not self.columns.count or bool(self.columns.active.any())

    def loop(self, loop: Loop) -> None:
        """Round by round, each for all rows that are still in the loop."""
        columns = self.columns
        nothing = np.zeros(columns.count, np.bool_)
        around = _Around(nothing.copy(), nothing)
        self.around.append(around)
        rounds = 0
        while True:
            around.skipped = nothing.copy()
            if loop.tests_first:
                self.test(loop, around)
            columns.active = columns.active & ~columns.careful
            if not self.is_worth_it() or self.is_endless(rounds):
                break
            self.body(loop.body)
            columns.active = columns.active | around.skipped
            self.body(loop.after)
            if not loop.tests_first:
                self.test(loop, around)
            rounds += 1
            if not columns.count:
                break
        self.around.pop()
        columns.active = around.ended

    def test(self, loop: Loop, around: _Around) -> None:
        columns = self.columns
        if loop.condition is None or not self.is_worth_it():
            return
        holds = self.certain(columns.value(loop.condition)).values
        assert isinstance(holds, np.ndarray)
        around.ended |= columns.active & ~holds
        columns.active = columns.active & holds

    def is_endless(self, rounds: int) -> bool:
        """Whether the rows that are left are too few, or have gone round too often."""
        columns = self.columns
        if rounds < _FEW_ROUNDS:
            return False
        few = np.count_nonzero(columns.active) * _FEW < columns.count
        if few or rounds >= _MOST_ROUNDS:
            columns.look_closer(columns.active)
            return True
        return False

    def when(self, when: When, quantifier: Quantifier) -> None:
        """For each index in turn, in all rows that have so many."""
        columns = self.columns
        most = np.zeros(columns.count, np.int64)
        for node in quantifier.ranges:
            if isinstance(resolved(node.type), MapOf):
                raise NotOnColumns("the keys of a map")
            base = columns.value(node)
            lengths = columns.length_of(base)
            most = np.maximum(most, lengths if base.bad is None else lengths * ~base.bad)
        going, left = columns.active, np.zeros(columns.count, np.bool_)
        rounds = 0
        while True:
            left |= going & (most <= rounds)
            going = going & (most > rounds) & ~columns.careful
            columns.active = going
            if not self.is_worth_it() or self.is_endless(rounds):
                break
            place = Column(np.full(columns.count, rounds))
            columns.variables[quantifier.var.number] = place
            condition = columns.value(when.condition)
            assert isinstance(condition.values, np.ndarray)
            holds = condition.values if condition.bad is None else condition.values & ~condition.bad
            columns.active = going & holds
            if self.is_worth_it():
                self.body(when.body)
            if quantifier.word == "some":
                left |= columns.active
                going = going & ~holds
            else:
                going = columns.active | (going & ~holds)
            rounds += 1
            if not columns.count:
                break
        columns.variables.pop(quantifier.var.number, None)
        columns.active = left

    def leave(self, word: str) -> None:
        columns = self.columns
        around = next((a for a in reversed(self.around) if a.is_loop or word == "break"), None)
        if around is None:
            raise NotOnColumns(f"`{word}` here")
        left = around.ended if word == "break" else around.skipped
        left |= columns.active
        columns.active = np.zeros(columns.count, np.bool_)

    def choose(self, choice: Choose) -> None:
        """Case by case, each for the rows that no earlier one has taken."""
        columns = self.columns
        columns.variables[choice.tag.number] = self.certain(columns.value(choice.value))
        going = columns.active & ~columns.careful
        left = np.zeros(columns.count, np.bool_)
        around = _Around(left.copy(), left.copy(), is_loop=False)
        self.around.append(around)
        for labels, block in (*choice.cases, ((), choice.otherwise)):
            before = going
            for label in labels:
                columns.active = going
                going = going & ~self.is_label(choice, label)
            columns.active = (before & ~going if labels else going) & ~columns.careful
            if block and self.is_worth_it():
                self.body(block)
            left |= columns.active
        self.around.pop()
        columns.active = left | around.ended

    def is_label(self, choice: Choose, label: Expression) -> Array:
        """The rows whose tag equals a label; one without a value equals nothing."""
        equal = self.columns.value(Operate("==", (Get(choice.tag), label), BOOL))
        assert isinstance(equal.values, np.ndarray)
        return equal.values if equal.bad is None else equal.values & ~equal.bad

    def emit(self, emit: Emit) -> None:
        columns = self.columns
        nodes = [*emit.indexes, emit.value, *([] if emit.weight is None else [emit.weight])]
        sent = tuple(self.certain(columns.to_send(node)) for node in nodes)
        if any(isinstance(c.values, Pieces) for c in sent):
            raise NotOnColumns("an emit of an array")
        rows = np.flatnonzero(columns.active & ~columns.careful)
        self.emits.setdefault(emit.table, []).append((rows, sent))


def _mixed(chosen: Array, new: Column, old: Column) -> Column:
    """New values in some rows, and the old ones in all others."""
    bad: Array | None = None
    if new.bad is not None or old.bad is not None:
        none = np.zeros(len(chosen), np.bool_)
        bad = np.where(chosen, none if new.bad is None else new.bad,
                       none if old.bad is None else old.bad)  # fmt: skip
    match new.plain().values, old.plain().values:
        case np.ndarray() as a, np.ndarray() as b:
            return Column(np.where(chosen, a, b), bad)
        case Slices() as a, Slices() as b:
            return Column(_joined(chosen, a, b), bad)
        case Parts(a), Parts(b):
            pairs = zip(a, b, strict=True)
            return Column(Parts(tuple(_mixed(chosen, x, y) for x, y in pairs)), bad)
    raise NotOnColumns("an array that is assigned in some records only")


def _joined(chosen: Array, a: Slices, b: Slices) -> Slices:
    """Slices of two arrays of bytes, as slices of both of them together."""
    shift = 0 if a.data is b.data else len(a.data)
    data = a.data if a.data is b.data else np.concatenate([a.data, b.data])
    return Slices(
        data, np.where(chosen, a.starts, b.starts + shift), np.where(chosen, a.ends, b.ends + shift)
    )
