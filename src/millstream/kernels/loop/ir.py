"""What a compiled loop does, as data: values, guards and memory.

Everything that works item by item is lowered to this, changed by `passes` and written down by
`emit`; nothing ever looks into the text that is written.

A *value* is an expression without effects. It has a *form*, which says how it is held: plain, or
in a *box* beside whether it is null and which faults arose while it was computed (see
`scalar_lift`). A *local* is a variable of the loop. *Memory* is an array that the loop is given by
its address; a window that a loop looks into is memory as well, with the operations of its own.

A *guard* is a number that stands for a truth. Guard 0 always holds, and every other is decided
below a parent: it holds only where that one does. In `Guarded` every statement stands under a
guard; `passes.choices` makes plain choices of them in the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Literal

from millstream.values.core.scalar import Operation

# --- how values are held ----------------------------------------------------------------


class Rep(Enum):
    """How a plain value lies in a machine."""

    NUMBER = "f"
    INTEGER = "i"
    TRUTH = "b"
    PLACE = "u"  # a number of a record, which is never negative
    SINGLE = "f32"
    SHORT = "i32"


@dataclass(frozen=True, slots=True)
class Form:
    rep: Rep
    is_boxed: bool = False
    has_faults: bool = False


INTEGER = Form(Rep.INTEGER)
TRUTH = Form(Rep.TRUTH)
NUMBER = Form(Rep.NUMBER)


# --- what a loop is given ---------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Memory:
    """An array: what it is, of which things (by number), and what lies in it."""

    kind: str
    rep: Rep
    first: int = 0
    second: int = 0

    @property
    def name(self) -> str:
        return f"{self.kind}_{self.first}_{self.second}"


@dataclass(frozen=True, slots=True)
class Given:
    """An integer that is the same for a whole call."""

    kind: str
    first: int = 0

    @property
    def name(self) -> str:
        return f"{self.kind}_{self.first}"

    @property
    def form(self) -> Form:
        return INTEGER


Param = Memory | Given

# --- values -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Const:
    """A number or a truth. Zeros of either sign are two constants, and NaN is one."""

    value: bool | int | float = field(compare=False)
    form: Form
    spelled: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "spelled", repr(self.value))


@dataclass(frozen=True, slots=True)
class Local:
    name: str
    form: Form


@dataclass(frozen=True, slots=True)
class Load:
    memory: Memory
    index: Value

    @property
    def form(self) -> Form:
        return Form(self.memory.rep)


@dataclass(frozen=True, slots=True)
class Op:
    """An operation on values; `place` is the bit of its first fault, if it can fail."""

    operation: Operation
    args: tuple[Value, ...]
    form: Form
    place: int | None = None


Value = Const | Local | Given | Load | Op

YES, NO = Const(True, TRUTH), Const(False, TRUTH)
ZERO = Const(0, INTEGER)


def integer(value: int) -> Const:
    return Const(value, INTEGER)


# --- the operations of boxes ------------------------------------------------------------

BOX = Operation("boxed")
BOX_WITH_FAULTS = Operation("boxed_with_faults")
SETTLED = Operation("settled")
IS_NULL = Operation("is_null")
CHOOSE = Operation("choose")
VALUE_OF = Operation("", "{0}[0]")
VALID_OF = Operation("", "not {0}[1]")
FAULTS_OF = Operation("", "{0}[2]")
HOLDS = Operation("", "{0}[0] & (not {0}[1])")

# --- statements -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Set:
    local: Local
    value: Value


@dataclass(frozen=True, slots=True)
class Store:
    memory: Memory
    index: Value
    value: Value


@dataclass(frozen=True, slots=True)
class TallyFaults:
    """Count every fault of a set, each in its own counter from `base` on."""

    counters: Memory
    base: int
    faults: Value


@dataclass(frozen=True, slots=True)
class When:
    condition: Value
    then: Body
    otherwise: Body = ()


@dataclass(frozen=True, slots=True)
class Count:
    """The body with a local that counts from a beginning up to a limit."""

    local: Local
    limit: Value
    body: Body
    begin: Value = ZERO


@dataclass(frozen=True, slots=True)
class Loop:
    """The body while the condition holds; without one, until it is left."""

    condition: Value | None
    body: Body


@dataclass(frozen=True, slots=True)
class Leave:
    """The nearest `Loop` or `Count`, or this round of it."""

    word: Literal["break", "continue"]


@dataclass(frozen=True, slots=True)
class Stop:
    """The function ends, with a number."""

    answer: Value


@dataclass(frozen=True, slots=True)
class Decide:
    """The guard `opens` holds from here on if the condition does."""

    opens: int
    condition: Value


@dataclass(frozen=True, slots=True)
class Guarded:
    """Statements one after the other, each under a guard."""

    lines: tuple[tuple[int, Statement], ...]


Statement = Set | Store | TallyFaults | When | Count | Loop | Leave | Stop | Decide | Guarded
Body = tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Function:
    """A loop; `parents` has the parent of every guard."""

    body: Body
    parents: tuple[int, ...] = (0,)

    def is_within(self, guard: int, outer: int) -> bool:
        """Does the outer guard hold wherever the guard does?"""
        while guard not in (outer, 0):
            guard = self.parents[guard]
        return guard == outer


# --- making operations ------------------------------------------------------------------


def op(
    operation: Operation, *args: Value, rep: Rep | None = None, place: int | None = None
) -> Value:
    """An operation on values; without a representation, the result is held as the first one.

    Nothing looks into what is no box.
    """
    first = args[0]
    rep = rep or first.form.rep
    if operation in _ON_PLAIN and not first.form.is_boxed:
        return _ON_PLAIN[operation] or first
    if operation in (SETTLED, FAULTS_OF) and not first.form.has_faults:
        return first if operation == SETTLED else ZERO
    return Op(operation, args, _form(operation, args, rep, place), place)


def _form(operation: Operation, args: tuple[Value, ...], rep: Rep, place: int | None) -> Form:
    if operation in _TAKEN_APART:
        return Form(_TAKEN_APART[operation] or rep)
    if operation in (BOX, BOX_WITH_FAULTS):
        return Form(rep, True, operation == BOX_WITH_FAULTS)
    if place is not None:
        return Form(rep, True, True)
    has_faults = operation != SETTLED and any(a.form.has_faults for a in args)
    return Form(rep, any(a.form.is_boxed for a in args), has_faults)


#: What looks into a box gives something plain: of which representation, or that of the value.
_TAKEN_APART: dict[Operation, Rep | None] = {
    VALUE_OF: None, VALID_OF: Rep.TRUTH, FAULTS_OF: Rep.INTEGER, HOLDS: Rep.TRUTH,
}  # fmt: skip
#: What it would be of a plain value; None is the value itself.
_ON_PLAIN: dict[Operation, Value | None] = {
    VALUE_OF: None, HOLDS: None, SETTLED: None, VALID_OF: YES, FAULTS_OF: ZERO, IS_NULL: NO,
}  # fmt: skip


# --- walking ----------------------------------------------------------------------------


def inner(value: Value) -> tuple[Value, ...]:
    """The values that a value is made of."""
    match value:
        case Load(_, index):
            return (index,)
        case Op(_, args):
            return args
        case _:
            return ()


def values_in(value: Value) -> Iterator[Value]:
    yield value
    for part in inner(value):
        yield from values_in(part)


def values_of(statement: Statement) -> tuple[Value, ...]:
    """The values of a statement itself."""
    match statement:
        case (
            Set(_, value) | TallyFaults(_, _, value) | Decide(_, value) | When(value) | Stop(value)
        ):
            return (value,)
        case Store(_, index, value):
            return (index, value)
        case Count(_, limit, _, begin):
            return (begin, limit)
        case Loop(condition):
            return () if condition is None else (condition,)
        case Guarded() | Leave():
            return ()


def statements_in(body: Body) -> Iterator[Statement]:
    """Every statement, inner ones after the one they stand in."""
    for statement in body:
        yield statement
        match statement:
            case When(_, then, otherwise):
                yield from statements_in(then)
                yield from statements_in(otherwise)
            case Count(_, _, inside) | Loop(_, inside):
                yield from statements_in(inside)
            case Guarded(lines):
                yield from statements_in(tuple(line for _, line in lines))
            case _:
                continue


def params_of(body: Body) -> tuple[Param, ...]:
    """What a loop is given, in the order in which it is met."""
    params: dict[Param, None] = {}
    for statement in statements_in(body):
        if isinstance(statement, Store):
            params.setdefault(statement.memory)
        elif isinstance(statement, TallyFaults):
            params.setdefault(statement.counters)
        for whole in values_of(statement):
            for value in values_in(whole):
                if isinstance(value, Load):
                    params.setdefault(value.memory)
                elif isinstance(value, Given):
                    params.setdefault(value)
    return tuple(params)


def set_once(body: Body) -> frozenset[str]:
    """The locals that one statement alone sets: they are what it says wherever they are read."""
    times: dict[str, int] = {}
    for statement in statements_in(body):
        if isinstance(statement, (Set, Count)):
            times[statement.local.name] = times.get(statement.local.name, 0) + 1
    return frozenset(name for name, often in times.items() if often == 1)
