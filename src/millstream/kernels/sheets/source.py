"""The source of a compiled sheet: one loop over the tuples of all inputs in order."""

from __future__ import annotations

import re
from dataclasses import dataclass

from millstream.calculus.types import Kind as ColumnKind
from millstream.kernels.sheets.blocks import WRITTEN, block_lines
from millstream.kernels.sheets.distinct import COUNTS_OF_DIFFERENT
from millstream.kernels.sheets.formulas_defined import catching
from millstream.kernels.sheets.functions import HOMES
from millstream.kernels.sheets.operands import EMPTY, Operand
from millstream.kernels.sheets.paths import Compilation, Path
from millstream.kernels.sheets.plain_paths import PlainPath
from millstream.kernels.sheets.scanned import SAMPLES
from millstream.kernels.sheets.taken import MOVERS, OF_NUMBERS
from millstream.values.excel.kinds import Kind

_WINDOW_NAMES = (
    "BASE", "CAPACITY", "END", "FIRST", "SEEN", "STATUSES", "TIME", "VALUES", "add_product",
    "add_rest", "add_square", "add_to_sum", "count_odd", "error_in", "first_error_of", "has_left",
    "move", "place_of", "queue_enter", "queue_leave", "room_wanted", "same", "window_average",
    "window_extreme", "window_find", "window_given", "window_index", "window_numbers", "window_sum",
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


@dataclass(frozen=True, slots=True)
class SheetSource:
    """A module with `run` and its `SIGNATURE`, and what `run` takes."""

    source: str
    #: Arrays by their names.
    parameters: tuple[str, ...]
    #: How it is given each of the columns in its frame.
    given: tuple[str, ...]


def written(whole: Compilation) -> SheetSource:
    given = _given_columns(whole)
    body = [*_taken(whole, given), *_body(whole), *_leaving(whole, DONE)]
    parameters = _parameters(body)
    given_as = sorted(set(given.values()))
    used = {"likely", *(name for path in _forms(whole) for name in path.lines.used)}
    calls = [
        "from millstream.kernels.sheets.recall import STOPS, called, recalled",
        "NOTHING = np.int64(0)",
    ]
    constants = _constants(whole)
    definitions, catchers = catching(used)
    is_apart = len(whole.groups) > _MAX_INLINED
    source = "\n".join(
        [
            "import numpy as np",
            "from numba import float64, int64, types",
            "from millstream.compiled import apart, inlined",
            "from millstream.kernels.windows.spread import window_spread",
            "from millstream.kernels.windows.pairs import point_of_line, window_pairs",
            f"from millstream.kernels.windows.criteria import {', '.join(_CRITERION_NAMES)}",
            f"from millstream.kernels.windows.peaks import {', '.join(_PEAK_NAMES)}",
            f"from millstream.kernels.windows.product import {', '.join(_PRODUCT_NAMES)}",
            f"from millstream.kernels.windows.tops import {', '.join(_TOP_NAMES)}",
            f"from millstream.kernels.windows.tree import {', '.join(_TREE_NAMES)}",
            f"from millstream.kernels.windows.ring import {', '.join(_WINDOW_NAMES)}",
            "from millstream.kernels.windows.sums import Wides, clear_sum, has_room",
            f"from millstream.kernels.loop.scalar_arrays import beyond, {', '.join(given_as)}",
            *_imports(used),
            *definitions,
            *(calls if whole.called else []),
            "",
            "MAKES_ARRAYS = False",
            *constants,
            *places(whole)[0],
            "",
            "READ_I = types.Array(int64, 1, 'C', readonly=True)",
            f"SIGNATURE = int64({', '.join(_ARRAYS[name] for name in parameters)})",
            "ONE = np.uint64(1)",
            "",
            "",
            *catchers,
            *(line for g in whole.groups for line in g.functions(is_apart=is_apart)),
            *(function for path in _forms(whole) for function in path.functions),
            f"def run({', '.join(parameters)}):",
            *(f"    {line}" for line in body),
            "",
        ]
    )
    return SheetSource(source, tuple(parameters), tuple(given.values()))


def _taken(whole: Compilation, given: dict[str, str]) -> list[str]:
    """What a loop takes before its first tuple."""
    return [
        *(f"{name} = {kind}(frame[{place}])" for place, (name, kind) in enumerate(given.items())),
        *(f"{name}_count = frame[{len(given) + place}]"
          for place, name in enumerate(given) if _is_counted(name)),
        *(["wides = Wides(limbs, free, counters)"] if whole.groups or whole.memory else []),
        *(f"n{n} = np.uint64(sent[{n}])" for n in range(len(whole.sheet.outputs))),
        *_variables(whole),
    ]  # fmt: skip


def _imports(used: set[str]) -> list[str]:
    homes = {home: used & names for home, names in HOMES.items()}
    rest = used.difference(*homes.values())
    samples = {*COUNTS_OF_DIFFERENT, *OF_NUMBERS.values(), *MOVERS}
    samples |= {name for name, _, _ in SAMPLES.values()}
    homes["millstream.kernels.windows.samples"] = rest & samples
    homes["millstream.kernels.sheets.arithmetic"] = rest - samples
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
        return ["for r in range(at[0], time_count):", *_deeper(lines)]
    lines = [f"q{n}, e{n} = np.uint64(at[{n}]), np.uint64(time{n}_count)" for n in range(count)]
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
            lines += [f"if c >= np.uint64(key{n}n_count) or key{n}n[c] < 0:",
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
            has_rank = f"o{output}_rank_count != 0"
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


#: How a loop is given a column, by what it holds: by its address.
_POINTERS = {
    Kind.NUMBER: "pointer_f", Kind.TEXT: "pointer_i32", Kind.BOOLEAN: "pointer_b",
    Kind.MIXED: "pointer_f",
}  # fmt: skip
_STATUS = "pointer_s"


def _is_counted(name: str) -> bool:
    """Whether a loop asks how long a column is: of times, of ranks, and of numbers of keys."""
    return name.startswith(("time", "key")) or name.endswith("_rank")


#: What functions of windows and texts take as arrays; all columns are in the frame.
_ARRAYS = {
    "frame": "int64[::1]", "at": "int64[::1]", "folded": "READ_I", "lengths": "READ_I",
    "plain": "READ_I",
    "K": "int64[:, ::1]", "KF": "float64[:, ::1]",
    "limbs": "int64[:, ::1]", "free": "int64[::1]", "counters": "int64[::1]",
    "pool": "int64[::1]", "numbers": "float64[::1]", "used": "int64[::1]", "sent": "int64[::1]",
    "T": "float64[::1]", "U": "int64[::1]", "B": "float64[::1]",
    "scratch": "float64[::1]",
    "memo": "int64[::1]", "sites": "int64[:, ::1]", "asked": "int64[::1]",
}  # fmt: skip


def _parameters(body: list[str]) -> list[str]:
    """The arrays that a loop asks for: each takes numba 15 ms, and more where it is used."""
    asked = set(re.findall(r"\w+", "\n".join(body)))
    return [name for name in _ARRAYS if name in asked]


def _given_columns(whole: Compilation) -> dict[str, str]:
    """The columns that a loop reads and writes, in the order of its frame, and what each is.

    In the frame stand their addresses, and after all of these their lengths. Numba would take
    15 ms to compile each as an array.
    """
    given: dict[str, str] = {}
    if whole.sheet.fires_per_instant:
        given |= dict.fromkeys(("place", "keys", "time", "rank"), "pointer_i")
    for number, type_ in enumerate(whole.input_types):
        if not whole.sheet.fires_per_instant:
            given |= {f"time{number}": "pointer_i", f"rank{number}": "pointer_i"}
            if whole.sheet.keys:
                is_integer = _has_integer_keys(whole, number)
                given[f"key{number}"] = "pointer_i" if is_integer else "pointer_i32"
                given[f"key{number}n"] = "pointer_i"
        for index in fed_columns(whole, number):
            name = f"i{number}_{index}"
            fed = type_.schema.fields[index].type.kind
            if fed is ColumnKind.TEXT:
                given |= {name: "pointer_i32", f"{name}n": "pointer_i"}
            else:
                given[name] = "pointer_i" if fed is ColumnKind.INTEGER else "pointer_f"
            given[f"{name}s"] = _STATUS
    for number, kinds in enumerate(output_kinds(whole)):
        if not is_whole(whole, number):
            given |= {f"o{number}_time": "pointer_i", f"o{number}_rank": "pointer_i"}
        for place, kind in enumerate(kinds):
            given |= {f"o{number}_{place}": _POINTERS[kind], f"o{number}_{place}s": _STATUS}
    return given


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
