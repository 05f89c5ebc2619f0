"""What scripts mean: statement by statement, with a frame for every call.

A frame has the variables that have a value; one that is not there has none. Nothing is
changed in place: a new value of a part is a new value of the whole.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from millstream.calculus.scripts import (
    UNDEFINED_COUNT,
    UNDEFINED_REASONS,
    Assert,
    Assign,
    Block,
    Choose,
    Declare,
    Do,
    Emit,
    Expression,
    If,
    Leave,
    Loop,
    Place,
    Result,
    Return,
    Scope,
    Script,
    Statement,
    Undefine,
    Var,
    When,
)
from millstream.meaning.script_values import Endless, Frame, Left, Values
from millstream.source import Span
from millstream.values.records import operators
from millstream.values.records.running import (
    ENDLESS_CALLS,
    ENDLESS_LOOP,
    MOST_ROUNDS,
    Emitted,
    Rejected,
    Runtime,
    deep_calls,
    without_value,
)
from millstream.values.records.types import MapOf, resolved
from millstream.values.undefined import Undefined


class Machine(Values):
    """Mutable: runs a script on one record after the other."""

    def __init__(self, script: Script) -> None:
        super().__init__()
        self.script = script
        self.runtime = Runtime(script.timezone, script.folder)
        self.statics: dict[int, Any] = {}
        self.emits: list[Emitted] = []
        self.row: Mapping[str, Any] = {}
        self.rounds = self.calls = self.calls_left = 0
        self.passed_over: list[str] = []
        for statement in script.statics:
            assert isinstance(statement, Declare)
            self.begin()
            self.do(statement, Frame(level=-1))

    def begin(self) -> None:
        self.emits, self.passed_over = [], []
        self.rounds, self.calls_left, self.calls = MOST_ROUNDS, MOST_ROUNDS, 0

    def run(self, record: bytes, row: Mapping[str, Any], seed: int) -> list[Emitted]:
        """What one record emits, or `Rejected`."""
        self.begin()
        self.row = row
        self.runtime.seed(seed)
        frame = Frame({self.script.record.number: record})
        # The script itself may be left by a `return`.
        with deep_calls(), contextlib.suppress(Left):
            self.body(self.script.body, frame)
        return self.emits + self.counted()

    def counted(self) -> list[Emitted]:
        """What is emitted for statements that were passed over."""
        count = self.script.table_named(UNDEFINED_COUNT)
        reasons = self.script.table_named(UNDEFINED_REASONS)
        if not self.passed_over or count is None or reasons is None:
            return []
        passed_over: list[Emitted] = [(count, (), 1, None)]
        return passed_over + [(reasons, (reason,), 1, None) for reason in self.passed_over]

    # --- variables ---

    def frame_of(self, var: Var, frame: Frame) -> dict[int, Any]:
        if var.level < 0:
            return self.statics
        around: Frame | None = frame
        while around is not None and around.level > var.level:
            around = around.outer
        assert around is not None, var
        return around.values

    def get(self, var: Var, frame: Frame) -> Any:
        values = self.frame_of(var, frame)
        if var.number not in values:
            raise Undefined(without_value(var.name))
        return values[var.number]

    # --- statements ---

    def body(self, block: Block, frame: Frame) -> None:
        for statement in block:
            self.do(statement, frame)

    def do(self, statement: Statement, frame: Frame) -> None:
        try:
            self.done(statement, frame)
        except Endless:
            raise Rejected(place_of(statement), ENDLESS_CALLS) from None
        except Undefined as undefined:
            if not self.script.passes_over:
                raise Rejected(place_of(statement), undefined.reason) from None
            self.passed_over.append(f"{place_of(statement)}: {undefined.reason}")
            if isinstance(statement, Assign):
                var = statement.target.var
                self.frame_of(var, frame).pop(var.number, None)

    def done(self, statement: Statement, frame: Frame) -> None:
        match statement:
            case Declare(var, value):
                self.declare(var, value, frame)
            case Assign(target, value):
                given = self.value(value, frame)
                self.assign(target, given, frame)
            case Undefine(target, is_field):
                self.undefine(target, frame, is_field=is_field)
            case Do(value):
                self.value(value, frame)
            case Assert(condition, message):
                if not self.value(condition, frame):
                    said = "" if message is None else f": {self.value(message, frame)}"
                    raise Rejected(place_of(statement), f"assertion failed{said}")
            case If(condition, then, otherwise):
                self.body(then if self.value(condition, frame) else otherwise, frame)
            case Loop():
                self.loop(statement, frame)
            case Leave(word):
                raise Left(word)
            case Choose():
                self.choose(statement, frame)
            case When():
                self.when(statement, frame)
            case Emit():
                self.emit(statement, frame)
            case Return(value):
                raise Left("return", self.returned(value, frame))
            case Result(value):
                raise Left("result", self.value(value, frame))
            case Scope(inner):
                self.body(inner, frame)

    def declare(self, var: Var, value: Expression | None, frame: Frame) -> None:
        values = self.frame_of(var, frame)
        values.pop(var.number, None)
        if value is None:
            return
        try:
            values[var.number] = self.value(value, frame)
        except Undefined:
            values.pop(var.number, None)

    def returned(self, value: Expression | None, frame: Frame) -> Any:
        """What a function gives; that it has no value is told where it was called."""
        if value is None:
            return None
        try:
            return self.value(value, frame)
        except Undefined as undefined:
            return undefined

    def assign(self, place: Place, value: Any, frame: Frame) -> None:
        values = self.frame_of(place.var, frame)
        if place.path:
            value = self.changed(self.get(place.var, frame), place, 0, value, frame)
        values[place.var.number] = value

    def changed(self, held: Any, place: Place, at: int, value: Any, frame: Frame) -> Any:
        """What is held, with another value at the end of a path."""
        if at == len(place.path):
            return value
        step = place.path[at]
        inside = resolved(step.inside)
        if step.position is not None:
            inner = self.changed(held[step.position], place, at + 1, value, frame)
            return self.runtime.with_part(held, step.position, inner)
        assert step.index is not None
        if step.number is not None:
            self.lengths[step.number] = len(held)
        index = self.value(step.index, frame)
        if step.high is not None:
            return operators.with_slice(inside, held, index, self.value(step.high, frame), value)
        if at + 1 < len(place.path):
            value = self.changed(operators.item(inside, held, index), place, at + 1, value, frame)
        return operators.with_item(inside, held, index, value)

    def undefine(self, place: Place, frame: Frame, *, is_field: bool) -> None:
        values = self.frame_of(place.var, frame)
        if not is_field:
            values.pop(place.var.number, None)
            return
        base = self.get(place.var, frame)
        positions = [step.position for step in place.path if step.position is not None]
        values[place.var.number] = self.runtime.without_part(base, positions, place.var.type)

    def loop(self, loop: Loop, frame: Frame) -> None:
        tests = loop.tests_first
        while True:
            if tests and loop.condition is not None and not self.value(loop.condition, frame):
                return
            tests = True
            self.rounds -= 1
            if self.rounds < 0:
                raise Rejected(place_of(loop), ENDLESS_LOOP)
            try:
                self.body(loop.body, frame)
            except Left as left:
                if left.word == "break":
                    return
                if left.word != "continue":
                    raise
            self.body(loop.after, frame)

    def choose(self, choice: Choose, frame: Frame) -> None:
        tag = self.value(choice.value, frame)
        try:
            self.body(self.chosen(choice, tag, frame), frame)
        except Left as left:
            if left.word != "break":
                raise

    def chosen(self, choice: Choose, tag: Any, frame: Frame) -> Block:
        for labels, block in choice.cases:
            for label in labels:
                try:
                    if self.value(label, frame) == tag:
                        return block
                except Undefined:
                    continue
        return choice.otherwise

    def emit(self, emit: Emit, frame: Frame) -> None:
        indexes = tuple(self.value(i, frame) for i in emit.indexes)
        value = self.value(emit.value, frame)
        weight = None if emit.weight is None else self.value(emit.weight, frame)
        self.emits.append((emit.table, indexes, value, weight))

    # --- when ---

    def when(self, when: When, frame: Frame) -> None:
        self.bind(when, 0, frame, None)

    def bind(self, when: When, at: int, frame: Frame, done: set[tuple[Any, ...]] | None) -> None:
        """Bind quantifiers from one on, and do what is to be done for each way that holds.

        After an `all`, others are bound to whatever they can be with any of its values; `done`
        has what was done with already.
        """
        if at == len(when.quantifiers):
            if at or self.holds(when, at, frame):
                self.act(when, frame, done)
            return
        quantifier = when.quantifiers[at]
        values = self.frame_of(quantifier.var, frame)
        number = quantifier.var.number
        if quantifier.word == "all":
            self.bind_after_all(when, at, frame, done)
            return
        for value in self.range_of(when, at, frame):
            values[number] = value
            if self.holds(when, at + 1, frame):
                self.bind(when, at + 1, frame, done)
                if quantifier.word == "some":
                    break
        values.pop(number, None)

    def bind_after_all(
        self, when: When, at: int, frame: Frame, done: set[tuple[Any, ...]] | None
    ) -> None:
        later = [q.word for q in when.quantifiers[at:] if q.word != "all"]
        if not self.holds(when, at, frame):
            return
        if not later:
            self.act(when, frame, done)
            return
        var = when.quantifiers[at].var
        values = self.frame_of(var, frame)
        bound: set[tuple[Any, ...]] = set() if done is None else done
        for value in self.range_of(when, at, frame):
            values[var.number] = value
            self.bind(when, at + 1, frame, bound)
            if bound and later[0] == "some":
                break
        values.pop(var.number, None)

    def act(self, when: When, frame: Frame, done: set[tuple[Any, ...]] | None) -> None:
        """What is to be done; an `all` has no value in it."""
        held = [(q.word, self.frame_of(q.var, frame), q.var.number) for q in when.quantifiers]
        if done is not None:
            way = tuple(values[n] for word, values, n in held if word != "all")
            if way in done:
                return
            done.add(way)
        alls = [(values, n, values.pop(n)) for w, values, n in held if w == "all" and n in values]
        self.body(when.body, frame)
        for values, number, value in alls:
            values[number] = value

    def holds(self, when: When, at: int, frame: Frame) -> bool:
        """Whether the quantifiers from one on can be bound."""
        if at == len(when.quantifiers):
            try:
                return bool(self.value(when.condition, frame))
            except Undefined:
                return False
        quantifier = when.quantifiers[at]
        values = self.frame_of(quantifier.var, frame)

        def tries() -> Iterator[bool]:
            for value in self.range_of(when, at, frame):
                values[quantifier.var.number] = value
                yield self.holds(when, at + 1, frame)

        held = all(tries()) if quantifier.word == "all" else any(tries())
        if quantifier.word == "all":
            values.pop(quantifier.var.number, None)
        return held

    def range_of(self, when: When, at: int, frame: Frame) -> list[Any]:
        """All indexes of what a quantifier is an index of."""
        keys: set[Any] = set()
        for base in when.quantifiers[at].ranges:
            try:
                held = self.value(base, frame)
            except Undefined:
                continue
            keys.update(held if isinstance(resolved(base.type), MapOf) else range(len(held)))
        return sorted(keys)


def place_of(statement: Statement) -> str:
    span: Span | None = getattr(statement, "span", None)
    return "" if span is None else span.place
