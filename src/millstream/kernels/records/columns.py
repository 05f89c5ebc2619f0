"""Expressions of scripts on columns of records.

An expression gives a column, and the rows in which it has no value. What cannot be said of a row
in this way (a number with an exponent, a text that is very long) makes it one to be looked at with
care: it is run from the beginning by the meaning of the script.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from millstream.calculus.scripts import (
    Apply,
    Const,
    Convert,
    Defined,
    Expression,
    Get,
    Index,
    Intrinsic,
    Length,
    Logic,
    Make,
    Operate,
    Part,
    Saw,
    Slice,
)
from millstream.kernels.records import slices
from millstream.kernels.records.answers import SameInEveryRow, answered
from millstream.kernels.records.between import DTYPES, TEXTS, BatchValues, taken
from millstream.kernels.records.column import Column, NotOnColumns, Pieces, TupleColumn, either
from millstream.kernels.records.column_numbers import (
    COMPARED,
    CONVERSIONS,
    FIRST_TIME,
    LAST_TIME,
    NUMBERS,
    OPERATORS,
    TIMES,
    WHOLE_ONLY,
    towards_zero,
)
from millstream.kernels.records.made_texts import decimal, joined
from millstream.kernels.records.pattern_code import PatternCode, pattern_code
from millstream.kernels.records.sawing import (
    MOST_SAWN,
    Cut,
    PiecesAt,
    Sawing,
    all_matches,
    fields,
    searched,
    span,
)
from millstream.kernels.records.slices import Slices
from millstream.plan.batch import Array
from millstream.values.records import operators
from millstream.values.records.formats import Verb, pieces
from millstream.values.records.numbers import FINITE_WEIGHT, WEIGHT
from millstream.values.records.running import Runtime, pattern
from millstream.values.records.table import INTRINSICS
from millstream.values.records.types import (
    BOOL,
    BYTES,
    FLOAT,
    INT,
    STRING,
    TIME,
    ArrayOf,
    MapOf,
    RecordType,
    TupleOf,
    resolved,
)

#: Texts that are longer are put together with care.
_LONGEST_MADE = 1 << 20
#: What operators of numbers work on.
_NUMBERS = (INT, TIME, FLOAT, BOOL)


@dataclass(slots=True)
class Columns:
    """Mutable: the columns of one batch while a script is run on it."""

    count: int
    record: Slices
    row: Callable[[RecordType], Column]
    statics: Mapping[int, Any]
    record_number: int
    #: Rows in which something is not plain, and those that something is done with now.
    careful: Array
    active: Array
    #: What calls a function of the script.
    call: Callable[[Apply], Column]
    timezone: str
    runtime: Runtime
    values: BatchValues = field(default_factory=BatchValues)
    variables: dict[int, Column] = field(default_factory=dict)
    #: Lengths of what is indexed, by the numbers that `$` has in an index.
    lengths: dict[int, Array] = field(default_factory=dict)
    #: Bytes of texts in capitals or small letters, by what they were made of.
    recased_data: dict[tuple[int, bool], tuple[Array, Array]] = field(default_factory=dict)

    def value(self, node: Expression) -> Column:
        return self.to_send(node).plain()

    def to_send(self, node: Expression) -> Column:
        """As `value`, but texts may be left as they came."""
        read = _READ.get(type(node))
        if read is None:
            raise NotOnColumns(type(node).__name__.lower())
        found: Column = read(self, node)
        return found

    def numbers(self, node: Expression) -> tuple[Array, Array | None]:
        column = self.value(node)
        assert isinstance(column.values, np.ndarray), node
        return column.values, column.bad

    def texts(self, node: Expression) -> tuple[Slices, Array | None]:
        column = self.value(node)
        assert isinstance(column.values, Slices), node
        return column.values, column.bad

    def of_rows(self, rows: Array, numbers: Container[int] | None = None) -> Columns:
        """Some rows, of which nothing is known yet; with all variables, or these."""
        whole = numbers is None or self.record_number in numbers
        return replace(
            self, count=len(rows), record=self.record.take(rows) if whole else self.record,
            careful=np.zeros(len(rows), np.bool_), active=np.ones(len(rows), np.bool_),
            variables={
                n: taken(column, rows)
                for n, column in self.variables.items()
                if numbers is None or n in numbers
            },
            lengths={},
        )  # fmt: skip

    def look_closer(self, rows: Array) -> None:
        """These rows are to be run with care, as far as something is done with them."""
        self.careful |= rows & self.active

    # --- what stands for itself ---

    def const(self, node: Const) -> Column:
        return self.constant(node.value, node.type)

    def constant(self, value: Any, type_: RecordType) -> Column:
        kind = resolved(type_)
        if kind in DTYPES:
            return Column(np.full(self.count, value, DTYPES[kind]))
        if kind in TEXTS:
            text = value.decode("latin-1") if kind == BYTES else value
            if text.isascii() and "\0" not in text:
                return Column(slices.one_text(text, self.count))
        raise NotOnColumns(f"a constant {kind}")

    def get(self, node: Get) -> Column:
        var = node.var
        if var.level < 0:
            if var.number not in self.statics:
                return Column(self._nothing(var.type), np.ones(self.count, np.bool_))
            return self.constant(self.statics[var.number], var.type)
        if var.number == self.record_number and var.number not in self.variables:
            return Column(self.record)
        if var.number not in self.variables:
            return Column(self._nothing(var.type), np.ones(self.count, np.bool_))
        return self.variables[var.number]

    def _nothing(self, type_: RecordType) -> Any:
        kind = resolved(type_)
        if kind in DTYPES:
            return np.zeros(self.count, DTYPES[kind])
        if kind in TEXTS:
            return slices.one_text("", self.count)
        if kind in (ArrayOf(STRING), ArrayOf(BYTES)):
            return Pieces(0, _no_piece, np.zeros(self.count, np.int64))
        raise NotOnColumns(f"a variable of type {kind}")

    # --- operators ---

    def operate(self, node: Operate) -> Column:
        kinds = [resolved(a.type) for a in node.arguments]
        if kinds[0] in TEXTS and node.operator == "+":
            return self._joined(_summands(node))
        if kinds[0] in TEXTS:
            return self._compared_texts(node)
        if not _has_loop(node.operator, kinds):
            types = tuple(a.type for a in node.arguments)
            return self.asked(operators.operation(node.operator, types), node.arguments, node.type)
        pairs = [self.numbers(a) for a in node.arguments]
        values, bad = [v for v, _ in pairs], either(*(b for _, b in pairs))
        if node.operator in ("/", "%") and kinds[0] != FLOAT:
            return self._divided(node.operator, values, bad)
        if kinds[0] == FLOAT and node.operator in WHOLE_ONLY:
            raise NotOnColumns(f"the operator {node.operator}")
        with np.errstate(all="ignore"):
            return Column(OPERATORS[node.operator](*values), bad)

    def _joined(self, parts: Sequence[Expression | Column]) -> Column:
        """Texts one after the other; very long ones are made with care."""
        columns = [p if isinstance(p, Column) else self.value(p) for p in parts]
        texts = [c.values for c in columns if isinstance(c.values, Slices)]
        assert len(texts) == len(columns)
        bad = either(*(c.bad for c in columns))
        chosen = self.active if bad is None else self.active & ~bad
        made = joined(texts, chosen)
        self.look_closer(made.lengths() > _LONGEST_MADE)
        return Column(made, bad)

    def _compared_texts(self, node: Operate) -> Column:
        test = COMPARED.get(node.operator)
        if test is None:
            raise NotOnColumns(f"{node.operator} of texts")
        (left, bad_left), (right, bad_right) = (self.texts(a) for a in node.arguments)
        return Column(test(slices.compared(left, right), 0), either(bad_left, bad_right))

    def _divided(self, operator: str, values: list[Array], bad: Array | None) -> Column:
        """Towards zero; the division by zero has no value."""
        a, b = values
        is_zero = b == 0
        divisor = np.where(is_zero, 1, b)
        with np.errstate(all="ignore"):
            # The least integer by -1 wraps to itself.
            rest = np.fmod(a, np.where(divisor == -1, 1, divisor))
            result = rest if operator == "%" else towards_zero(a, divisor)
        return Column(result, either(bad, is_zero))

    def logic(self, node: Logic) -> Column:
        left, bad_left = self.numbers(node.left)
        decided = left if node.operator == "||" else ~left
        # The right side is looked at only where the left one does not decide.
        before = self.active
        self.active = before & ~decided
        if bad_left is not None:
            self.active = self.active & ~bad_left
        right, bad_right = self.numbers(node.right)
        self.active = before
        values = np.where(decided, left, right)
        bad = bad_left
        if bad_right is not None:
            bad = either(bad, bad_right & ~decided)
        return Column(values, bad)

    # --- what has no loop ---

    def known(self, node: Expression) -> SameInEveryRow | None:
        """What is the same in every row, of whatever type."""
        if isinstance(node, Const):
            return SameInEveryRow(node.value)
        if isinstance(node, Get) and node.var.level < 0 and node.var.number in self.statics:
            return SameInEveryRow(self.statics[node.var.number])
        return None

    def asked(
        self, function: Callable[..., Any], nodes: Sequence[Expression], type_: RecordType
    ) -> Column:
        """Ask a function once for every different combination of arguments."""
        arguments = [self.known(node) or (self.value(node), node.type) for node in nodes]
        column, odd = answered(function, arguments, type_, self.active, self.values)
        if odd is not None:
            self.look_closer(odd)
        return column

    # --- parts ---

    def index(self, node: Index) -> Column:
        held = self.known(node.base)
        if held is not None and isinstance(resolved(node.base.type), (ArrayOf, MapOf)):
            kind, inside = resolved(node.base.type), held.value
            if node.number is not None:
                self.lengths[node.number] = np.full(self.count, len(inside))
            return self.asked(lambda at: operators.item(kind, inside, at), [node.index], node.type)
        base = self.value(node.base)
        if not isinstance(base.values, (Slices, Pieces)):
            raise NotOnColumns(f"an index of {node.base.type}")
        self._measure(node.number, base)
        places, bad = self.numbers(node.index)
        if isinstance(base.values, Slices):
            inside = (places >= 0) & (places < base.values.lengths())
            at = np.where(inside, base.values.starts + places, 0)
            codes = base.values.data[np.minimum(at, len(base.values.data) - 1)].astype(np.int64)
            return Column(codes, either(base.bad, bad, ~inside))
        pieces, bad = base.values, either(base.bad, bad)
        if isinstance(node.index, Const) and 0 <= node.index.value < pieces.most:
            outside = pieces.count <= node.index.value
            missing = outside if outside.any() else None
            return Column(pieces.cut(node.index.value), either(bad, missing))
        return self._piece(pieces, places, bad)

    def _measure(self, number: int | None, base: Column) -> None:
        """Keep the length of what is indexed, for `$` in the index."""
        if number is not None:
            self.lengths[number] = self.length_of(base)

    def dollar(self, node: Length) -> Column:
        return Column(self.lengths[node.number])

    def _piece(self, pieces: Pieces, places: Array, bad: Array | None) -> Column:
        if isinstance(pieces.cut, PiecesAt):
            texts, missing = pieces.cut.at(places)
            return Column(texts, either(bad, missing))
        outside = (places < 0) | (places >= pieces.count)
        asked = places[self.active & ~outside]
        if not pieces.most or not len(asked):
            return Column(slices.one_text("", self.count), np.ones(self.count, np.bool_))
        if (asked == asked[0]).all():  # as it is in loops
            return Column(pieces.cut(int(asked[0])), either(bad, outside))
        first = pieces.cut(0)
        starts, ends = first.starts, first.ends
        for number in range(1, pieces.most):
            part = pieces.cut(number)
            starts = np.where(places == number, part.starts, starts)
            ends = np.where(places == number, part.ends, ends)
        return Column(Slices(first.data, starts, ends), either(bad, outside))

    def slice(self, node: Slice) -> Column:
        if resolved(node.base.type) not in TEXTS:
            raise NotOnColumns("a slice of an array")
        base, bad = self.texts(node.base)
        self._measure(node.number, Column(base))
        (low, bad_low), (high, bad_high) = self.numbers(node.low), self.numbers(node.high)
        return Column(base.cut(low, high), either(bad, bad_low, bad_high))

    def part(self, node: Part) -> Column:
        base = self.value(node.base)
        if not isinstance(base.values, TupleColumn):
            raise NotOnColumns("a field of a tuple")
        column = base.values.columns[node.position]
        return Column(column.values, either(base.bad, column.bad))

    def make(self, node: Make) -> Column:
        if not isinstance(resolved(node.type), TupleOf):
            raise NotOnColumns("an array or a map that is made")
        columns = tuple(self.value(item) for item in node.items)
        whole = tuple(Column(c.values) for c in columns)
        return Column(TupleColumn(whole), either(*(c.bad for c in columns)))

    def apply(self, node: Apply) -> Column:
        return self.call(node)

    def defined(self, node: Defined) -> Column:
        bad = self.value(node.value).bad
        return Column(np.ones(self.count, np.bool_) if bad is None else ~bad)

    # --- conversions and functions ---

    def convert(self, node: Convert) -> Column:
        to, of = resolved(node.type), resolved(node.value.type)
        base = _constant(node.parameters[0]) if node.parameters else 0
        is_decimal = base == 10 and to == INT and of in TEXTS
        if node.parameters and not is_decimal:
            return self._converted(node)
        if to == of or (to in TEXTS and of in TEXTS):
            return self.value(node.value)
        if of in TEXTS and to in (INT, FLOAT):
            texts, bad = self.texts(node.value)
            if to == INT:
                values, status = slices.integers(texts, leading_zeros=is_decimal)
            else:
                values, status = slices.floats(texts)
            unsure = status == slices.UNKNOWN
            self.look_closer(unsure if bad is None else unsure & ~bad)
            return Column(values, bad)
        if of == INT and to in TEXTS:
            numbers, bad = self.numbers(node.value)
            return Column(decimal(numbers), bad)
        function = CONVERSIONS.get((to, of))
        if function is None:
            return self._converted(node)
        values, bad = self.numbers(node.value)
        converted, wrong = function(values)
        return Column(converted, either(bad, wrong))

    def _converted(self, node: Convert) -> Column:
        types = tuple(p.type for p in node.parameters)
        function = self.runtime.conversion(node.value.type, node.type, types)
        return self.asked(function, (node.value, *node.parameters), node.type)

    def intrinsic(self, node: Intrinsic) -> Column:
        if node.name == "row":
            return self.row(node.type)
        if node.name in _FUNCTIONS:
            try:
                found: Column = _FUNCTIONS[node.name](self, node)
            except NotOnColumns:
                if not _is_pure(node.name):
                    raise
            else:
                return found
        if not _is_pure(node.name):
            raise NotOnColumns(f"the function {node.name}")
        types = tuple(a.type for a in node.arguments)
        return self.asked(self.runtime.intrinsic(node.name, types), node.arguments, node.type)

    def format(self, node: Intrinsic) -> Column:
        """Texts and numbers one after the other; each other verb is a format of one value."""
        form, *values = node.arguments
        held = self.known(form)
        parts = None if held is None else pieces(held.value, tuple(v.type for v in values))
        if parts is None:
            raise NotOnColumns("a format that changes")
        following = iter(values)
        texts = [
            self.constant(p, STRING) if isinstance(p, str) else self._formatted(p, next(following))
            for p in parts
            if p != ""
        ]
        return self._joined(texts or [self.constant("", STRING)])

    def _formatted(self, verb: Verb, value: Expression) -> Column:
        kind = resolved(value.type)
        if verb.is_plain and verb.letter == "s" and kind == STRING:
            return self.value(value)
        if verb.is_plain and verb.letter in "di" and kind == INT:
            numbers, bad = self.numbers(value)
            return Column(decimal(numbers), bad)
        function = self.runtime.intrinsic("format", (STRING, value.type))
        return self.asked(function, (Const(verb.text, STRING), value), STRING)

    def pattern_code(self, node: Expression) -> PatternCode:
        """What is searched for: it must be known before the first record is."""
        text = None
        if isinstance(node, Const):
            text = node.value
        elif isinstance(node, Intrinsic) and node.name == "regex":
            text = pattern(*(_constant(argument) for argument in node.arguments))
        elif isinstance(node, Get) and node.var.level < 0:
            text = self.statics.get(node.var.number)
        code = pattern_code(text) if isinstance(text, str) else None
        if code is None:
            raise NotOnColumns("this pattern" if text is not None else "a pattern that changes")
        return code

    def match(self, node: Intrinsic) -> Column:
        found, _, bad = self._spans(node, *self.texts(node.arguments[1]))
        return Column(found, bad)

    def _spans(
        self, node: Intrinsic, texts: Slices, bad: Array | None
    ) -> tuple[Array, Array, Array | None]:
        chosen = self.active if bad is None else self.active & ~bad
        found, spans, unsure = searched(self.pattern_code(node.arguments[0]), texts, chosen)
        self.look_closer(unsure)
        return found, spans, bad

    def matchstrs(self, node: Intrinsic) -> Column:
        texts, bad = self.texts(node.arguments[1])
        found, spans, bad = self._spans(node, texts, bad)
        most = spans.shape[1] // 2
        pieces = Pieces(most, lambda n: span(texts, spans, n), np.where(found, most, 0))
        return Column(pieces, bad)

    def saw(self, node: Saw) -> Column:
        if node.rests:
            raise NotOnColumns("the rest of what is sawn")
        times = MOST_SAWN if node.count is None else _constant(node.count)
        texts, bad = self.texts(node.text)
        codes = [self.pattern_code(cut.pattern) for cut in node.cuts]
        going = self.active if bad is None else self.active & ~bad
        if len(codes) == 1 and not node.cuts[0].is_skipped and not node.cuts[0].is_submatch:
            return self._cut(all_matches(codes[0], texts, going, times), bad)
        sawing = Sawing(self.look_closer, texts, going)
        for _ in range(times):
            if self.count and not sawing.going.any():
                break
            sawing.once(node, codes)
            if not self.count:
                break
        if node.count is None:
            self.look_closer(sawing.going)  # those that are not through yet
        parts = sawing.parts
        return Column(Pieces(len(parts), parts.__getitem__, sawing.count), bad)

    def _cut(self, cut: Cut, bad: Array | None) -> Column:
        count, unsure, piece = cut
        # Texts with very many pieces are cut one by one.
        self.look_closer(unsure | (count >= MOST_SAWN))
        most = int(count.max()) if self.count else 1
        return Column(Pieces(most, piece, count), bad)

    def fields(self, node: Intrinsic) -> Column:
        texts, bad = self.texts(node.arguments[0])
        return self._cut(fields(texts, self.active if bad is None else self.active & ~bad), bad)

    def time(self, node: Intrinsic) -> Column:
        """What clocks and calendars in UTC show of a time."""
        zone = _constant(node.arguments[1]) if len(node.arguments) > 1 else ""
        if (zone or self.timezone) != "UTC":
            raise NotOnColumns(f"{node.name} in other zones than UTC")
        values, bad = self.numbers(node.arguments[0])
        is_far = (values < FIRST_TIME) | (values > LAST_TIME)
        if is_far.any():
            self.look_closer(is_far if bad is None else is_far & ~bad)
            values = np.where(is_far, 0, values)
        return Column(TIMES[node.name](values), bad)

    def length(self, node: Intrinsic) -> Column:
        column = self.value(node.arguments[0])
        return Column(self.length_of(column), column.bad)

    def length_of(self, column: Column) -> Array:
        match column.values:
            case Slices():
                return column.values.lengths()
            case Pieces(_, _, count):
                return count
        raise NotOnColumns("this length")

    def recased(self, node: Intrinsic) -> Column:
        texts, bad = self.texts(node.arguments[0])
        upper = node.name == "uppercase"
        known = self.recased_data.get((id(texts.data), upper))
        if known is None or known[0] is not texts.data:
            known = (texts.data, slices.recased(texts, upper=upper).data)
            self.recased_data[id(texts.data), upper] = known
        return Column(Slices(known[1], texts.starts, texts.ends), bad)

    def place(self, node: Intrinsic) -> Column:
        (part, bad_part), (text, bad_text) = (self.texts(a) for a in node.arguments)
        return Column(slices.places_of(part, text), either(bad_part, bad_text))

    def weight(self, node: Intrinsic) -> Column:
        values, bad = self.numbers(node.arguments[0])
        most = np.inf if node.name == WEIGHT else np.finfo(np.float64).max
        return Column(values, either(bad, ~((values >= 0) & (values <= most))))

    def number(self, node: Intrinsic) -> Column:
        if any(resolved(a.type) not in (INT, FLOAT, TIME) for a in node.arguments):
            raise NotOnColumns(f"{node.name} of texts")
        pairs = [self.numbers(a) for a in node.arguments]
        values = [v for v, _ in pairs]
        is_float = resolved(node.arguments[0].type) == FLOAT
        if is_float and node.name in ("min", "max"):
            # What Python says of NaN depends on the order.
            self.look_closer(np.logical_or.reduce([np.isnan(v) for v in values]))
        with np.errstate(all="ignore"):
            result = NUMBERS[node.name](*values)
        return Column(result, either(*(b for _, b in pairs)))


def _has_loop(operator: str, kinds: Sequence[RecordType]) -> bool:
    """Whether numbers of these types are worked on as whole columns."""
    if operator in COMPARED:
        return all(kind in DTYPES for kind in kinds)
    return (operator in OPERATORS or operator in ("/", "%")) and all(k in _NUMBERS for k in kinds)


def _is_pure(name: str) -> bool:
    return name in INTRINSICS and INTRINSICS[name].pure


def _summands(node: Expression) -> list[Expression]:
    """What is added up to a text, from left to right."""
    if isinstance(node, Operate) and node.operator == "+":
        left, right = node.arguments
        return [*_summands(left), right]
    return [node]


def _constant(node: Expression) -> Any:
    if not isinstance(node, Const):
        raise NotOnColumns("what is only known while a record is read")
    return node.value


def _no_piece(number: int) -> Slices:
    raise AssertionError(f"there is no piece {number}")


_READ: dict[type, Callable[[Columns, Any], Column]] = {
    Const: Columns.const, Get: Columns.get, Operate: Columns.operate, Logic: Columns.logic,
    Index: Columns.index, Slice: Columns.slice, Part: Columns.part, Defined: Columns.defined,
    Convert: Columns.convert, Intrinsic: Columns.intrinsic, Saw: Columns.saw,
    Make: Columns.make, Apply: Columns.apply, Length: Columns.dollar,
}  # fmt: skip
_FUNCTIONS: dict[str, Callable[[Columns, Any], Column]] = {
    "match": Columns.match, "matchstrs": Columns.matchstrs, "len": Columns.length,
    "lowercase": Columns.recased, "uppercase": Columns.recased, "strfind": Columns.place,
    "bytesfind": Columns.place, "format": Columns.format, "splitcsvline": Columns.fields,
    WEIGHT: Columns.weight, FINITE_WEIGHT: Columns.weight,
    **dict.fromkeys(NUMBERS, Columns.number), **dict.fromkeys(TIMES, Columns.time),
}  # fmt: skip
