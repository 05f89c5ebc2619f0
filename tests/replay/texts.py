"""What becomes of a program, as text that does not depend on where its modules lie."""

from __future__ import annotations

import re
from typing import Any

from millstream.api import Compiled
from millstream.engine.local.run import plan_for
from millstream.explain import STAGES
from millstream.kernels.rounds import StepRunner
from millstream.optimiser.optimise import optimise

#: An import of ours in a generated loop.
_IMPORT = re.compile(r"from millstream[\w.]* import (.+)\n")


def texts(compiled: Compiled) -> dict[str, str]:
    """The text of every stage; under the kernels also the loops that `explain` leaves out."""
    made = {stage: compiled.explain(stage) for stage in STAGES}
    made["kernels"] += "\n".join(_further_loops(compiled))
    return {stage: without_modules(text).rstrip() + "\n" for stage, text in made.items()}


def _further_loops(compiled: Compiled) -> list[str]:
    """The loops for batches with nulls, and those that make columns before the main loop."""
    kernels: list[Any] = StepRunner(plan_for(optimise(compiled.program))).kernels
    loops: list[str] = []
    for number, kernel in enumerate(kernels, 1):
        functions = getattr(kernel, "functions", None)
        if functions is None:
            continue
        if functions.hopeful is not None:
            loops += [f"# step {number}, if something fails", functions.plain.source]
        if functions.masked.source != functions.plain.source:
            loops += [f"# step {number}, with nulls", functions.masked.source]
        columns = dict.fromkeys(c.loop.source for c in functions.before.values())
        for source in columns:
            loops += [f"# step {number}, columns before the loop", source]
    return loops


def without_modules(text: str) -> str:
    """Which of our functions a loop calls, without where they are imported from."""
    blocks = re.compile(rf"(?:{_IMPORT.pattern.replace('(', '(?:')})+")
    return blocks.sub(_names, text)


def _names(block: re.Match[str]) -> str:
    names = {n.strip() for line in _IMPORT.findall(block[0]) for n in line.split(",")}
    return f"# calls {', '.join(sorted(names))}\n"
