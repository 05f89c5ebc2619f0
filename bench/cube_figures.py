"""Figures 5 to 14 of the paper on StreamingCube, measured here, as pictures and as tables.

Processor time stands for time: of a cube in the process of its query, and of both processes where
the query sends its rows to another one. Memory is the most that processes have had.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from cube_drawn import Line, drawn
from cube_kernels import filled, questions
from millstream.calculus.lattice import Lattice
from millstream.engine.warm import SETTING

Record = dict[str, Any]
HERE = Path(__file__).parent
PICTURES = HERE.parent / "docs" / "pictures"
#: Members of each dimension, and how many vertices are kept in turn.
STAR = {"customer": 3000, "part": 2000, "supplier": 200, "store": 50}
SIX = {"product": 300, "seller": 200, "promotion": 100, "client": 50, "shop": 20, "person": 10}
KEPT = {"synthetic": (6, 12, 18, 24, 30), "star": (3, 6, 9, 12, 15)}
WINDOWS = (60, 300)
ROWS, SECONDS = 100_000, 600
#: Of two processes and one: of fewer rows the difference is lost in what else a process does.
PROCESS_ROWS = 400_000


def vertices(names: tuple[str, ...], count: int) -> list[tuple[str, ...]]:
    """The finest vertex, and others spread evenly over the lattice, coarse ones among them."""
    lattice = Lattice((1,) * len(names))
    numbers = np.unique(np.linspace(1, len(lattice) - 2, count - 1).astype(int)).tolist()
    spread = [lattice.vertex(n) for n in numbers]
    chosen = [tuple(n for n, level in zip(names, v, strict=True) if level == 0) for v in spread]
    return [names, *chosen]


def written(folder: Path, sizes: dict[str, int], kept: int, window: int, rows: int) -> None:
    """A query that joins sales with all dimensions, alone and with a cube, and their inputs."""
    folder.mkdir(parents=True, exist_ok=True)
    names = tuple(sizes)
    (folder / "cube.conf").write_text(
        f"Dimensions = {' | '.join(names)}\nTimeGrain = Second\nCWindow = {window}\n"
        f"MVertices = {' | '.join(', '.join(v) for v in vertices(names, kept)[1:])}\n"
        "OutputVertices = all\nMeasures = total: sum(amount)\n"
    )
    ids = ", ".join(f"{n}_id INTEGER" for n in names)
    declared = f"CREATE STREAM sales ({ids}, amount NUMBER) TIME at;\n" + "".join(
        f"CREATE RELATION {n} ({n}_id INTEGER, {n}_name TEXT) ONCE;\n" for n in names
    )
    shown = ", ".join(f"{n}.{n}_name AS {n}" for n in names)
    where = " AND ".join(f"s.{n}_id = {n}.{n}_id" for n in names)
    query = f"""SELECT ISTREAM({shown}, amount) FROM sales [Rows 10000] AS s, {", ".join(names)}
        WHERE {where}"""  # noqa: S608 - of our own names
    cube = "CREATE CUBE c FROM {} WITH 'cube.conf';\n"
    (folder / "one.cql").write_text(declared + cube.format(query))
    (folder / "query.cql").write_text(f"{declared}CREATE OUTPUT joined AS {query};\n")
    columns = ", ".join(f"{n} TEXT" for n in names)
    stream = f"CREATE STREAM joined ({columns}, amount NUMBER);\n"
    (folder / "cube.cql").write_text(stream + cube.format("joined"))
    (folder / "warm").mkdir(exist_ok=True)
    _inputs(folder, sizes, rows)
    # As many: few rows would be run without what is compiled.
    _inputs(folder / "warm", sizes, rows)


def _inputs(folder: Path, sizes: dict[str, int], rows: int) -> None:
    chance = np.random.default_rng(5)
    times = np.sort(chance.integers(0, SECONDS * 1_000_000, rows))
    columns = {f"{n}_id": chance.integers(0, size, rows) for n, size in sizes.items()}
    columns |= {"amount": chance.integers(1, 4000, rows) / 4, "at": times}
    table = pa.table(columns)
    place = table.schema.get_field_index("at")
    table = table.set_column(place, "at", pa.array(times, pa.timestamp("us", tz="UTC")))
    pq.write_table(table, folder / "sales.parquet")
    for name, size in sizes.items():
        texts = [f"{name}#{n:06d}" for n in range(size)]
        members = {f"{name}_id": np.arange(size), f"{name}_name": texts}
        pq.write_table(pa.table(members), folder / f"{name}.parquet")


def run(folder: Path, side: str) -> Record:
    command = [sys.executable, str(HERE / "cube_figures_child.py"), str(folder), side]
    compiled = os.environ | {SETTING: "0"}  # what is warmed up is what is measured
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=compiled)  # noqa: S603
    if done.returncode:
        raise RuntimeError(done.stderr[-3000:])
    made: Record = json.loads(done.stdout)
    return made


def processes(scale: float) -> list[Record]:
    """Figures 5 to 8 and 11: query and cube as one process and as two, by vertices kept."""
    rows = max(5_000, int(PROCESS_ROWS * scale))
    records = []
    with tempfile.TemporaryDirectory() as place:
        for (data, counts), window in itertools.product(KEPT.items(), WINDOWS):
            for kept in counts if window == WINDOWS[0] else counts[:1] + counts[-1:]:
                folder = Path(place) / f"{data}{window}{kept}"
                written(folder, SIX if data == "synthetic" else STAR, kept, window, rows)
                one, two = run(folder, "one"), run(folder, "query")
                assert one["total"] == two["total"]
                records.append({
                    "data": data, "c-window": window, "vertices": kept,
                    "rows/s": round(rows / one["seconds"]),
                    "rows/s of two": round(rows / two["seconds"]),
                    "MB": round(one["bytes"] / 1e6, 1), "MB of two": round(two["bytes"] / 1e6, 1),
                    "us a row": round(1e6 * one["seconds"] / rows, 2),
                })  # fmt: skip
                print(records[-1], file=sys.stderr, flush=True)
    _draw_processes(records)
    return records


def _draw_processes(records: list[Record]) -> None:
    figures = {5: ("synthetic", "rows/s"), 6: ("star", "rows/s"), 7: ("synthetic", "MB"),
               8: ("star", "MB")}  # fmt: skip
    for number, (data, what) in figures.items():
        own = [r for r in records if r["data"] == data and r["c-window"] == WINDOWS[0]]
        lines = [
            Line(name, [(r["vertices"], r[column]) for r in own])
            for name, column in (("one process", what), ("two processes", f"{what} of two"))
        ]
        _picture(number, f"Figure {number}: {what}, {data} data, by vertices kept", lines)
    lines = [
        Line(f"{data}, {window} s", [(r["vertices"], r["us a row"]) for r in records
                                     if (r["data"], r["c-window"]) == (data, window)])
        for data, window in itertools.product(KEPT, WINDOWS)
    ]  # fmt: skip
    _picture(11, "Figure 11: microseconds a row of query and cube, by vertices kept", lines)


def operator(scale: float) -> list[Record]:
    """Figures 9, 10, 12, 13 and 14: what questions and the cube alone cost, by vertices kept."""
    rows = max(5_000, int(ROWS * scale))
    records = []
    for (data, counts), window in itertools.product(KEPT.items(), WINDOWS):
        sizes = SIX if data == "synthetic" else STAR
        for kept in counts:
            made = filled(sizes, vertices(tuple(sizes), kept), [()], window, rows)
            asked = questions(sizes, vertices(tuple(sizes), kept), window, rows)
            records.append({
                "data": data, "c-window": window, "vertices": kept, "outputs": 1,
                "us a row": made.micros, "MB": made.megabytes,
                "ms a question": round(float(np.mean(list(asked.values()))), 3), "asked": asked,
            })  # fmt: skip
        for outputs in (2, 4, 8) if data == "synthetic" else ():
            leaving = vertices(tuple(sizes), outputs + 1)[1:]
            made = filled(sizes, vertices(tuple(sizes), counts[1]), leaving, window, rows)
            records.append({
                "data": data, "c-window": window, "vertices": counts[1], "outputs": outputs,
                "us a row": made.micros, "MB": made.megabytes, "ms a question": None, "asked": {},
            })  # fmt: skip
    _draw_operator(records)
    return [{k: v for k, v in r.items() if k != "asked"} for r in records]


def _draw_operator(records: list[Record]) -> None:
    alone = [r for r in records if r["outputs"] == 1]
    star = [r for r in alone if (r["data"], r["c-window"]) == ("star", WINDOWS[0])]
    nine = [Line(f"{r['vertices']} kept", list(enumerate(r["asked"].values()))) for r in star]
    _picture(9, "Figure 9: ms a question by number of the vertex, star data", nine)

    def lines(what: str, chosen: list[Record], by: str) -> list[Line]:
        kinds = dict.fromkeys((r["data"], r["c-window"]) for r in chosen)
        return [
            Line(f"{data}, {window} s", [(r[by], r[what]) for r in chosen
                                         if (r["data"], r["c-window"]) == (data, window)])
            for data, window in kinds
        ]  # fmt: skip

    synthetic = [r for r in alone if r["data"] == "synthetic"]
    several = [
        r for r in records if r["data"] == "synthetic" and r["vertices"] == KEPT["synthetic"][1]
    ]
    _picture(10, "Figure 10: ms a question, mean of all vertices, by vertices kept",
             lines("ms a question", alone, "vertices"))  # fmt: skip
    _picture(12, "Figure 12: microseconds a row of the cube, by vertices kept",
             lines("us a row", synthetic, "vertices"))  # fmt: skip
    _picture(13, "Figure 13: microseconds a row of the cube, by vertices that leave",
             lines("us a row", sorted(several, key=lambda r: r["outputs"]), "outputs"))  # fmt: skip
    _picture(14, "Figure 14: MB of cells, by vertices kept", lines("MB", synthetic, "vertices"))


def _picture(number: int, title: str, lines: list[Line]) -> None:
    (PICTURES / f"cube_figure_{number}.svg").write_text(drawn(title, lines))


BENCHMARKS = {"cube_processes": processes, "cube_operator": operator}
