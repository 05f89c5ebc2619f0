"""The source of a compiled sheet: one loop over the tuples of all inputs in order."""

from __future__ import annotations

from millstream.calculus.types import Kind as ColumnKind
from millstream.kernels.sheets.blocks import WRITTEN, block_lines
from millstream.kernels.sheets.functions import HOMES
from millstream.kernels.sheets.operands import EMPTY, Operand
from millstream.kernels.sheets.paths import Compilation, Path
from millstream.kernels.sheets.plain_paths import PlainPath
from millstream.values.excel.kinds import Kind

_WINDOW_NAMES = (
    "BASE", "CAPACITY", "END", "FIRST", "SEEN", "STATUSES", "TIME", "VALUES", "add_product",
    "add_rest", "add_square", "add_to_sum", "count_odd", "error_in", "first_error_of", "has_left",
    "move", "place_of", "queue_enter", "queue_leave", "room_wanted", "same", "window_average",
    "window_extreme", "window_given", "window_index", "window_numbers", "window_sum",
)  # fmt: skip
_TREE_NAMES = (
    "mode_enter", "mode_leave", "tree_enter", "tree_leave", "window_kth",
    "window_match", "window_median", "window_mode", "window_percentile", "window_quartile",
    "window_rank",
)  # fmt: skip
_CRITERION_NAMES = ("criterion_bounds", "is_met", "window_count_met")
_PEAK_NAMES = ("peaks_enter", "peaks_moved", "window_match_above", "window_match_below")
_TOP_NAMES = ("tops_enter", "tops_leave", "window_match_top", "window_top")
_PRODUCT_NAMES = ("product_enter", "product_leave", "window_product")
#: Why a loop stops: for want of room, of numbers of keys, of room for what was called, or
#: because all is done.
WANTS_ROOM, DONE, WANTS_KEYS, WANTS_CALLS = range(4)
#: Few windows are compiled into the loop, which is fast; many would take minutes.
_MAX_INLINED = 2


def source_of(whole: Compilation) -> str:
    """A module with `run` and its `SIGNATURE`."""
    body = _body(whole)
    parameters, types = _parameters(whole)
    used = {"likely", *(name for path in _forms(whole) for name in path.lines.used)}
    calls = [
        "from millstream.kernels.sheets.recall import STOPS, called, recalled",
        "NOTHING = np.int64(0)",
    ]
    constants = _constants(whole)
    is_apart = len(whole.groups) > _MAX_INLINED
    return "\n".join(
        [
            "import numpy as np",
            "from numba import boolean, float64, int8, int32, int64, types",
            "from millstream.compiled import apart, inlined",
            "from millstream.kernels.windows.spread import window_spread",
            "from millstream.kernels.windows.pairs import window_pairs",
            f"from millstream.kernels.windows.criteria import {', '.join(_CRITERION_NAMES)}",
            f"from millstream.kernels.windows.peaks import {', '.join(_PEAK_NAMES)}",
            f"from millstream.kernels.windows.product import {', '.join(_PRODUCT_NAMES)}",
            f"from millstream.kernels.windows.tops import {', '.join(_TOP_NAMES)}",
            f"from millstream.kernels.windows.tree import {', '.join(_TREE_NAMES)}",
            f"from millstream.kernels.windows.ring import {', '.join(_WINDOW_NAMES)}",
            "from millstream.kernels.windows.sums import Wides, clear_sum, has_room",
            *_imports(used),
            *(calls if whole.called else []),
            "",
            "MAKES_ARRAYS = False",
            *constants,
            *places(whole)[0],
            "",
            *_types(),
            f"SIGNATURE = int64({', '.join(types)})",
            "ONE = np.uint64(1)",
            "",
            "",
            *(line for g in whole.groups for line in g.functions(is_apart=is_apart)),
            *(function for path in _forms(whole) for function in path.functions),
            f"def run({', '.join(parameters)}):",
            "    wides = Wides(limbs, free, counters)",
            *(f"    n{n} = np.uint64(sent[{n}])" for n in range(len(whole.sheet.outputs))),
            *(f"    {line}" for line in _variables(whole)),
            *(f"    {line}" for line in body),
            *(f"    {line}" for line in _leaving(whole, DONE)),
            "",
        ]
    )


