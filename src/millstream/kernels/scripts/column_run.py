"""A script on columns of records, statement by statement, for all rows at once that come to it.

Loops go round by round, each for the rows that are still in them. Rows in which something is not
plain are noted, to be run again from the beginning by the meaning of the script.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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
    Var,
    When,
)
from millstream.kernels.records.between import column_of, mixed
from millstream.kernels.records.column import Column, NotOnColumns, either
from millstream.kernels.records.columns import Columns
from millstream.kernels.scripts.by_record import NOTHING, RecordFunction, changed_in
from millstream.kernels.scripts.counting_loops import Counting
from millstream.kernels.scripts.rounds_at_once import counted_at_once, each_at_once
from millstream.plan.batch import Array, Vector
from millstream.values.records.running import many_values
from millstream.values.records.types import BOOL, MapOf, resolved


@dataclass(frozen=True, slots=True)
class Emitted:
    """The rows that emit to a table, where in columns what they emit lies, and the columns."""

    rows: Array
    places: Array
    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class Recorded:
    """What was emitted record by record: the row of each emit, and what is sent."""

    rows: Array
    vectors: tuple[Vector, ...]


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

    def __init__(
        self, functions: Mapping[int, Declare], parts: Mapping[int, RecordFunction] | None,
        can_be_sent: Callable[[int], bool], counting: Counting,
    ) -> None:  # fmt: skip
        self.columns: Columns
        self.counting = counting
        self.functions = functions
        #: What is done record by record, by its first statement; None while that is found out.
        self.parts = parts
        self.refused: dict[int, NotOnColumns] = {}
        self.can_be_sent = can_be_sent
        self.emits: dict[int, list[Emitted | Recorded]] = {}
        #: The rows that the columns are of, None for all; and those of others that need care.
        self.rows: Array | None = None
        self.left_careful: Array | None = None
        self.every: Array | None = None
        #: Of each call that is under way: the function, and what was returned in which rows.
        self.calls: list[tuple[int, list[tuple[Array, Column]]]] = []
        self.around: list[_Around] = []
        #: Inside of how many statements that are done as a whole, or not at all.
        self.wholes = 0

    def run(self, block: Block, *, can_leave_out: bool) -> None:
        """A whole script; what has come to its end is left out, if that is worth it."""
        if self.parts is None or not can_leave_out:
            self.body(block)
            return
        for statements in self.stretches(block):
            self.body(statements)
            columns = self.columns
            going = columns.active & ~columns.careful
            if 2 * np.count_nonzero(going) < columns.count:
                self.leave_out(np.flatnonzero(going))

    def stretches(self, block: Block) -> Iterator[Block]:
        """Statement by statement, but what is done record by record as one."""
        at = 0
        while at < len(block):
            part = (self.parts or {}).get(id(block[at]))
            size = 1 if part is None else len(part.statements)
            yield block[at : at + size]
            at += size

    def leave_out(self, rows: Array) -> None:
        self.left_careful = self.careful()
        self.rows = self.numbers(rows)
        self.columns = self.columns.of_rows(rows)

    def emitting(self) -> Array:
        """The rows that come to an emit: mostly all."""
        columns = self.columns
        if columns.careful.any() or not columns.active.all():
            return np.flatnonzero(columns.active & ~columns.careful)
        if self.every is None or len(self.every) != columns.count:
            self.every = np.arange(columns.count)
        return self.every

    def careful(self) -> Array:
        """The rows of the batch that need care."""
        if self.rows is None or self.left_careful is None:
            return self.columns.careful
        careful = self.left_careful
        careful[self.rows[self.columns.careful]] = True
        return careful

    def numbers(self, rows: Array) -> Array:
        """Rows of the columns as rows of the batch."""
        return rows if self.rows is None else self.rows[rows]

    def body(self, block: Block) -> None:
        if self.parts is None and not self.wholes:
            for statement in block:
                self.attempt(statement)
            return
        done = 0
        for at, statement in enumerate(block):
            part = (self.parts or {}).get(id(statement))
            if part is not None:
                self.one_by_one(part)
                done = at + len(part.statements)
            elif at >= done:
                self.do(statement)

    def attempt(self, statement: Statement) -> None:
        """Find out whether a statement can be done on columns."""
        columns = self.columns
        before = columns.active, list(self.around), list(self.calls)
        try:
            self.do(statement)
        except NotOnColumns as reason:
            self.refused[id(statement)] = reason
            columns.active, self.around, self.calls = before
            self.wholes = 0
            nowhere = np.zeros(0, np.int64)
            for var in changed_in(statement):
                columns.variables[var.number] = column_of((), var.type, nowhere, 0)[0]

    @many_values()
    def one_by_one(self, part: RecordFunction) -> None:
        """Statements that are done record by record, in all rows that come to them."""
        columns = self.columns
        columns.active = columns.active & ~columns.careful
        rows = np.flatnonzero(columns.active)
        if not len(rows):
            return
        numbers = rows.tolist()
        made, careful = part(numbers, [self.listed(var, rows) for var in part.inputs])
        if careful:
            columns.careful[careful] = True
        kept = made
        if None in made:
            stays = np.array([outputs is not None for outputs in made])
            kept, rows = [outputs for outputs in made if outputs is not None], rows[stays]
        columns.active = np.zeros(columns.count, np.bool_)
        columns.active[rows] = True
        for number in part.lists.emitted:
            emitting, vectors = part.lists.taken(number)
            if len(emitting):
                self.emits.setdefault(number, []).append(Recorded(self.numbers(emitting), vectors))
        for var, values in zip(part.outputs, zip(*kept, strict=True), strict=False):
            self.assign(var.number, self.unlisted(var, values, rows))

    def listed(self, var: Var, rows: Array) -> list[Any]:
        """The values of a variable in some rows."""
        columns = self.columns
        column = columns.variables.get(var.number)
        if column is None and var.number == columns.record_number:
            column = Column(columns.record)
        if column is None:
            return [NOTHING] * len(rows)
        values = columns.values.of(column, var.type, rows)
        if column.bad is not None and column.bad[rows].any():
            for place in np.flatnonzero(column.bad[rows]).tolist():
                values[place] = NOTHING
        return values

    def unlisted(self, var: Var, values: Sequence[Any], rows: Array) -> Column:
        """Values of some rows as a column; those that columns cannot hold need care."""
        columns = self.columns
        where, bad = np.full(columns.count, -1), None
        if NOTHING in values:
            has_value = np.array([value is not NOTHING for value in values])
            bad = np.zeros(columns.count, np.bool_)
            bad[rows[~has_value]] = True
            values, rows = [value for value in values if value is not NOTHING], rows[has_value]
        where[rows] = np.arange(len(rows))
        column, odd = column_of(values, var.type, where, columns.count)
        if odd is not None:
            columns.look_closer(odd)
        return Column(column.values, bad)

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
            case Choose() | Loop() | When():
                self.wholes += 1
                self.whole(statement)
                self.wholes -= 1
            case Emit():
                self.emit(statement)
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

    def whole(self, statement: Choose | Loop | When) -> None:
        match statement:
            case Choose():
                self.choose(statement)
            case Loop():
                self.loop(statement)
            case When((Quantifier(word) as quantifier,)) if word != "all":
                self.when(statement, quantifier)
            case _:
                raise NotOnColumns("`when` with several names, or with `all`,")

    def call(self, node: Apply) -> Column:
        """A function is done for all rows at once, as if it stood there."""
        columns = self.columns
        target = node.function.var.number if isinstance(node.function, Get) else -1
        declared = self.functions.get(target)
        if declared is None or any(number == target for number, _ in self.calls):
            raise NotOnColumns("recursion" if declared else "a function that is chosen")
        assert isinstance(declared.value, Lambda)
        function = declared.value.function
        given = [columns.value(argument) for argument in node.arguments]
        bad, before = either(*(g.bad for g in given)), columns.active
        if bad is not None:
            columns.active = before & ~bad
        for parameter, column in zip(function.parameters, given, strict=True):
            columns.variables[parameter.number] = column
        self.calls.append((target, []))
        around, self.around = self.around, []
        self.wholes += 1
        self.body(function.body)
        self.wholes -= 1
        self.around = around
        _, returned = self.calls.pop()
        # Rows that come to the end without a return have no value.
        bad = either(bad, columns.active if columns.active.any() else None)
        columns.active = before
        if not returned:
            raise NotOnColumns("a function that returns nothing")
        _, result = returned[0]
        for rows, column in returned[1:]:
            result = mixed(rows, column, result)
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
            columns.variables[number] = mixed(columns.active, column, old)

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
        if counted_at_once(self, loop):
            return
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

    def once(self, body: Block) -> None:
        """One round of a loop for all rows; who leaves it by `continue` is through."""
        nothing = np.zeros(self.columns.count, np.bool_)
        self.around.append(_Around(nothing.copy(), nothing))
        self.body(body)
        self.around.pop()

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
        if quantifier.word == "each" and each_at_once(self, when, quantifier.var, most):
            return
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
        if not self.can_be_sent(emit.table):
            raise NotOnColumns("an emit of what has parts")
        columns = self.columns
        nodes = [*emit.indexes, emit.value, *([] if emit.weight is None else [emit.weight])]
        sent = tuple(self.certain(columns.to_send(node)) for node in nodes)
        rows = self.emitting()
        self.emits.setdefault(emit.table, []).append(Emitted(self.numbers(rows), rows, sent))
