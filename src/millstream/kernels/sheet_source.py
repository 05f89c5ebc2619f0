"""The source of a compiled sheet: one loop over the tuples of all inputs in order."""

from __future__ import annotations

from millstream.formulas.kinds import Kind
from millstream.kernels.sheet_operands import EMPTY, Operand
from millstream.kernels.sheet_paths import Compilation, Path
from millstream.kernels.sheet_plain import PlainPath

_WINDOW_NAMES = (
    "BASE", "CAPACITY", "END", "FIRST", "SEEN", "STATUSES", "TIME", "VALUES", "add_product",
    "add_square", "add_to_sum", "count_odd", "error_in", "first_error_of", "has_left", "move",
    "place_of", "queue_enter", "queue_leave", "room_wanted", "same", "window_average",
    "window_extreme",
    "window_given", "window_index", "window_match_above", "window_match_below", "window_numbers",
    "window_product", "window_spread", "window_sum",
)  # fmt: skip
_TREE_NAMES = (
    "tree_enter", "tree_leave", "window_count_equal", "window_kth", "window_match",
    "window_median", "window_mode", "window_percentile", "window_quartile", "window_rank",
)  # fmt: skip
#: Few windows are compiled into the loop, which is fast; many would take minutes.
_MAX_INLINED = 2


def source_of(whole: Compilation) -> str:
    """A module with `run` and its `SIGNATURE`."""
    body = _body(whole)
    parameters, types = _parameters(whole)
    used = sorted({name for path in _forms(whole) for name in path.lines.used})
    constants = _constants(whole)
    is_apart = len(whole.groups) > _MAX_INLINED
    return "\n".join(
        [
            "import numpy as np",
            "from numba import boolean, float64, int8, int64, types",
            "from millstream.compiled import apart, inlined",
            f"from millstream.kernels.loops_tree import {', '.join(_TREE_NAMES)}",
            f"from millstream.kernels.loops_window import {', '.join(_WINDOW_NAMES)}",
            "from millstream.kernels.loops_sums import Wides, has_room",
            *([f"from millstream.kernels.scalar_sheet import {', '.join(used)}"] if used else []),
            "",
            "MAKES_ARRAYS = False",
            *constants,
            *places(whole)[0],
            "",
            *_types(),
            f"SIGNATURE = int64({', '.join(types)})",
            "",
            "",
            *(line for g in whole.groups for line in g.functions(is_apart=is_apart)),
            *(function for path in whole.paths for function in path.functions),
            f"def run({', '.join(parameters)}):",
            "    wides = Wides(limbs, free, counters)",
            "    for r in range(start, which.size):",
            "        k, t = keys[r], time[r]",
            "        row, floats = K[k], KF[k]",
            *(f"        {line}" for line in body),
            "    return which.size",
            "",
        ]
    )


def _body(whole: Compilation) -> list[str]:
    """What one tuple runs, or one instant of one key."""
    body: list[str] = []
    if whole.sheet.fires_per_instant:
        count = len(whole.input_types)
        for n in range(count):
            body += [f"p{n} = place[r * {count} + {n}]", f"a{n} = p{n} >= 0"]
        return body + _path_lines(whole, whole.paths[0])
    for number, path in enumerate(whole.paths):
        body.append(f"{'if' if number == 0 else 'elif'} which[r] == {number}:")
        body.append("    i = place[r]")
        body += [f"    {line}" for line in _path_lines(whole, path)]
    return body


def _types() -> list[str]:
    return [
        "READ_F = types.Array(float64, 1, 'C', readonly=True)",
        "READ_I = types.Array(int64, 1, 'C', readonly=True)",
        "READ_S = types.Array(int8, 1, 'C', readonly=True)",
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
    return [*whole.paths, *plain]


def _path_lines(whole: Compilation, path: Path) -> list[str]:
    lines: list[str] = []
    if path.groups:
        wanted = " + ".join(f"room_wanted(row, G{g.number}, E{g.number})" for g in path.groups)
        lines.append(f"if used[0] + {wanted} > pool.size:")
        lines.append("    return r")
        lines.append(f"if not has_room(wides, {sum(g.sum_count for g in path.groups)}):")
        lines.append("    return r")
    plain = path.plain_form
    if plain is not None:
        lines.append("done = 0")
        lines += _plain_lines(plain)
    return [*lines, *path.loads, *path.lines.lines, *_endings(path)] or ["pass"]


def _plain_lines(plain: PlainPath) -> list[str]:
    """What is tried first; it goes on to the next tuple if all was well."""
    deeper = "    " * (plain.lines.depth + 1)
    return [
        *plain.loads,
        f"if ({' | '.join(dict.fromkeys(plain.guards)) or 0}) == 0:",
        *(f"    {line}" for line in plain.lines.lines),
        *(f"{deeper}{line}" for line in _endings(plain)),
        f"{deeper}continue",
    ]


def _endings(path: Path) -> list[str]:
    """When all cells are computed: what is kept, and what leaves."""
    lines = path.stores()
    for output, tick, found in path.sent:
        lines.append(f"if {tick}:")
        lines.append(f"    n = sent[{output}]")
        lines.append(f"    o{output}_row[n] = r")
        for place, operand in enumerate(found):
            lines.append(f"    o{output}_{place}[n] = {operand.value}")
            lines.append(f"    o{output}_{place}s[n] = {_sent_status(operand)}")
        lines.append(f"    sent[{output}] = n + 1")
    return lines


def _sent_status(operand: Operand) -> str:
    """A constant that is an empty cell is empty in every tuple."""
    if operand.is_left_out and operand.status == "0":
        return str(EMPTY)
    return operand.status


def _parameters(whole: Compilation) -> tuple[list[str], list[str]]:
    pairs = [
        ("start", "int64"), ("which", "READ_I"), ("place", "READ_I"), ("keys", "READ_I"),
        ("time", "READ_I"), ("folded", "READ_I"), ("lengths", "READ_I"),
        ("K", "int64[:, ::1]"), ("KF", "float64[:, ::1]"),
        ("limbs", "int64[:, ::1]"), ("free", "int64[::1]"), ("counters", "int64[::1]"),
        ("pool", "int64[::1]"), ("numbers", "float64[::1]"), ("used", "int64[::1]"),
        ("sent", "int64[::1]"), ("T", "float64[::1]"), ("U", "int64[::1]"),
    ]  # fmt: skip
    for number, _ in enumerate(whole.input_types):
        for index in fed_columns(whole, number):
            pairs += [(f"i{number}_{index}", "READ_F"), (f"i{number}_{index}s", "READ_S")]
    for number, columns in enumerate(whole.sheet.outputs):
        pairs.append((f"o{number}_row", "int64[::1]"))
        for place in range(len(columns)):
            pairs += [(f"o{number}_{place}", "float64[::1]"), (f"o{number}_{place}s", "int8[::1]")]
    return [name for name, _ in pairs], [type_ for _, type_ in pairs]


def places(whole: Compilation) -> tuple[list[str], int]:
    """Where the words of groups lie in the rows of keys, and how long these rows are."""
    lines: list[str] = []
    at = 2 * whole.slots.count
    for group in whole.groups:
        found, at = group.place(at)
        lines += found
    return lines, at


def group_places(whole: Compilation) -> list[tuple[int, int]]:
    """For each group where its words begin, and its stride."""
    found, at = [], 2 * whole.slots.count
    for group in whole.groups:
        found.append((at, group.stride))
        at = group.place(at)[1]
    return found


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