def _imports(used: set[str]) -> list[str]:
    homes = {home: used & names for home, names in HOMES.items()}
    rest = used.difference(*homes.values())
    homes["millstream.kernels.sheets.arithmetic"] = rest
    return [f"from {h} import {', '.join(sorted(names))}" for h, names in homes.items() if names]


def _variables(whole: Compilation) -> list[str]:
    """Where there are no keys: what is kept between tuples, as variables."""
    slots = whole.slots
    if not slots.are_variables:
        return []
    return ["row, floats = K[0], KF[0]",
            *(f"{', '.join(slots.words(n))} = {', '.join(slots.in_row(n))}"
              for n in range(slots.count))]  # fmt: skip


def _body(whole: Compilation) -> list[str]:
    """The loop over all tuples, or over all instants of all keys."""
    count = len(whole.input_types)
    if whole.sheet.fires_per_instant:
        lines = ["k, t = keys[r], time[r]", "row, floats = K[k], KF[k]"]
        for n in range(count):
            lines += [f"p{n} = place[r * {count} + {n}]", f"a{n} = p{n} >= 0"]
        lines += _path_lines(whole, whole.paths[0], "r")
        return ["for r in range(at[0], time.size):", *_deeper(lines)]
    lines = [f"q{n}, e{n} = np.uint64(at[{n}]), np.uint64(time{n}.size)" for n in range(count)]
    if count == 1:
        block = block_lines(whole, output_kinds(whole))
        single = ["while q0 < last:", *_deeper(_arrival(whole, whole.paths[0]))]
        return [*lines, "while q0 < e0:", *_deeper([*block, *single])]
    any_left = " or ".join(f"q{n} < e{n}" for n in range(count))
    return [*lines, f"while {any_left}:", *_deeper(_merging(whole))]


