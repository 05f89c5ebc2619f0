"""The windows of a sheet as its loop keeps them: groups, and what each keeps for aggregates.

Windows of one rule whose sources always tick together share a group, equal ones a column.
What an aggregate needs is asked for while formulas are compiled; then every word gets its
place, and each group two functions that are told what enters and what leaves.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar

from millstream.calculus.sheets import (
    Address,
    CountWindow,
    Sheet,
    SheetCell,
    TimeWindow,
    Windows,
    tick_atoms,
)
from millstream.kernels.loops_product import PRODUCT, PRODUCT_ROW
from millstream.kernels.loops_sums import CELL
from millstream.kernels.loops_tops import TOP_ROW, words_of
from millstream.kernels.loops_tree import NODE, TREE_ROW
from millstream.kernels.loops_window import COUNTS, GROUP, QUEUE, VALUES

#: A byte of the word of statuses for each.
_MAX_COLUMNS = 8

#: What generated functions are given: the row of the key in both forms, the pool likewise.
_HEAD = "row, floats, pool, numbers, wides, folded"

#: A sum to compute with.
_SCRATCH = ("scratch", ())
_ADDED = "add_to_sum(row, floats, {place}, found, wides)"
#: What a scan does with each number, and what it gives in the end.
_SCANNED = {
    "COUNT": "pass", "SUM": _ADDED, "AVERAGE": _ADDED,
    "MIN": "value = found if count == 0 or found < value else value",
    "MAX": "value = found if count == 0 or found > value else value",
}  # fmt: skip
_RESULTS = {
    "COUNT": "(float(met), 0)",
    "SUM": "window_sum(row, floats, {place}, error, wides)",
    "AVERAGE": "window_average(row, floats, {place}, error, count, wides)",
    "MIN": "(value if error == 0 else 0.0, error)",
    "MAX": "(value if error == 0 else 0.0, error)",
}

#: What enters a sum: a number, its square and what rounding left out of that, products;
#: nothing if it is only to compute with.
Summand = tuple[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on a column, as an expression of its value `{v}` and its status `{s}`."""

    column: int
    test: str

    @property
    def needs_value(self) -> bool:
        """Is it met by nothing that is empty or an error?"""
        return self.test.startswith("{s} == 0 and ")


#: Conditions that must all be met.
Conditions = tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Scan:
    """COUNT, SUM, AVERAGE, MIN or MAX of what meets conditions, found by looking at it all.

    Each of the `given` criteria that are computed is four arguments of the function for it.
    """

    name: str
    conditions: Conditions
    summed: int
    given: int


