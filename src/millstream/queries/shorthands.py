"""Functions that are written in terms of others, such as `NULLIF(a, b)` and `LEFT(t, 2)`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NoReturn

from millstream.calculus.types import DURATION, INTEGER, NUMBER, TEXT, Type, Value
from millstream.errors import listing
from millstream.queries.ast import Apply, Constant, Expression, Word
from millstream.queries.tokens import UNITS, Cursor
from millstream.source import Span

#: Powers of ten beyond these are of no use to 64-bit floating point numbers.
MOST_DIGITS = 15
_DAY = UNITS["day"]
#: 1970 began on a Thursday, weeks begin on Mondays.
_TO_MONDAY = 3 * _DAY
_LONG_UNITS = ("week", "month", "quarter", "year")


@dataclass(frozen=True, slots=True)
class Call:
    """A call as it was written, and what makes expressions of its parts."""

    cursor: Cursor
    args: tuple[Expression, ...]
    span: Span

    def apply(self, name: str, *args: Expression) -> Expression:
        return Apply(Word(name, self.span), args, self.span)

    def constant(self, value: Value, type_: Type | None) -> Expression:
        return Constant(value, type_, self.span)

    def integer(self, value: int) -> Expression:
        return self.constant(value, INTEGER)

    def fail(self, message: str, number: int, hint: str | None = None) -> NoReturn:
        self.cursor.fail(message, self.args[number].span, hint)


@dataclass(frozen=True, slots=True)
class Shorthand:
    """How a function is written, how many arguments it may have, and what it stands for."""

    usage: str
    least: int
    most: int | None
    meaning: Callable[[Call], Expression]

    def read(
        self, cursor: Cursor, word: Word, args: Sequence[Expression], span: Span
    ) -> Expression:
        if len(args) < self.least or (self.most is not None and len(args) > self.most):
            message = f"{word.name} is given {len(args)} argument{'s' * (len(args) != 1)}"
            cursor.fail(message, span, f"usage: {self.usage}")
        return self.meaning(Call(cursor, tuple(args), span))


def _nullif(call: Call) -> Expression:
    one = call.args[0]
    null = call.constant(None, None)
    return call.apply("if", call.apply("==", one, call.args[1]), null, one)


def _concat(call: Call) -> Expression:
    joined = call.args[0]
    for number in range(1, len(call.args)):
        joined = call.apply("||", joined, call.args[number])
    return joined


def _concat_ws(call: Call) -> Expression:
    """Those that are not null, with the separator between them."""
    separator, *parts = call.args
    nothing = call.constant("", TEXT)
    joined: Expression = nothing
    for part in parts:
        with_separator = call.apply("||", separator, part)
        joined = call.apply("||", joined, call.apply("coalesce", with_separator, nothing))
    start = call.apply("+", call.apply("length", separator), call.integer(1))
    return call.apply("substring", joined, start)


def _round(call: Call) -> Expression:
    """`ROUND(x, n)`: to n digits after the point, or before it if n is negative."""
    if len(call.args) == 1:
        return call.apply("round", call.args[0])
    digits = call.args[1]
    number = digits.value if isinstance(digits, Constant) and digits.type == INTEGER else None
    if not isinstance(number, int) or abs(number) > MOST_DIGITS:
        call.fail(f"ROUND takes a number of digits from -{MOST_DIGITS} to {MOST_DIGITS}", 1)
    scale = call.constant(float(10 ** abs(number)), NUMBER)
    there, back = ("*", "/") if number > 0 else ("/", "*")
    return call.apply(back, call.apply("round", call.apply(there, call.args[0], scale)), scale)


def _date_trunc(call: Call) -> Expression:
    """The start of the hour, day, month... in which a time lies."""
    asked = call.args[0]
    unit = str(asked.value).lower() if isinstance(asked, Constant) else ""
    if unit not in UNITS and unit not in _LONG_UNITS:
        known = listing([*UNITS, *_LONG_UNITS], 40)
        call.fail(f'unknown unit of time "{unit}"', 0, f"units are: {known}")
    time = call.args[1]

    def floor(value: Expression, step: int) -> Expression:
        return call.apply("floor_time", value, call.constant(step, DURATION))

    if unit in UNITS:
        return floor(time, UNITS[unit])
    if unit == "week":
        monday = call.constant(_TO_MONDAY, DURATION)
        return call.apply("-", floor(call.apply("+", time, monday), 7 * _DAY), monday)
    # Years and months differ in length: back to the first of the month, by days.
    year = call.apply("text", call.apply("year", time))
    month = call.apply("month", time)
    if unit == "year":
        month = call.integer(1)
    elif unit == "quarter":
        rest = call.apply("%", call.apply("-", month, call.integer(1)), call.integer(3))
        month = call.apply("-", month, rest)
    padded = call.apply("text", call.apply("+", month, call.integer(100)))
    digits = call.apply("substring", padded, call.integer(2))
    parts = (year, call.constant("-", TEXT), digits, call.constant("-01T00:00:00Z", TEXT))
    written = parts[0]
    for part in parts[1:]:
        written = call.apply("||", written, part)
    return call.apply("time", written)


def part_of_time(part: str, call: Call) -> Expression:
    """`EXTRACT(part FROM time)`; Sunday is 0 for `dow`, and 7 for `isodow`."""
    (time,) = call.args
    match part:
        case "epoch":
            return call.apply("/", call.apply("integer", time), call.integer(1_000_000))
        case "isodow":
            return call.apply("weekday", time)
        case "dow":
            return call.apply("%", call.apply("weekday", time), call.integer(7))
        case "quarter":
            months = call.apply("+", call.apply("month", time), call.integer(2))
            return call.apply("div", months, call.integer(3))
        case "doy":
            return _counted(call, time, _DAY)
        case "week":  # of the year in which its Thursday lies, as ISO 8601 counts them
            week = replace(call, args=(call.constant("week", TEXT), time))
            thursday = call.apply("+", _date_trunc(week), call.constant(3 * _DAY, DURATION))
            return _counted(call, thursday, 7 * _DAY)
        case _:
            return call.apply(part, time)


def _counted(call: Call, time: Expression, step: int) -> Expression:
    """In which step of its year, from 1 on, a time lies."""
    year = replace(call, args=(call.constant("year", TEXT), time))
    passed = call.apply("seconds", call.apply("-", time, _date_trunc(year)))
    steps = call.apply("/", passed, call.constant(step / 1_000_000, NUMBER))
    return call.apply("+", call.apply("integer", call.apply("floor", steps)), call.integer(1))


def _left(call: Call) -> Expression:
    """The first n characters, or all but the last -n of them."""
    text, count = call.args
    zero = call.integer(0)
    others = call.apply("greatest", call.apply("+", call.apply("length", text), count), zero)
    shown = call.apply("if", call.apply("<", count, zero), others, count)
    return call.apply("substring", text, call.integer(1), shown)


def _right(call: Call) -> Expression:
    """The last n characters, or all but the first -n of them."""
    text, count = call.args
    one = call.integer(1)
    after = call.apply("-", call.apply("length", text), count)
    start = call.apply("greatest", call.apply("+", after, one), one)
    is_negative = call.apply("<", count, call.integer(0))
    others = call.apply("if", is_negative, call.apply("-", one, count), start)
    return call.apply("substring", text, others)


def _sign(call: Call) -> Expression:
    number = call.args[0]
    zero = call.integer(0)
    below = call.apply("if", call.apply("<", number, zero), call.integer(-1), zero)
    sign = call.apply("if", call.apply(">", number, zero), call.integer(1), below)
    null = call.constant(None, None)
    return call.apply("if", call.apply("is_null", number), null, sign)


def _position(call: Call) -> Expression:
    return call.apply("position", call.args[0], call.args[1])


def _located(call: Call) -> Expression:
    return call.apply("position", call.args[1], call.args[0])


def _epoch(call: Call) -> Expression:
    return part_of_time("epoch", call)


def _end_of_window(call: Call) -> NoReturn:
    """The ends of windows are columns."""
    written = call.span.text.partition("(")[0]
    column = "window_start" if written.lower().endswith("start") else "window_end"
    call.cursor.fail(f"{written} is not part of CQL", call.span, f"write {column}")


SHORTHANDS: dict[str, Shorthand] = {
    **{
        f"{kind}_{end}": Shorthand(f"window_{end}", 0, None, _end_of_window)
        for kind in ("tumble", "hop", "session")
        for end in ("start", "end")
    },
    "nullif": Shorthand("NULLIF(a, b): null if they are equal, otherwise a", 2, 2, _nullif),
    "concat": Shorthand("CONCAT(text, text, ...)", 1, None, _concat),
    "concat_ws": Shorthand("CONCAT_WS(separator, text, text, ...)", 2, None, _concat_ws),
    "epoch": Shorthand("EPOCH(time): seconds since 1970", 1, 1, _epoch),
    "unix_timestamp": Shorthand("UNIX_TIMESTAMP(time): seconds since 1970", 1, 1, _epoch),
    "locate": Shorthand("LOCATE(part, text): from 1, or 0 if it is not there", 2, 2, _located),
    "round": Shorthand("ROUND(x) or ROUND(x, digits)", 1, 2, _round),
    "date_trunc": Shorthand("DATE_TRUNC('hour', time)", 2, 2, _date_trunc),
    "left": Shorthand("LEFT(text, number of characters)", 2, 2, _left),
    "right": Shorthand("RIGHT(text, number of characters)", 2, 2, _right),
    "sign": Shorthand("SIGN(x): 1, 0 or -1", 1, 1, _sign),
    "strpos": Shorthand("STRPOS(text, part): from 1, or 0 if it is not there", 2, 2, _position),
    "instr": Shorthand("INSTR(text, part): from 1, or 0 if it is not there", 2, 2, _position),
}