def _deeper(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def _merging(whole: Compilation) -> list[str]:
    """The earliest of the next tuples of all inputs; of equal times that of the first input."""
    lines = ["which, t = -1, np.int64(0)"]
    for n in range(len(whole.paths)):
        earlier = "" if n == 0 else f" and (which < 0 or time{n}[q{n}] < t)"
        lines += [f"if q{n} < e{n}{earlier}:", f"    which, t = {n}, time{n}[q{n}]"]
    for n, path in enumerate(whole.paths):
        lines += [f"{'if' if n == 0 else 'elif'} which == {n}:", *_deeper(_arrival(whole, path))]
    return lines


def _arrival(whole: Compilation, path: Path) -> list[str]:
    n = path.number
    lines = [f"i = q{n}", f"q{n} += ONE", f"t = time{n}[i]"]
    if whole.sheet.keys:
        lines.append(f"c = np.uint64(key{n}[i])")
        if _has_integer_keys(whole, n):
            lines += [f"if c >= np.uint64(key{n}n.size) or key{n}n[c] < 0:",
                      *_deeper([f"q{n} = i", *_leaving(whole, WANTS_KEYS)])]  # fmt: skip
        lines += [f"k = np.uint64(key{n}n[c])", "row, floats = K[k], KF[k]"]
    return [*lines, *_path_lines(whole, path, "i")]


def _has_integer_keys(whole: Compilation, number: int) -> bool:
    type_ = whole.input_types[number].schema[whole.sheet.keys[number]]
    return type_.kind is ColumnKind.INTEGER


def _leaving(whole: Compilation, why: int) -> list[str]:
    """Tell how far the loop has come, and why it stops."""
    lines = [f"sent[{n}] = n{n}" for n in range(len(whole.sheet.outputs))]
    if not whole.sheet.fires_per_instant:
        lines += [f"at[{n}] = q{n}" for n in range(len(whole.input_types))]
    slots = whole.slots
    if slots.are_variables:
        lines += [
            f"{', '.join(slots.in_row(n))} = {', '.join(slots.words(n))}"
            for n in range(slots.count)
        ]
    return [*lines, f"return {why}"]


def _types() -> list[str]:
    return [
        "READ_F = types.Array(float64, 1, 'C', readonly=True)",
        "READ_I = types.Array(int64, 1, 'C', readonly=True)",
        "READ_S = types.Array(int8, 1, 'C', readonly=True)",
        "READ_C = types.Array(int32, 1, 'C', readonly=True)",
        "",
    ]


def _constants(whole: Compilation) -> list[str]:
    """The tables that lookups search."""
    return [
        f"{name} = np.array({list(values)!r})"
        for path in _forms(whole)
        for values, name in path.lines.constants.items()
    ]


def _forms(whole: Compilation) -> list[Path]:
    """All paths, and their plain forms."""
    plain = [path.plain_form for path in whole.paths if path.plain_form is not None]
    return [*whole.paths, *plain, *([] if whole.block is None else [whole.block])]


def _path_lines(whole: Compilation, path: Path, place: str) -> list[str]:
    lines: list[str] = []
    again = f"at[0] = {place}" if whole.sheet.fires_per_instant else f"q{path.number} = i"
    if whole.called:
        lines += ["if asked[STOPS] != 0:", *_deeper([again, *_leaving(whole, WANTS_CALLS)])]
    if path.groups:
        wanted = " + ".join(f"room_wanted(row, G{g.number}, E{g.number})" for g in path.groups)
        sums = sum(g.sum_count for g in path.groups)
        lines.append(f"if used[0] + {wanted} > pool.size or not has_room(wides, {sums}):")
        lines += _deeper([again, *_leaving(whole, WANTS_ROOM)])
    plain = path.plain_form
    if plain is not None:
        lines.append("done = 0")
        lines += _plain_lines(whole, plain)
    careful = [*path.loads, *path.lines.lines, *_endings(whole, path)]
    return [*lines, *careful] or ["pass"]


def _plain_lines(whole: Compilation, plain: PlainPath) -> list[str]:
    """What is tried first; it goes on to the next tuple if all was well."""
    deeper = "    " * (plain.lines.depth + 1)
    return [
        *plain.loads,
        f"if likely(({' | '.join(dict.fromkeys(plain.guards)) or 0}) == 0):",
        *(f"    {line}" for line in plain.lines.lines),
        *(f"{deeper}{line}" for line in _endings(whole, plain)),
        f"{deeper}continue",
    ]


def _endings(whole: Compilation, path: Path) -> list[str]:
    """When all cells are computed: what is kept, and what leaves."""
    lines = path.stores()
    kinds = output_kinds(whole)
    is_instant = whole.sheet.fires_per_instant
    rank = "rank[r]" if is_instant else f"rank{path.number}[i]"
    for output, tick, operands in path.sent:
        sent = []
        if not is_whole(whole, output):
            has_rank = f"o{output}_rank.size != 0"
            sent += [f"o{output}_time[n{output}] = t", f"if {has_rank}:",
                     f"    o{output}_rank[n{output}] = {rank}"]  # fmt: skip
        statuses = []
        for place, (operand, kind) in enumerate(zip(operands, kinds[output], strict=True)):
            value = WRITTEN[kind].format(v=operand.value)
            sent.append(f"o{output}_{place}[n{output}] = {value}")
            status = _sent_status(operand)
            if status != "0":  # zeros are there already
                sent.append(f"o{output}_{place}s[n{output}] = {status}")
                statuses.append(status)
        if statuses:
            sent.append(f"sent[{len(kinds) + output}] |= {' | '.join(dict.fromkeys(statuses))}")
        sent.append(f"n{output} += ONE")
        lines += sent if tick == "True" else [f"if {tick}:", *_deeper(sent)]
    return lines


def is_whole(whole: Compilation, output: int) -> bool:
    """Does every tuple of the only input make an output tuple?"""
    if whole.sheet.fires_per_instant or len(whole.paths) > 1:
        return False
    return any(number == output and tick == "True" for number, tick, _ in whole.paths[0].sent)


def _sent_status(operand: Operand) -> str:
    """A constant that is an empty cell is empty in every tuple."""
    if operand.is_left_out and operand.status == "0":
        return str(EMPTY)
    return operand.status


_COLUMNS = {
    Kind.NUMBER: "float64[::1]", Kind.TEXT: "int32[::1]", Kind.BOOLEAN: "boolean[::1]",
    Kind.MIXED: "float64[::1]",
}  # fmt: skip


def _parameters(whole: Compilation) -> tuple[list[str], list[str]]:
    pairs = [
        ("at", "int64[::1]"), ("folded", "READ_I"), ("lengths", "READ_I"),
        ("K", "int64[:, ::1]"), ("KF", "float64[:, ::1]"),
        ("limbs", "int64[:, ::1]"), ("free", "int64[::1]"), ("counters", "int64[::1]"),
        ("pool", "int64[::1]"), ("numbers", "float64[::1]"), ("used", "int64[::1]"),
        ("sent", "int64[::1]"), ("T", "float64[::1]"), ("U", "int64[::1]"),
        ("B", "float64[::1]"),
    ]  # fmt: skip
    if whole.called:
        pairs += [("memo", "int64[::1]"), ("sites", "int64[:, ::1]"), ("asked", "int64[::1]")]
    if whole.sheet.fires_per_instant:
        pairs += [(name, "READ_I") for name in ("place", "keys", "time", "rank")]
    for number, type_ in enumerate(whole.input_types):
        if not whole.sheet.fires_per_instant:
            pairs += [(f"time{number}", "READ_I"), (f"rank{number}", "READ_I")]
            if whole.sheet.keys:
                codes = "READ_I" if _has_integer_keys(whole, number) else "READ_C"
                pairs += [(f"key{number}", codes), (f"key{number}n", "READ_I")]
        for index in fed_columns(whole, number):
            name = f"i{number}_{index}"
            fed = type_.schema.fields[index].type.kind
            if fed is ColumnKind.TEXT:
                pairs += [(name, "READ_C"), (f"{name}n", "READ_I")]
            else:
                pairs.append((name, "READ_I" if fed is ColumnKind.INTEGER else "READ_F"))
            pairs.append((f"{name}s", "READ_S"))
    for number, kinds in enumerate(output_kinds(whole)):
        if not is_whole(whole, number):
            pairs += [(f"o{number}_time", "int64[::1]"), (f"o{number}_rank", "int64[::1]")]
        for place, kind in enumerate(kinds):
            pairs += [(f"o{number}_{place}", _COLUMNS[kind]), (f"o{number}_{place}s", "int8[::1]")]
    return [name for name, _ in pairs], [type_ for _, type_ in pairs]


def places(whole: Compilation) -> tuple[list[str], int]:
    """Where the words of groups lie in the rows of keys, and how long these rows are."""
    lines: list[str] = []
    at = 2 * whole.slots.count
    for group in whole.groups:
        placed, at = group.place(at)
        lines += placed
    return lines, at


def group_places(whole: Compilation) -> list[tuple[int, int]]:
    """For each group where its words begin, and its stride."""
    placed, at = [], 2 * whole.slots.count
    for group in whole.groups:
        placed.append((at, group.stride))
        at = group.place(at)[1]
    return placed


def fed_columns(whole: Compilation, number: int) -> list[int]:
    """The columns of an input that are read, each once."""
    schema = whole.input_types[number].schema
    return sorted({schema.index(column) for _, column in whole.sheet.fed(number)})


def output_kinds(whole: Compilation) -> list[list[Kind]]:
    """What the cells of each output hold."""
    scratch = whole.paths[0]
    return [
        [
            whole.kinds[c.address].kind
            if c.address in whole.kinds
            else scratch.cell_or_constant(c.address).kind
            for c in columns
        ]
        for columns in whole.sheet.outputs
    ]