@dataclass
class Group:
    """Mutable: windows that share their places, and what is asked of them."""

    number: int
    rule: TimeWindow | CountWindow
    columns: list[Address] = field(default_factory=list)
    sums: list[Summand] = field(default_factory=list)
    conditional: list[tuple[Conditions, int]] = field(default_factory=list)
    queues: list[tuple[int, int, Conditions]] = field(default_factory=list)
    trees: list[int] = field(default_factory=list)
    modes: list[int] = field(default_factory=list)
    products: list[int] = field(default_factory=list)
    peaks: list[tuple[int, int]] = field(default_factory=list)
    scans: list[Scan] = field(default_factory=list)
    #: For columns and signs, how many of the first numbers are asked for.
    tops: dict[tuple[int, int], int] = field(default_factory=dict)

    def sum(self, summand: Summand) -> str:
        """The name of the place of a sum in the rows."""
        return f"A{self.number}_{_place(self.sums, summand)}"

    def matching(self, conditions: Conditions, summed: int) -> str:
        """The place of a sum of what meets conditions, and of counts; -1 sums nothing."""
        return f"I{self.number}_{self.matching_number(conditions, summed)}"

    def matching_number(self, conditions: Conditions, summed: int) -> int:
        return _place(self.conditional, (conditions, summed))

    def queue(self, column: int, sign: int, conditions: Conditions = ()) -> tuple[str, str]:
        """The places of a queue in the rows and in the elements."""
        number = _place(self.queues, (column, sign, conditions))
        return f"Q{self.number}_{number}", f"QW{self.number}_{number}"

    def tree(self, column: int) -> str:
        return f"T{self.number}_{_place(self.trees, column)}"

    def mode(self, column: int) -> str:
        """The tree of a column, and that of its different numbers."""
        return f"{self.tree(column)}, M{self.number}_{_place(self.modes, column)}"

    def product(self, column: int) -> str:
        return f"R{self.number}_{_place(self.products, column)}"

    def peak(self, column: int, sign: int = 1) -> str:
        """The tree of the least values; of the greatest with a negative sign."""
        return f"P{self.number}_{_place(self.peaks, (column, sign))}"

    def top(self, column: int, sign: int, count: int) -> str:
        """The queues of the greatest numbers; of the least with a negative sign."""
        self.tops[column, sign] = max(count, self.tops.get((column, sign), 0))
        return f"O{self.number}_{list(self.tops).index((column, sign))}"

    def scan(self, scan: Scan) -> str:
        """The function that looks at the whole window."""
        self.sum(_SCRATCH)
        return f"scan_{self.number}_{_place(self.scans, scan)}"

    def counts(self, column: int) -> str:
        return f"X{self.number}_{column}"

    # --- places ---

    @property
    def values_end(self) -> int:
        return VALUES + len(self.columns)

    @property
    def stride(self) -> int:
        nodes = NODE * len(self.trees) + (NODE + 1) * len(self.modes)
        kept = PRODUCT * len(self.products) + len(self.peaks) + sum(self.tops.values())
        return self.values_end + len(self.queues) + nodes + kept

    @property
    def sum_count(self) -> int:
        return len(self.sums) + len(self.conditional)

    def place(self, start: int) -> tuple[list[str], int]:
        """Definitions of all places, when the words of the group begin at `start`."""
        g, at = self.number, start + GROUP
        lines = [f"G{g} = {start}", f"E{g} = {self.stride}"]
        for n in range(len(self.columns)):
            lines.append(f"X{g}_{n} = {at}")
            at += COUNTS
        for n in range(len(self.sums)):
            lines.append(f"A{g}_{n} = {at}")
            at += CELL
        for n in range(len(self.conditional)):
            lines.append(f"I{g}_{n} = {at}")
            at += CELL + 3
        word = self.values_end
        pairs = []
        for n in range(len(self.queues)):
            lines += [f"Q{g}_{n} = {at}", f"QW{g}_{n} = {word}"]
            pairs.append((at, word))
            at += QUEUE
            word += 1
        for n, column in enumerate(self.trees):
            lines.append(f"T{g}_{n} = ({start}, {self.stride}, {at}, {word}, {VALUES + column})")
            at += TREE_ROW
            word += NODE
        for n in range(len(self.modes)):
            lines.append(f"M{g}_{n} = ({start}, {self.stride}, {at}, {word}, {word + NODE})")
            at += TREE_ROW
            word += NODE + 1
        for n, column in enumerate(self.products):
            lines.append(f"R{g}_{n} = ({start}, {self.stride}, {at}, {word}, {column})")
            at += PRODUCT_ROW
            word += PRODUCT
        for n, (column, sign) in enumerate(self.peaks):
            lines.append(f"P{g}_{n} = ({start}, {self.stride}, {word}, {column}, {sign}.0)")
            word += 1
        for n, ((column, sign), levels) in enumerate(self.tops.items()):
            where = f"{start}, {self.stride}, {at}, {word}, {column}, {sign}.0, {levels}"
            lines.append(f"O{g}_{n} = ({where})")
            pairs += [(at + TOP_ROW * level, word + level) for level in range(levels)]
            at += words_of(levels)
            word += levels
        lines.append(f"QUEUES{g} = np.array({pairs!r}, np.int64).reshape(-1, 2)")
        return lines, at

    # --- functions ---

    def functions(self, *, is_apart: bool) -> list[str]:
        lines = [*self._change("enter", 1), *self._change("leave", -1)]
        lines += self._advance() + self._append() + self._push(is_apart=is_apart)
        for n, (_, summed) in enumerate(self.conditional):
            lines += self._error_function(n) if summed >= 0 else []
        for n in range(len(self.scans)):
            lines += self._scan_function(n)
        return lines

    @property
    def _names(self) -> str:
        return ", ".join(f"v{n}" for n in range(len(self.columns)))

    def _advance(self) -> list[str]:
        """The trigger has ticked: what waits enters, what is beyond the limit leaves."""
        g = self.number
        return [
            "@apart",
            f"def advance_{g}({_HEAD}, limit):",
            f"    while row[G{g} + SEEN] < row[G{g} + END]:",
            f"        enter_{g}({_HEAD})",
            f"    while {self._has_left()}:",
            f"        leave_{g}({_HEAD})",
            "",
            "",
        ]

    def _has_left(self) -> str:
        g = self.number
        if isinstance(self.rule, TimeWindow):
            return f"has_left(row, pool, G{g}, E{g}, limit)"
        return f"row[G{g} + SEEN] - row[G{g} + FIRST] > limit"

    def _append(self) -> list[str]:
        """Values come, which are not in the window before the trigger ticks."""
        g = self.number
        return [
            "@apart",
            f"def append_{g}(row, pool, numbers, used, time, statuses, {self._names}):",
            f"    if row[G{g} + END] - row[G{g} + FIRST] >= row[G{g} + CAPACITY]:",
            f"        move(row, pool, used, G{g}, E{g}, QUEUES{g})",
            *(f"        peaks_moved(row, pool, numbers, P{g}_{n})" for n in range(len(self.peaks))),
            f"    at = place_of(row, G{g}, E{g}, row[G{g} + END])",
            "    pool[at + TIME], pool[at + STATUSES] = time, statuses",
            *(f"    numbers[at + VALUES + {n}] = v{n}" for n in range(len(self.columns))),
            f"    row[G{g} + END] += 1",
            "",
            "",
        ]

    def _push(self, *, is_apart: bool) -> list[str]:
        """Values come and the trigger ticks: they enter as they are, unless some wait."""
        g = self.number
        return [
            "@apart" if is_apart else "@inlined",
            f"def push_{g}({_HEAD}, used, time, limit, statuses, {self._names}):",
            f"    position, base = row[G{g} + END], row[G{g} + BASE]",
            f"    size, first = row[G{g} + CAPACITY], row[G{g} + FIRST]",
            f"    if row[G{g} + SEEN] != position or position - first >= size:",
            f"        append_{g}(row, pool, numbers, used, time, statuses, {self._names})",
            f"        advance_{g}({_HEAD}, limit)",
            "        return",
            f"    at = base + (position & (size - 1)) * E{g}",
            "    pool[at + TIME], pool[at + STATUSES] = time, statuses",
            *(f"    numbers[at + VALUES + {n}] = v{n}" for n in range(len(self.columns))),
            *(f"    s{n} = (statuses >> {8 * n}) & 0xFF" for n in range(len(self.columns))),
            *(f"    {line}" for line in self._changes("enter", 1)),
            f"    row[G{g} + SEEN] = row[G{g} + END] = position + 1",
            f"    while {self._has_left()}:",
            f"        leave_{g}({_HEAD})",
            "",
            "",
        ]

    def _error_function(self, number: int) -> list[str]:
        """The first error among the values whose neighbours meet a condition."""
        g = self.number
        conditions, summed = self.conditional[number]
        test = _test(conditions, "numbers[at + VALUES + {c}]", "((statuses >> {b}) & 0xFF)")
        return [
            "@apart",
            f"def error_{g}_{number}(row, pool, numbers, folded):",
            f"    for position in range(row[G{g} + FIRST], row[G{g} + SEEN]):",
            f"        at = place_of(row, G{g}, E{g}, position)",
            "        statuses = pool[at + STATUSES]",
            f"        if {test}:",
            f"            status = (statuses >> {8 * summed}) & 0xFF",
            "            if status >= 10:",
            "                return status",
            "    return 0",
            "",
            "",
        ]

    def _scan_function(self, number: int) -> list[str]:
        g, scan, place = self.number, self.scans[number], self.sum(_SCRATCH)
        test = _test(scan.conditions, "numbers[at + VALUES + {c}]", "((statuses >> {b}) & 0xFF)")
        given = "".join(f", e{n}, l{n}, h{n}, n{n}" for n in range(scan.given))
        return [
            "@apart",
            f"def scan_{g}_{number}({_HEAD}{given}):",
            "    met, count, error, value = 0, 0, 0, 0.0",
            f"    for position in range(row[G{g} + FIRST], row[G{g} + SEEN]):",
            f"        at = place_of(row, G{g}, E{g}, position)",
            "        statuses = pool[at + STATUSES]",
            f"        if not ({test}):",
            "            continue",
            "        met += 1",
            f"        status = (statuses >> {8 * scan.summed}) & 0xFF",
            f"        found = numbers[at + VALUES + {scan.summed}]",
            "        if status == 0:",
            f"            {_SCANNED[scan.name].format(place=place)}",
            "            count += 1",
            "        elif status >= 10 and error == 0:",
            "            error = status",
            f"    result = {_RESULTS[scan.name].format(place=place)}",
            f"    clear_sum(row[{place} : {place} + {CELL}], wides)",
            "    return result",
            "",
            "",
        ]

    def _change(self, name: str, sign: int) -> list[str]:
        g = self.number
        word = "SEEN" if sign > 0 else "FIRST"
        values = [
            f"s{n}, v{n} = (statuses >> {8 * n}) & 0xFF, numbers[at + VALUES + {n}]"
            for n in range(len(self.columns))
        ]
        body = [
            f"position = row[G{g} + {word}]",
            f"at = place_of(row, G{g}, E{g}, position)",
            "statuses = pool[at + STATUSES]",
            *values,
            *self._changes(name, sign),
            f"row[G{g} + {word}] = position + 1",
        ]
        return ["@inlined", f"def {name}_{g}({_HEAD}):", *(f"    {line}" for line in body), "", ""]

    def _changes(self, name: str, sign: int) -> list[str]:
        """What it means to all that is kept that values enter or leave."""
        g = self.number
        body = ["if statuses != 0:"]
        for n in range(len(self.columns)):
            body.append(f"    if s{n} != 0:")
            body.append(f"        count_odd(row, X{g}_{n}, s{n}, {sign})")
        for number, summand in enumerate(self.sums):
            body += _added(f"A{g}_{number}", summand, sign)
        for number, (conditions, summed) in enumerate(self.conditional):
            body += _counted(f"I{g}_{number}", conditions, summed, sign)
        for number in range(len(self.queues)):
            body += self._queued(number, sign)
        for number, column in enumerate(self.trees):
            body.append(f"if s{column} == 0:")
            body.append(f"    tree_{name}(row, pool, numbers, T{g}_{number}, position)")
        for column in self.modes:
            body.append(f"if s{column} == 0:")
            body.append(f"    mode_{name}(row, pool, numbers, {self.mode(column)}, position)")
        for number, column in enumerate(self.products):
            body.append(
                f"product_enter(row, R{g}_{number}[2], s{column}, v{column})"
                if sign > 0
                else f"product_leave(row, pool, numbers, R{g}_{number}, position)"
            )
        for number, (column, _) in enumerate(self.tops):
            read = "row, pool, numbers" if sign > 0 else "row, pool"
            body.append(f"if s{column} == 0:")
            body.append(f"    tops_{name}({read}, O{g}_{number}, position)")
        if sign > 0:
            for number in range(len(self.peaks)):
                body.append(f"peaks_enter(row, pool, numbers, P{g}_{number}, position)")
        return body

    def _queued(self, number: int, sign: int) -> list[str]:
        g = self.number
        column, direction, conditions = self.queues[number]
        place = f"G{g}, E{g}, Q{g}_{number}, QW{g}_{number}"
        if sign > 0:
            call = (
                f"queue_enter(row, pool, numbers, {place}, VALUES + {column}, position, "
                f"v{column}, {direction}.0)"
            )
        else:
            call = f"queue_leave(row, pool, {place}, position)"
        test = _test(conditions)
        return [f"if s{column} == 0{f' and {test}' if test else ''}:", f"    {call}"]


