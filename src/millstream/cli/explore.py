"""`millstream explore`: every interleaving of a small program."""

from __future__ import annotations

import argparse

from millstream.calculus.graph import Program
from millstream.cli.run import compiled_from, named
from millstream.cli.show import print_json
from millstream.cli.views import language_options, rounds_asked
from millstream.engine.reference.explore import (
    Exploration,
    explore,
    operators_in_conflict,
    replay,
)
from millstream.engine.reference.feed import Event
from millstream.errors import UsageError


def run(arguments: argparse.Namespace) -> int:
    compiled = compiled_from(arguments)
    inputs = named(arguments.in_, "--in")
    if compiled.rounds is not None and rounds_asked(arguments) is None and not inputs:
        flags = [o.flags[0] for o in language_options("explore") if o.sets == "rounds"]
        raise UsageError("this program goes round by itself: say how often",
                         hint=f"a small number, such as {flags[0]} 2")  # fmt: skip
    events = compiled.read_inputs(inputs)
    result = explore(compiled.program, events, limit=arguments.limit)
    if arguments.format == "json":
        print_json(_records(result))
    else:
        _tell(compiled.program, events, result)
    return 0 if result.is_complete else 1


def _records(result: Exploration) -> list[dict[str, object]]:
    """One object per different result."""
    return [
        {
            "unique": result.is_unique and result.is_complete,
            "complete": result.is_complete,
            "configurations": result.configurations,
            "result": number,
            "schedule": " ".join(final.schedule),
            "rows": sum(len(items) for _, items in final.outputs),
        }
        for number, final in enumerate(result.finals, 1)
    ]


def _tell(program: Program, events: dict[str, list[Event]], result: Exploration) -> None:
    print(f"{result.configurations:,} configurations")
    if len(result.finals) > 1:
        print(f"the result is NOT unique: {len(result.finals)} different ones; two of them:")
        for number, final in enumerate(result.finals[:2], 1):
            print(f"\nschedule {number}")
            print("\n".join(replay(program, events, final.schedule)))
            for queue, items in final.outputs:
                rows = "; ".join(f"{i.time}:{i.row}" for i in items) or "nothing"
                print(f"  => {queue}: {rows}")
        conflict = operators_in_conflict(program)
        if conflict:
            print("\nthese operators share a variable:")
            print("\n".join(f"  {line}" for line in conflict))
        print("\nthe engines fire by (time, order of declaration, position), which is one of them")
    elif result.is_complete:
        print("the result is unique")
    if not result.is_complete:
        print("stopped at the limit: not every interleaving was tried (--limit N)")
