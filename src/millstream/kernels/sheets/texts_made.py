"""Texts that formulas put together, made for all rows of a batch at once.

Messages hardly ever repeat: to keep them by what they are made of is in vain. Those that only
join texts, and numbers in common formats, are made by columns; rows in which something is empty,
an error or out of the ordinary are left out, and computed one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.calculus.sheets import Address, Computed, SheetCell
from millstream.kernels.sheets.written import Format, GeneralFormat, format_of
from millstream.plan.batch import Array
from millstream.values.excel.kinds import Kind
from millstream.values.excel.syntax import Binary, Call, Cell, Group, Literal, Node
from millstream.values.excel.values import MAX_TEXT, Scalar, general

#: A column of numbers, truths or texts, at some places or at all.
Column = Callable[[Array | None], Any]


@dataclass
class Rows:
    """The rows that a text is made for, and who of them is left out.

    Mutable: rows are left out as they turn out to be odd. Columns are read when they are asked for.
    """

    columns: Mapping[Address, Column]
    left_out: Array
    places: Array | None = None

    def column(self, address: Address) -> Any:
        return self.columns[address](self.places)

    def taken(self, places: Array) -> Rows:
        among = places if self.places is None else self.places.take(places)
        return Rows(self.columns, self.left_out.take(places), among)


def as_column(values: Any) -> Column:
    """An array as a column."""
    return lambda places: values if places is None else values.take(places)


Maker = Callable[[Rows], Any]
Change = Callable[[Any], Any]
_CASES: dict[str, Change] = {
    "LOWER": pc.ascii_lower, "PROPER": pc.ascii_title, "UPPER": pc.ascii_upper,
}  # fmt: skip


class TextsMade:
    """How the text of a cell is made of columns."""

    def __init__(
        self, cells: Sequence[SheetCell], kinds: Mapping[Address, Kind],
        constants: Mapping[Address, Scalar],
    ) -> None:  # fmt: skip
        self.formulas = {c.address: c.rule for c in cells if isinstance(c.rule, Computed)}
        self.kinds = kinds
        self.constants = constants

    def maker(self, address: Address) -> Maker | None:
        """None if it is not made here."""
        rule = self.formulas.get(address)
        if rule is None or rule.is_array:
            return None
        return self._text(rule.formula)

    def _text(self, node: Node) -> Maker | None:
        """A part of a formula that is a text, whatever it is made of."""
        match node:
            case Literal(str(text)):
                return _always(text)
            case Group(inner):
                return self._text(inner)
            case Cell(sheet, row, column):
                return self._cell((sheet, row, column))
            case Binary("&"):
                return self._joined(_operands(node))
            case Call("CONCATENATE" | "CONCAT", parts):
                return self._joined(parts)
            case Call("TEXT", (number, Literal(str(pattern)))):
                return self._number(number, format_of(pattern))
            case Call("UPPER" | "LOWER" | "PROPER" as function, (text,)):
                return self._in_case(function, text)
            case Call("LEFT" | "RIGHT" | "MID", (text, *counts)):
                return self._changed(text, _slice(node.function, counts))
            case Call("TRIM", (text,)):
                return self._changed(text, _trimmed)
            case Call("SUBSTITUTE", (text, Literal(str(old)), Literal(str(new)))) if old:
                return self._changed(
                    text, lambda t: pc.replace_substring(t, pattern=old, replacement=new)
                )
            case Call("IF", (Cell(sheet, row, column), then, other)):
                return self._choice((sheet, row, column), self._text(then), self._text(other))
        return None

    def _cell(self, address: Address) -> Maker | None:
        kind = self.kinds.get(address)
        if kind is Kind.TEXT:
            return lambda rows: rows.column(address)
        if kind is not None:
            return None
        if address in self.formulas:
            return self.maker(address)
        value = self.constants.get(address)
        return _always(value) if type(value) is str else None

    def _joined(self, parts: Sequence[Node]) -> Maker | None:
        makers = []
        for part in parts:
            maker = self._text(part) or self._number(part, GeneralFormat())
            if maker is None:
                return None
            makers.append(maker)

        def make(rows: Rows) -> Any:
            made = [maker(rows) for maker in makers]
            return pc.binary_join_element_wise(*made, "")

        return make

    def _number(self, node: Node, format_: Format | None) -> Maker | None:
        if isinstance(node, Group):
            return self._number(node.inner, format_)
        if isinstance(node, Literal) and type(node.value) is float:
            text = general(node.value)
            return _always(text) if isinstance(format_, GeneralFormat) else None
        if not isinstance(node, Cell) or format_ is None:
            return None
        address = (node.sheet, node.row, node.column)
        if self.kinds.get(address) is not Kind.NUMBER:
            return None
        return lambda rows: format_.write(rows.column(address), rows.left_out)

    def _changed(self, node: Node, change: Change | None) -> Maker | None:
        """What a function of arrow makes of a text; of one that is too long nothing is."""
        maker = self._text(node) or self._number(node, GeneralFormat())
        if maker is None or change is None:
            return None

        def make(rows: Rows) -> Any:
            text = maker(rows)
            if isinstance(text, pa.Scalar):
                text = pa.repeat(text, len(rows.left_out))
            is_long = pc.greater(pc.binary_length(text), MAX_TEXT)
            rows.left_out |= pc.fill_null(is_long, False).to_numpy(zero_copy_only=False)
            return change(text)

        return make

    def _in_case(self, function: str, node: Node) -> Maker | None:
        maker = self._text(node)
        if maker is None:
            return None
        change = _CASES[function]

        def make(rows: Rows) -> Any:
            text = maker(rows)
            if isinstance(text, pa.Scalar):
                text = pa.repeat(text, len(rows.left_out))
            is_odd = pc.not_equal(pc.binary_length(text), pc.utf8_length(text))
            rows.left_out |= pc.fill_null(is_odd, False).to_numpy(zero_copy_only=False)
            return change(text)

        return make

    def _choice(self, test: Address, then: Maker | None, other: Maker | None) -> Maker | None:
        if then is None or other is None or self.kinds.get(test) is not Kind.BOOLEAN:
            return None

        def make(rows: Rows) -> Any:
            return chosen(rows, np.asarray(rows.column(test), np.bool_), then, other)

        return make


def _operands(node: Node) -> list[Node]:
    """What a chain of `&` puts together, so that each row is written once."""
    match node:
        case Binary("&", left, right):
            return [*_operands(left), *_operands(right)]
        case Group(inner):
            return _operands(inner) if isinstance(inner, Binary | Group) else [inner]
    return [node]


def _slice(function: str, counts: Sequence[Node]) -> Change | None:
    """A part of a text between places that are written in the formula."""
    whole = [
        int(n.value)
        for n in counts
        if isinstance(n, Literal) and type(n.value) is float and 0 <= n.value <= MAX_TEXT
    ]
    if len(whole) < len(counts):
        return None
    match function, whole:
        case "LEFT", []:
            return lambda t: pc.utf8_slice_codeunits(t, start=0, stop=1)
        case "LEFT", [count]:
            return lambda t: pc.utf8_slice_codeunits(t, start=0, stop=count)
        case "RIGHT", []:
            return lambda t: pc.utf8_slice_codeunits(t, start=-1)
        case "RIGHT", [count] if count:
            return lambda t: pc.utf8_slice_codeunits(t, start=-count)
        case "MID", [start, count] if start:
            return lambda t: pc.utf8_slice_codeunits(t, start=start - 1, stop=start - 1 + count)
    return None


def _trimmed(texts: Any) -> Any:
    ends = pc.utf8_trim(texts, characters=" ")
    return pc.replace_substring_regex(ends, pattern=" +", replacement=" ")


def _always(text: str) -> Maker:
    return lambda _: pa.scalar(text)


def chosen(rows: Rows, holds: Array, then: Maker, other: Maker) -> Any:
    """Each side is made for the rows that want it alone."""
    sides = []
    for maker, wanted in ((then, holds), (other, ~holds)):
        places = np.flatnonzero(wanted)
        some = rows.taken(places)
        sides.append(maker(some))
        rows.left_out[places] = some.left_out
    made, rest = sides
    if isinstance(made, pa.Scalar):
        made, rest, holds = rest, made, ~holds
    if isinstance(made, pa.Scalar):
        made = pa.repeat(made, int(holds.sum()))
    if isinstance(rest, pa.Scalar):
        return pc.replace_with_mask(pa.repeat(rest, len(holds)), pa.array(holds), made)
    order = np.empty(len(holds), np.int64)
    order[holds] = np.arange(len(made))
    order[~holds] = len(made) + np.arange(len(rest))
    return pa.concat_arrays([made, rest]).take(pa.array(order))


def made_texts(maker: Maker, rows: Rows) -> Any:
    """The texts of all rows that are not left out; those that are too long are."""
    texts = maker(rows)
    if isinstance(texts, pa.Scalar):
        texts = pa.repeat(texts, len(rows.left_out))
    if len(texts) and pc.max(pc.binary_length(texts)).as_py() > MAX_TEXT:
        rows.left_out[:] = True
    return texts
