"""From the terms of a judge to instructions of the machine that runs them.

Equal terms are one instruction, wherever they stand: a condition that many requirements
share is computed once. A register is free again after its last use, so that a block of
all registers fits the processor's cache.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np

from millstream.calculus.judging import Judge
from millstream.calculus.terms import Call, Column, Literal, Term
from millstream.calculus.types import Kind
from millstream.kernels.judge import machine
from millstream.kernels.judge.machine import Code

T = TypeVar("T")

_ARITHMETIC = {"+": machine.ADD, "-": machine.SUBTRACT, "*": machine.MULTIPLY,
               "/": machine.DIVIDE, "neg": machine.NEGATE, "abs": machine.ABSOLUTE}  # fmt: skip
#: Comparisons; `>` is `<` the other way round.
_COMPARISONS = {"==": (machine.EQUAL, False), "!=": (machine.UNEQUAL, False),
                "<": (machine.LESS, False), ">": (machine.LESS, True),
                "<=": (machine.AT_MOST, False), ">=": (machine.AT_MOST, True)}  # fmt: skip
#: Comparisons with a constant on the right, and on the left.
_AGAINST = {machine.EQUAL: (machine.IS, machine.IS),
            machine.UNEQUAL: (machine.IS_NOT, machine.IS_NOT),
            machine.LESS: (machine.BELOW, machine.ABOVE),
            machine.AT_MOST: (machine.UP_TO, machine.FROM)}  # fmt: skip
_LOGIC = {"and": machine.AND, "or": machine.OR, "not": machine.NOT}


#: From so many texts on it pays to put rows of one text together.
_MANY = 8


class NoCodeError(Exception):
    """A term that the machine cannot compute."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """With numbers of other instructions where `uses_registers`, else of columns."""

    operation: int
    first: int = 0
    second: int = 0
    constant: float = 0.0
    is_truth: bool = False


@dataclass
class JudgeCode:
    """Mutable while it is made: columns of numbers, of truth and of text, and instructions.

    A column of numbers is the term that gives it: a column, an integer as a number, the
    seconds between two times. Texts become the numbers that stand for them.
    """

    numbers: list[Term] = field(default_factory=list)
    truths: list[Column] = field(default_factory=list)
    texts: dict[str, int] = field(default_factory=dict)
    #: Columns of text that are compared with other columns, not only with what rules say.
    crossed: set[str] = field(default_factory=set)
    instructions: list[Instruction] = field(default_factory=list)
    known: dict[object, int] = field(default_factory=dict)

    def add(self, key: object, instruction: Instruction) -> int:
        if key not in self.known:
            self.known[key] = len(self.instructions)
            self.instructions.append(instruction)
        return self.known[key]

    def term(self, term: Term) -> int:
        if term in self.known:
            return self.known[term]
        match term:
            case Literal():
                return self._literal(term)
            case Column(type=type_) if type_.kind is Kind.BOOLEAN:
                place = _place(self.truths, term)
                return self.add(term, Instruction(machine.LOAD_TRUTH, place, is_truth=True))
            case Column(type=type_) if type_.kind in (Kind.NUMBER, Kind.TEXT):
                return self._column(term)
            case Call("number", (Column(),)):
                return self._column(term)
            case Call("seconds", (Call("-", (Column(), Column())),)):
                return self._column(term)
            case Call(function, args) if function in _COMPARISONS:
                if not _is_comparable(function, args[0].type.kind):
                    raise NoCodeError(f"{function} of {args[0].type}")
                operation, is_turned = _COMPARISONS[function]
                if all(isinstance(a, Column) and a.type.kind is Kind.TEXT for a in args):
                    self.crossed |= {a.name for a in args if isinstance(a, Column)}
                sides = args[::-1] if is_turned else args
                return self.add(term, self._compared(operation, *sides))
            case Call(function, args) if function in _LOGIC:
                parts = [self.term(a) for a in args]
                first, second = parts[0], parts[-1]
                return self.add(term, Instruction(_LOGIC[function], first, second, is_truth=True))
            case Call("is_null", (arg,)) if arg.type.kind is not Kind.BOOLEAN:
                return self.add(term, Instruction(machine.IS_NULL, self.term(arg), is_truth=True))
            case Call("if", (condition, Literal(0.0), arg)) if arg.type.kind is Kind.NUMBER:
                value, unless = self.term(arg), self.term(condition)
                return self.add(term, Instruction(machine.UNLESS, value, unless))
            case Call("if", (condition, arg, Literal(None))) if arg.type.kind is Kind.NUMBER:
                value, where = self.term(arg), self.term(condition)
                return self.add(term, Instruction(machine.WHERE, value, where))
            case Call(function, args, type_) if function in _ARITHMETIC:
                if type_.kind is not Kind.NUMBER:
                    raise NoCodeError(f"arithmetic of {type_}")
                parts = [self.term(a) for a in args]
                return self.add(term, Instruction(_ARITHMETIC[function], parts[0], parts[-1]))
            case Call(function):
                raise NoCodeError(function)
            case _:
                raise NoCodeError(type(term).__name__)

    def _compared(self, operation: int, left: Term, right: Term) -> Instruction:
        """A constant need not be in a register for every row."""
        for place, (one, other) in enumerate(((left, right), (right, left))):
            is_plain = isinstance(other, Literal) and other.value is not None
            if isinstance(other, Literal) and is_plain and other.value == other.value:
                against = _AGAINST[operation][place]
                number = self._number(other)
                return Instruction(against, self.term(one), constant=number, is_truth=True)
        return Instruction(operation, self.term(left), self.term(right), is_truth=True)

    def _number(self, term: Literal) -> float:
        """The number that stands for a literal; of a null it does not matter."""
        if isinstance(term.value, str):
            return float(self.texts.setdefault(term.value, len(self.texts)))
        return 0.0 if term.value is None else float(term.value)

    def _literal(self, term: Literal) -> int:
        value, kind = term.value, term.type.kind
        if kind is Kind.BOOLEAN:
            truth = {None: machine.UNKNOWN, False: machine.FALSE, True: machine.TRUE}[value]  # type: ignore[index]
            return self.add(term, Instruction(machine.TRUTH, truth, is_truth=True))
        if kind not in (Kind.NUMBER, Kind.TEXT):
            raise NoCodeError(f"a literal {term.type}")
        there = 0 if value is None else 1
        return self.add(term, Instruction(machine.CONSTANT, 0, there, self._number(term)))

    def _column(self, term: Term) -> int:
        return self.add(term, Instruction(machine.LOAD, _place(self.numbers, term)))

    def most_compared(self) -> int | None:
        """The column of text that most texts are looked for in, if there are many."""
        asked = Counter(
            self.instructions[one.first].first
            for one in self.instructions
            if one.operation == machine.IS
            and self.instructions[one.first].operation == machine.LOAD
            and self.numbers[self.instructions[one.first].first].type.kind is Kind.TEXT
        )
        return next((place for place, count in asked.most_common(1) if count > _MANY), None)

    def judged(self, when: int, holds: int, number: int) -> None:
        key = ("requirement", number)
        self.add(key, Instruction(machine.JUDGE, when, holds, float(number)))

    def stored(self, terms: Iterable[Term]) -> JudgeCode:
        """Code over the same columns that stores the values of terms."""
        made = replace(self, instructions=[], known={})
        for number, term in enumerate(terms):
            is_truth = term.type.kind is Kind.BOOLEAN
            operation = machine.STORE_TRUTH if is_truth else machine.STORE
            place = made.term(term)
            made.add(("stored", number), Instruction(operation, place, constant=float(number)))
        return made

    def can_store(self, term: Term) -> bool:
        """Whether the machine can compute a number or a truth."""
        if term.type.kind not in (Kind.NUMBER, Kind.BOOLEAN):
            return False
        try:
            self.stored((term,))
        except NoCodeError:
            return False
        return True


def _place(columns: list[T], column: T) -> int:
    """Which of the columns it is; it is added if it is none."""
    if column not in columns:
        columns.append(column)
    return columns.index(column)


def _is_comparable(function: str, kind: Kind) -> bool:
    """Numbers that stand for texts are equal where these are, but in another order."""
    return kind is Kind.NUMBER or (kind is Kind.TEXT and function in ("==", "!="))


def code_of(judge: Judge) -> JudgeCode:
    """The instructions of all requirements, or `NoCodeError`."""
    made = JudgeCode()
    always = made.add("always", Instruction(machine.TRUTH, machine.TRUE, is_truth=True))
    for number, one in enumerate(judge.requirements):
        when = always if one.when is None else made.term(one.when)
        made.judged(when, made.term(one.holds), number)
    return made


def why_not(judge: Judge) -> str | None:
    """Why a judge cannot be run by the machine, or None if it can."""
    try:
        code_of(judge)
    except NoCodeError as error:
        return f"Judge cannot compute {error}"
    return None


_LEAVES = (machine.LOAD, machine.LOAD_TRUTH, machine.CONSTANT, machine.TRUTH)
_SINGLE = (machine.IS, machine.IS_NOT, machine.BELOW, machine.ABOVE, machine.UP_TO, machine.FROM,
           machine.SKIP, machine.IS_NULL, machine.STORE, machine.STORE_TRUTH)  # fmt: skip
#: Instructions that give no value; their targets are no registers.
_MUTE = (machine.SKIP, machine.JUDGE, machine.STORE, machine.STORE_TRUTH)


def _read(instruction: Instruction) -> tuple[int, ...]:
    """The instructions whose values one reads."""
    if instruction.operation in _LEAVES:
        return ()
    return (
        (instruction.first,)
        if instruction.operation in _SINGLE
        else (instruction.first, instruction.second)
    )


class _Order:
    """Mutable: instructions in an order in which what one requirement needs can be skipped.

    What several requirements need comes before any of them, and is never skipped.
    """

    def __init__(self, instructions: list[Instruction]) -> None:
        self.given = instructions
        self.made: list[Instruction] = []
        self.place: dict[int, int] = {}
        self.owner: dict[int, int] = {}
        for number, one in enumerate(instructions):
            if one.operation == machine.JUDGE:
                self._claim(number, number)

    def _claim(self, number: int, owner: int) -> None:
        before = self.owner.get(number)
        if before in (owner, _SHARED):
            return
        self.owner[number] = owner if before is None else _SHARED
        for read in _read(self.given[number]):
            # What a shared one needs is shared too.
            self._claim(read, self.owner[number] if before is None else _SHARED)

    def requirement(self, number: int) -> None:
        instruction = self.given[number]
        self._share(number, set())
        skips: list[int] = []
        self._condition(instruction.first, skips)
        self._skip(instruction.first, skips)
        self._emit(instruction.second)
        self._put(number)
        for skip in skips:
            self.made[skip] = replace(self.made[skip], constant=float(len(self.made)))

    def _share(self, number: int, seen: set[int]) -> None:
        """First of all what others need as well."""
        if number in seen:
            return
        seen.add(number)
        if self.owner[number] == _SHARED:
            self._emit(number)
            return
        for read in _read(self.given[number]):
            self._share(read, seen)

    def _condition(self, number: int, skips: list[int]) -> None:
        """Of conditions that must all hold, each only where those before it may."""
        instruction = self.given[number]
        if number in self.place or instruction.operation != machine.AND:
            self._emit(number)
            return
        self._condition(instruction.first, skips)
        self._skip(instruction.first, skips)
        self._condition(instruction.second, skips)
        self._put(number)

    def _skip(self, condition: int, skips: list[int]) -> None:
        if self.given[condition].operation != machine.TRUTH:
            skips.append(len(self.made))
            self.made.append(Instruction(machine.SKIP, self.place[condition]))

    def _emit(self, number: int) -> None:
        if number in self.place:
            return
        for read in _read(self.given[number]):
            self._emit(read)
        self._put(number)

    def _put(self, number: int) -> None:
        instruction = self.given[number]
        reads = [self.place[read] for read in _read(instruction)]
        if len(reads) == 2:
            instruction = replace(instruction, first=reads[0], second=reads[1])
        elif reads:
            instruction = replace(instruction, first=reads[0], second=reads[0])
        self.place[number] = len(self.made)
        self.made.append(instruction)


_SHARED = -1


def with_skips(instructions: list[Instruction]) -> list[Instruction]:
    """The instructions in an order, and with skips, that leave out what is not needed."""
    order = _Order(instructions)
    for number, one in enumerate(instructions):
        if one.operation == machine.JUDGE:
            order.requirement(number)
    return order.made


def allocated(instructions: list[Instruction]) -> tuple[Code, tuple[int, int]]:
    """The code with registers, and how many registers each bank needs."""
    last: dict[int, int] = {}
    for n, one in enumerate(instructions):
        last.update(dict.fromkeys(_read(one), n))
    free: tuple[list[int], list[int]] = ([], [])
    sizes = [1, 1]
    place: dict[int, int] = {}
    rows: list[tuple[int, int, int, int, float]] = []
    for n, one in enumerate(instructions):
        first, second = one.first, one.second
        if one.operation not in _LEAVES:
            first, second = place[one.first], place[_read(one)[-1]]
            for used in dict.fromkeys(_read(one)):
                if last[used] == n:
                    free[instructions[used].is_truth].append(place[used])
        if one.operation in _MUTE:
            target = int(one.constant)
        else:
            target = free[one.is_truth].pop() if free[one.is_truth] else sizes[one.is_truth]
            sizes[one.is_truth] = max(sizes[one.is_truth], target + 1)
            place[n] = target
        rows.append((one.operation, first, second, target, one.constant))
    operation, first_, second_, target_ = (
        np.array([r[i] for r in rows], np.int64) for i in range(4)
    )
    constant = np.array([r[4] for r in rows], np.float64)
    return Code(operation, first_, second_, target_, constant), (sizes[0], sizes[1])