T = TypeVar("T")


def _place(kept: list[T], wanted: T) -> int:
    """Where something stands in a list, into which it is put if it is not there."""
    if wanted not in kept:
        kept.append(wanted)
    return kept.index(wanted)


def _test(conditions: Conditions, value: str = "v{c}", status: str = "s{c}") -> str:
    """Are all conditions met? `{c}` stands for the column of each, `{b}` for its first bit."""
    parts = []
    for one in conditions:
        names = {"c": one.column, "b": 8 * one.column}
        parts.append(f"({one.test.format(v=value.format(**names), s=status.format(**names))})")
    return " and ".join(parts)


def _added(place: str, summand: Summand, sign: int) -> list[str]:
    kind, columns = summand
    if kind == "scratch":
        return []
    test = " and ".join(f"s{c} == 0" for c in dict.fromkeys(columns))
    where = f"row, floats, {place}"
    if kind == "number":
        value = f"{'-' if sign < 0 else ''}v{columns[0]}"
        call = f"add_to_sum({where}, {value}, wides)"
    elif kind in ("square", "rest"):
        call = f"add_{kind}({where}, v{columns[0]}, {sign}.0, wides)"
    else:
        value = " * ".join(f"v{c}" for c in columns)
        call = f"add_product({where}, {value}, {sign}.0, wides)"
    return [f"if {test}:", f"    {call}"]


