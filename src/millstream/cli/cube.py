"""`millstream cube query` and `millstream cube plan`: a cube is asked in the terminal."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from typing import Any

from millstream import api
from millstream.calculus.lattice import is_as_fine
from millstream.cli.progress import Progress
from millstream.cli.run import named, with_times_asked
from millstream.cli.show import print_table, print_warnings
from millstream.errors import UsageError, listing, suggest
from millstream.kernels.cube.versions import Version
from millstream.olap.answer import Answer, answer
from millstream.olap.groups import Limits
from millstream.olap.plain import SmallStore
from millstream.olap.planning import (
    attributes_of,
    kept_vertex,
    lattice_of,
    levels_of,
    plan,
    vertex_record,
)
from millstream.olap.program import ServedCube, served
from millstream.olap.question import Question, read_question

#: Who asks in a terminal can end it; code that is not there yet takes its time to compile.
_PATIENT = Limits(seconds=3600)


def run(arguments: argparse.Namespace) -> int:
    compiled = api.compile(arguments.file, names=named(arguments.set, "--set"))
    for unit in arguments.unit:
        compiled = compiled.with_units(unit)
    compiled = with_times_asked(compiled, arguments)
    program, cubes = served(compiled.program, ())
    cube = _chosen(cubes, arguments.cube)
    question = read_question(_json(arguments.question), cube.function, cube.schema)
    print_warnings(compiled.warnings(named(arguments.in_, "--in")))
    alone = replace(compiled, program=program, sinks={})
    store = SmallStore(cube)
    with Progress("auto", "local") as progress:
        finished = alone.run(
            named(arguments.in_, "--in"), {cube.output: store}, engine="local", progress=progress
        )
        version = store.version(finished.report.mark)
        made = answer(version, question, _PATIENT) if arguments.what == "query" else None
    if made is None:
        _show_plan(version, question, arguments.format)
    else:
        _show_answer(made, arguments.format)
    return 0


def _chosen(cubes: tuple[ServedCube, ...], name: str | None) -> ServedCube:
    names = [c.name for c in cubes]
    if not cubes:
        raise UsageError(
            "there is no cube in this program", hint="docs/cube.md says how to add one"
        )
    if name is None and len(cubes) > 1:
        raise UsageError(f"there are several cubes: {listing(names)}",
                         hint=f"say which: --cube {names[0]}")  # fmt: skip
    if name is not None and name not in names:
        hint = f"cubes are: {listing(names)}. {suggest(name, names) or ''}".strip()
        raise UsageError(f'there is no cube "{name}"', hint=hint)
    return cubes[0] if name is None else cubes[names.index(name)]


def _json(text: str) -> Any:
    try:
        return json.loads(sys.stdin.read() if text == "-" else text)
    except (ValueError, RecursionError) as error:
        hint = 'write it in quotes: \'{"rows": ["region"]}\''
        raise UsageError(f"the question is no JSON: {error}", hint=hint) from None


def _show_answer(made: Answer, form: str) -> None:
    if form == "json":
        print(json.dumps(made.record(), indent=2, ensure_ascii=False))
        return
    if form == "csv":
        sys.stdout.write(made.cells.csv())
        return
    print_table(made.cells.records())
    for table in made.totals:
        print()
        print_table(table.records())
    about = made.about()
    vertex = ", ".join(about["answered_by"]["attributes"]) or "all"
    print(
        f"{len(made.cells):,} cells as of {about['as_of'] or 'the beginning'}; "
        f"{made.read:,} cells of {vertex} read in {made.milliseconds:.1f} ms",
        file=sys.stderr,
    )


def _show_plan(version: Version, question: Question, form: str) -> None:
    cube = version.function
    how = plan(version, question)
    asked, answering = attributes_of(cube, how.asked), how.answering.vertex.attributes
    kept = [
        {
            "kept": _words(k.vertex.attributes),
            "number": lattice_of(cube).number(levels_of(cube, k.vertex.attributes)),
            "cells": k.count(how.span.first, how.span.last),
            "answers": is_as_fine(levels_of(cube, k.vertex.attributes), how.asked),
        }
        for k in version.kept
    ]
    if form == "json":
        record = {
            "asked": vertex_record(cube, how.asked, question.grain),
            "answered_by": kept_vertex(how.answering, cube), "kept": kept,
        }  # fmt: skip
        print(json.dumps(record, indent=2))
        return
    grain = "over the whole window" if question.grain is None else f"by {question.grain}"
    print(f"asked: {_words(asked)}, {grain}, of {max(0, how.span.last - how.span.first + 1):,} "
          "partitions")  # fmt: skip
    print(f"answered by: {_words(answering)}, of those that can the one with fewest cells\n")
    print_table(kept)


def _words(attributes: tuple[str, ...]) -> str:
    return ", ".join(attributes) or "all"
