"""Many tuples at once: the plain form of a sheet that needs nothing of one key for another.

Where there are no keys, or nothing is kept between tuples, and every tuple makes an output tuple,
the plain statements are run for a whole block of tuples before anything is looked at. A loop
without a branch is what LLVM makes vector instructions of. If something was strange in one of
the tuples, what was kept is what it was before, and the tuples are computed one by one.
"""

from __future__ import annotations

from millstream.calculus.types import Kind as ColumnKind
from millstream.kernels.sheets.operands import NotCompiled
from millstream.kernels.sheets.paths import Compilation
from millstream.kernels.sheets.plain_paths import PlainPath
from millstream.values.excel.kinds import Kind

#: How many tuples are computed at once: what they read and write stays in the nearest cache.
BLOCK = 512
#: How a number is written into a column of an output.
WRITTEN = {
    Kind.NUMBER: "{v}",
    Kind.TEXT: "np.int32({v})",
    Kind.BOOLEAN: "{v} != 0.0",
    Kind.MIXED: "{v}",
}


class BlockPath(PlainPath):
    """Mutable: the plain statements, which only count what was strange."""

    def __init__(self, whole: Compilation, number: int) -> None:
        super().__init__(whole, number)
        self.lines.prefix = f"B{number}C"
        #: Columns of texts, of which the numbers are looked up first, and others.
        self.texts_read: dict[str, None] = {}
        self.read_as_they_are: dict[str, None] = {}
        self.written: dict[str, int] = {}

    def read(self, number: int, column: str) -> tuple[str, str]:
        """Columns of the block are read by their place in it."""
        schema = self.whole.input_types[number].schema
        name = f"i{number}_{schema.index(column)}"
        value, status = f"x{name}[i]", f"{name}s[i]"
        match schema[column].kind:
            case ColumnKind.TEXT:
                self.texts_read[name] = None
                value = self.numbers(name)
            case ColumnKind.INTEGER:
                self.read_as_they_are[name] = None
                value = f"float({value})"
            case _:
                self.read_as_they_are[name] = None
        return value, status

    def numbers(self, name: str) -> str:
        """The place of a tuple among numbers that the block writes.

        They lie in one array: were they several, LLVM would have to make sure that no two of
        them are the same memory, and gives up if they are many. What is looked up in a table
        lies there too: it is not known where in memory that may be.
        """
        place = self.written.setdefault(name, len(self.written))
        return f"B[i + np.uint64({place * BLOCK})]"

    def _checkpoint(self) -> None:
        plain = self.plain
        self.lines.used.add("nothing_of")
        for value in plain.finite:
            self.lines.add(f"bad = nothing_of({value}, bad)")
        for check in plain.checks:
            self.lines.add(f"wrong |= 0 if {check} else 1")
        plain.checks, plain.finite = [], []


def block_path(whole: Compilation) -> BlockPath | None:
    """The statements for a block, if there can be blocks; all other paths are generated."""
    path = whole.paths[0]
    is_apart = not whole.sheet.keys or not whole.slots.count
    if len(whole.paths) > 1 or whole.sheet.fires_per_instant or not is_apart:
        return None
    if path.plain_form is None or whole.groups or whole.memory is not None:
        return None
    block = BlockPath(whole, 0)
    try:
        block.generate()
    except NotCompiled:
        return None
    is_every = len(block.sent) == len(whole.sheet.outputs)
    is_sure = all(
        tick == "True" and all(o.is_sure for o in operands) for _, tick, operands in block.sent
    )
    return block if is_every and is_sure else None


def block_size(whole: Compilation) -> int:
    """How many numbers a block writes, and reads for texts."""
    if whole.block is None:
        return 0
    written = sum(len(columns) for columns in whole.sheet.outputs)
    return BLOCK * (written + len(whole.block.texts_read))


def block_lines(whole: Compilation, kinds: list[list[Kind]]) -> list[str]:
    """What is tried for a block; it goes on to the next one if all was well."""
    block = whole.block
    if block is None:
        return ["last = e0"]
    slots = [whole.slots.words(n) for n in range(whole.slots.count)]
    statuses = sorted({g.removesuffix("[i]") for g in block.guards if g.endswith("[i]")})
    kept = " | ".join(status for _, status in slots)
    tried = [
        "bad, wrong = 0.0, np.int64(0)",
        *_views(block),
        *(f"b{value}, b{status} = {value}, {status}" for value, status in slots),
        "for i in range(np.uint64(count)):",
        *(f"    {line}" for line in _tuple_lines(block)),
        "if (bad < 1.0) & (wrong == 0):",
        *(f"    {line}" for line in _taken(block, kinds)),
        "    q0 = last",
        "    continue",
        *(f"{value}, {status} = b{value}, b{status}" for value, status in slots),
    ]
    return [
        "start = np.int64(q0)",
        f"end = min(start + {BLOCK}, np.int64(e0))",
        "count, last = end - start, np.uint64(end)",
        "odd_rows = np.int64(0)",
        *(f"x{name} = beyond({name}, start)" for name in statuses),
        "for i in range(np.uint64(count)):",
        f"    odd_rows |= {' | '.join(f'x{name}[i]' for name in statuses) or 0}",
        f"if likely((odd_rows{f' | {kept}' if kept else ''}) == 0):",
        *(f"    {line}" for line in tried),
    ]


def _views(block: BlockPath) -> list[str]:
    """The part of each column that the block reads; numbers of texts are looked up before."""
    lines = [f"x{name} = beyond({name}, start)" for name in block.read_as_they_are]
    for name in block.texts_read:
        lines += [f"codes = beyond({name}, start)", "for i in range(np.uint64(count)):",
                  f"    {block.numbers(name)} = float({name}n[np.uint64(codes[i])])"]  # fmt: skip
    return lines


def _tuple_lines(block: BlockPath) -> list[str]:
    sent = [
        f"{block.numbers(f'y{output}_{place}')} = {operand.value}"
        for output, _, operands in block.sent
        for place, operand in enumerate(operands)
    ]
    return [*block.loads, *block.lines.lines, *block.stores(), *sent]


def _taken(block: BlockPath, kinds: list[list[Kind]]) -> list[str]:
    """The numbers of a block become columns."""
    lines = []
    for n, columns in enumerate(kinds):
        lines.append(f"begin = np.int64(n{n})")
        for place, kind in enumerate(columns):
            value = WRITTEN[kind].format(v=block.numbers(f"y{n}_{place}"))
            lines += [f"z = beyond(o{n}_{place}, begin)",
                      "for i in range(np.uint64(count)):", f"    z[i] = {value}"]  # fmt: skip
        lines.append(f"n{n} += np.uint64(count)")
    return lines
