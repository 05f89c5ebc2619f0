"""`Sheet`: a whole spreadsheet as one operator.

What the cells compute is said by rules, one per cell that can change; the others are
constants. The meaning is figure 4 of the streaming spreadsheets paper: every cell has ticks
and values, a formula ticks when something it refers to ticks, and keeps its value between.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from millstream.calculus.base import ANY_PARTITIONING, Facts, Function, FunctionFault, require_kind
from millstream.calculus.types import (
    BOOLEAN,
    DURATION,
    INTEGER,
    NUMBER,
    TEXT,
    TIME,
    Field,
    QueueType,
    Schema,
    Type,
)
from millstream.values.excel.syntax import Node, column_name
from millstream.values.excel.values import Scalar, exact

#: What cells can hold that leaves a sheet: a number may leave as one of four types.
_SHOWN = (NUMBER, TEXT, BOOLEAN, INTEGER, TIME, DURATION)

#: What goes through a cell and is the same behind it; a number may be infinite, or too long.
_UNCHANGED = (TEXT, BOOLEAN)

#: Worksheet, row and column.
Address = tuple[str, int, int]

#: The worksheet of cells that no worksheet has: parts of formulas that are cells of their
#: own after flattening. No worksheet can bear this name.
HIDDEN_SHEET = ":"


def address_text(address: Address) -> str:
    sheet, row, column = address
    if sheet == HIDDEN_SHEET:
        return f":{row}"
    return f"{sheet}!{column_name(column)}{row}"


@dataclass(frozen=True, slots=True)
class Fed:
    """A column of an input arrives in this cell."""

    input: int
    column: str


@dataclass(frozen=True, slots=True)
class Computed:
    """A formula. An array formula may fill several cells; `element` says which part."""

    formula: Node
    is_array: bool = False
    element: tuple[int, int] = (0, 0)


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """The values of a cell in the `length` microseconds up to the last tick of `trigger`."""

    source: Address
    length: int
    trigger: Address


@dataclass(frozen=True, slots=True)
class CountWindow:
    """The last `count` values of a cell up to the last tick of `trigger`."""

    source: Address
    count: int
    trigger: Address


@exact
@dataclass(frozen=True, slots=True)
class Previous:
    """The value of a cell at the tick of `trigger` before the last one."""

    source: Address
    trigger: Address
    initial: Scalar


@dataclass(frozen=True, slots=True)
class Selected:
    """The value of a cell at the last tick of `condition` at which that was TRUE."""

    source: Address
    condition: Address


Rule = Fed | Computed | TimeWindow | CountWindow | Previous | Selected
Windows = (TimeWindow, CountWindow)


@dataclass(frozen=True, slots=True)
class SheetCell:
    """A cell that can change; `refers_to` are all such cells its formula mentions."""

    address: Address
    rule: Rule
    refers_to: tuple[Address, ...] = ()

    @property
    def causes(self) -> tuple[Address, ...]:
        """The cells whose ticks make this one tick."""
        match self.rule:
            case Computed():
                return self.refers_to
            case TimeWindow(_, _, trigger) | CountWindow(_, _, trigger) | Previous(_, trigger, _):
                return (trigger,)
            case Selected(_, condition):
                return (condition,)
            case _:
                return ()

    @property
    def needs(self) -> tuple[Address, ...]:
        """The cells that must be up to date before this one: all but the source of PRE."""
        match self.rule:
            case Computed():
                return self.refers_to
            case TimeWindow(source, _, other) | CountWindow(source, _, other):
                return (source, other)
            case Selected(source, condition):
                return (source, condition)
            case Previous(_, trigger, _):
                return (trigger,)
            case _:
                return ()

    @property
    def looks_at(self) -> tuple[Address, ...]:
        """All cells that it looks at, now or later."""
        source = (self.rule.source,) if isinstance(self.rule, Previous) else ()
        return (*self.refers_to, *self.needs, *source)


def reached(wanted: Iterable[Address], cells: Mapping[Address, SheetCell]) -> set[Address]:
    """What some cells need of those that change, they included."""
    kept, waiting = set[Address](), [a for a in wanted if a in cells]
    while waiting:
        address = waiting.pop()
        if address not in kept:
            kept.add(address)
            waiting += [a for a in cells[address].looks_at if a in cells]
    return kept


def tick_atoms(cells: Iterable[SheetCell]) -> dict[Address, frozenset[object]]:
    """What makes each cell tick: inputs, and selections. Cells with the same tick together.

    The cells stand in an order in which they can be computed.
    """
    atoms: dict[Address, frozenset[object]] = {}
    for cell in cells:
        if isinstance(cell.rule, Fed):
            atoms[cell.address] = frozenset((cell.rule.input,))
        elif isinstance(cell.rule, Selected):
            # It ticks when its condition is true, once its source is there.
            source, condition = cell.rule.source, cell.rule.condition
            atoms[cell.address] = frozenset(((condition, atoms.get(source, source)),))
        else:
            atoms[cell.address] = frozenset[object]().union(
                *(atoms.get(a, frozenset()) for a in cell.causes)
            )
    return atoms


def _remembered(
    cells: tuple[SheetCell, ...], outputs: Iterable[tuple[Address, ...]], *, is_brief: bool = False
) -> frozenset[Address]:
    """What windows and PRE look back to, and what is read when it need not have just ticked.

    If it is to be brief, only cells of which the last value is asked for: that of a trigger of PRE
    is not, and windows keep their own.
    """
    atoms = tick_atoms(cells)
    none: frozenset[object] = frozenset()

    def has_ticked(address: Address, when: frozenset[object]) -> bool:
        """Whether a cell ticks whenever one of some inputs and selections does."""
        own = atoms[address]
        return when <= own or all(
            # A selection ticks only when its condition does.
            a in own or (isinstance(a, tuple) and has_ticked(address, atoms.get(a[0], none)))
            for a in when
        )

    def kept(addresses: Iterable[Address], when: frozenset[object]) -> Iterator[Address]:
        return (a for a in addresses if a in atoms and not has_ticked(a, when))

    remembered: set[Address] = set()
    for cell in cells:
        match cell.rule:
            case Fed():
                pass
            case Computed():
                remembered.update(kept(cell.refers_to, atoms[cell.address]))
            case Selected(source, condition):
                remembered.update(kept((source,), atoms.get(condition, none)))
            case TimeWindow(source, _, _) | CountWindow(source, _, _):
                remembered.update(() if is_brief else (source,))
            case Previous(source, trigger, _):
                remembered.update((source,) if is_brief else (source, trigger))
    for shown in outputs:
        remembered.update(kept(shown, none.union(*(atoms.get(a, none) for a in shown))))
    return frozenset(remembered)


@dataclass(frozen=True, slots=True)
class OutputColumn:
    """An attribute of an output tuple and the cell it is read from."""

    name: str
    address: Address
    type: Type


def _enough(
    columns: tuple[OutputColumn, ...],
    wanted: frozenset[str],
    atoms: dict[Address, frozenset[object]],
) -> tuple[OutputColumn, ...]:
    """The columns that are wanted, and others without which it would be sent less often."""
    none: frozenset[object] = frozenset()
    kept = {c.name for c in columns if c.name in wanted}
    ticks = none.union(*(atoms.get(c.address, none) for c in columns if c.name in kept))
    for column in columns:
        if not atoms.get(column.address, none) <= ticks:
            kept.add(column.name)
            ticks |= atoms[column.address]
    return tuple(c for c in columns if c.name in kept)


@exact
@dataclass(frozen=True, slots=True)
class Sheet(Function):
    """A spreadsheet, run for every key.

    `cells` stand in an order in which they can be computed: sources before what needs
    them, PRE first. `keys` has the partitioning column of each input, or nothing. With
    `fires_per_instant` all tuples of an instant are taken in before the sheet is computed
    once; otherwise it is computed for each tuple.
    """

    cells: tuple[SheetCell, ...]
    constants: tuple[tuple[Address, Scalar], ...]
    keys: tuple[str, ...]
    outputs: tuple[tuple[OutputColumn, ...], ...]
    fires_per_instant: bool = False
    uses_1904: bool = False
    #: The cells of which a later firing looks at something.
    remembered: frozenset[Address] = field(init=False, repr=False, compare=False)
    input_count: ClassVar[int | None] = None
    output_count: ClassVar[int | None] = None

    def __post_init__(self) -> None:
        shown = (tuple(c.address for c in columns) for columns in self.outputs)
        object.__setattr__(self, "remembered", _remembered(self.cells, shown))

    def state_count(self, inputs: int) -> int:
        return inputs + len(self.stateful())

    def stateful(self) -> tuple[SheetCell, ...]:
        """The cells with a variable of their own: they are named after these."""
        return tuple(c for c in self.cells if c.address in self.remembered)

    def last_values(self) -> frozenset[Address]:
        """The cells whose last value is kept; what windows keep is theirs."""
        shown = (tuple(c.address for c in columns) for columns in self.outputs)
        values = {c.address for c in self.cells if not isinstance(c.rule, Windows)}
        return _remembered(self.cells, shown, is_brief=True) & values

    def fed(self, index: int) -> tuple[tuple[Address, str], ...]:
        """The cells that an input fills, with its columns."""
        return tuple(
            (c.address, c.rule.column)
            for c in self.cells
            if isinstance(c.rule, Fed) and c.rule.input == index
        )

    def carried(self, inputs: tuple[QueueType, ...]) -> dict[str, str]:
        """The columns of what leaves that are columns of what came, each with its name there.

        Where there are several inputs, a tuple of one may let out what another has brought.
        """
        if len(inputs) > 1 or len(self.outputs) > 1 or self.fires_per_instant:
            return {}
        fed, schema = dict(self.fed(0)), inputs[0].schema
        return {
            c.name: fed[c.address]
            for c in self.outputs[0]
            if c.type in _UNCHANGED and c.address in fed and schema[fed[c.address]] == c.type
        }

    def narrowed(self, wanted: Sequence[frozenset[str]]) -> Sheet:
        """With those columns of each output that are wanted, and the cells that these need.

        An output is sent when one of its cells ticks: enough of them stay that it still is.
        """
        atoms = tick_atoms(self.cells)
        outputs = tuple(
            _enough(columns, names, atoms)
            for columns, names in zip(self.outputs, wanted, strict=True)
        )
        shown = {c.address for columns in outputs for c in columns}
        needed = reached(shown, {c.address: c for c in self.cells})
        cells = tuple(c for c in self.cells if c.address in needed)
        if outputs == self.outputs and len(cells) == len(self.cells):
            return self
        return replace(self, cells=cells, outputs=outputs)

    def output_types(self, inputs: tuple[QueueType, ...], outputs: int) -> tuple[QueueType, ...]:
        require_kind(inputs, "Sheet", is_relation=False)
        faults = list(self._misfits(inputs))
        if outputs != len(self.outputs):
            faults.append(f"Sheet has {len(self.outputs)} outputs, got {outputs} queues")
        if faults:
            raise FunctionFault(*faults)
        return tuple(
            QueueType(Schema(tuple(Field(c.name, c.type) for c in columns)))
            for columns in self.outputs
        )

    def _misfits(self, inputs: tuple[QueueType, ...]) -> Iterator[str]:
        for cell in self.cells:
            rule = cell.rule
            if not isinstance(rule, Fed):
                continue
            if rule.input >= len(inputs):
                place = address_text(cell.address)
                yield f"{place} is fed by input {rule.input + 1} of {len(inputs)}"
            elif rule.column not in inputs[rule.input].schema:
                names = ", ".join(inputs[rule.input].schema.names)
                place = address_text(cell.address)
                yield f'{place}: unknown column "{rule.column}"; there are: {names}'
        for column in (c for columns in self.outputs for c in columns):
            if column.type not in _SHOWN:
                wanted = ", ".join(map(str, _SHOWN))
                yield f"a cell gives {wanted}: {column.name} cannot be of type {column.type}"
        if self.keys and len(self.keys) != len(inputs):
            yield f"Sheet has {len(self.keys)} keys for {len(inputs)} inputs"
            return
        for key, queue in zip(self.keys, inputs, strict=False):
            if key not in queue.schema:
                names = ", ".join(queue.schema.names)
                yield f'Sheet: unknown key column "{key}"; there are: {names}'
        types = {q.schema.get(k) for k, q in zip(self.keys, inputs, strict=False)}
        if len(types) > 1 and None not in types:
            yield f"the keys of Sheet have different types: {', '.join(sorted(map(str, types)))}"

    def facts(self, inputs: tuple[QueueType, ...], index: int) -> Facts:
        reads = {column for _, column in self.fed(index)}
        key: tuple[str, ...] = (self.keys[index],) if self.keys else ()
        forwarded = frozenset(new for new, old in self.carried(inputs).items() if new == old)
        # Several inputs wait for each other, and so do the tuples of an instant.
        is_row_by_row = len(inputs) == 1 and not self.fires_per_instant and not self.remembered
        return Facts(
            reads=frozenset(reads) | frozenset(key),
            forwards=forwarded,
            writes=frozenset(c.name for columns in self.outputs for c in columns) - forwarded,
            is_stateless=is_row_by_row,
            key=ANY_PARTITIONING if is_row_by_row else key,
        )