def _counted(place: str, conditions: Conditions, summed: int, sign: int) -> list[str]:
    """After the sum: how many numbers it has, how many meet the conditions, how many errors."""
    lines = [
        f"if {_test(conditions)}:",
        f"    row[{place} + {CELL + 1}] += {sign}",
    ]
    if summed < 0:
        return lines
    value = f"{'-' if sign < 0 else ''}v{summed}"
    return [
        *lines,
        f"    if s{summed} == 0:",
        f"        row[{place} + {CELL}] += {sign}",
        f"        add_to_sum(row, floats, {place}, {value}, wides)",
        f"    elif s{summed} >= 10:",
        f"        row[{place} + {CELL + 2}] += {sign}",
    ]


# --- which windows go together ----------------------------------------------------------


def by_level(sheet: Sheet) -> tuple[list[SheetCell], dict[Address, int]]:
    """All cells in an order in which windows that depend on equally many windows are neighbours.

    A window comes after all cells of lower levels and before all others of its own, so that
    windows of one level can be moved on at once.
    """
    levels: dict[Address, int] = {}
    for cell in sheet.cells:
        level = max((levels.get(a, 0) for a in cell.needs), default=0)
        levels[cell.address] = level + isinstance(cell.rule, Windows)
    order = sorted(sheet.cells, key=lambda c: (levels[c.address], not isinstance(c.rule, Windows)))
    return order, levels


def grouped(
    sheet: Sheet, levels: dict[Address, int]
) -> tuple[list[Group], dict[Address, tuple[Group, int]]]:
    """The groups, and for each window its group and its column there."""
    atoms = tick_atoms(sheet.cells)
    groups: list[Group] = []
    open_groups: dict[object, Group] = {}
    places: dict[Address, tuple[Group, int]] = {}
    for cell in sheet.cells:
        rule = cell.rule
        if not isinstance(rule, Windows):
            continue
        length = rule.length if isinstance(rule, TimeWindow) else rule.count
        none: frozenset[object] = frozenset()
        key = (
            type(rule), length, levels[cell.address],
            atoms.get(rule.trigger, none), atoms.get(rule.source, none),
        )  # fmt: skip
        group = open_groups.get(key)
        if group is None or (
            rule.source not in group.columns and len(group.columns) == _MAX_COLUMNS
        ):
            group = open_groups[key] = Group(len(groups), rule)
            groups.append(group)
        if rule.source not in group.columns:
            group.columns.append(rule.source)
        places[cell.address] = (group, group.columns.index(rule.source))
    return groups, places
