"""The program that a checkpoint was begun with.

A checkpoint holds the state of a program as it was optimised then. Other passes, or those of
another version, make another program of the same text, which could do nothing with that state.
So a checkpoint keeps both: it is known by the program as it was written, and gone on with by the
program as it was run.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from millstream.calculus.graph import Program
from millstream.calculus.text import render
from millstream.engine.checkpoint import Checkpoint
from millstream.errors import ProgramError
from millstream.languages import DEFAULT, translate
from millstream.optimiser.optimise import optimise
from millstream.source import Source


def as_begun(folder: str | Path, written: Program, optimised: Program) -> Program:
    """The program that goes on with a checkpoint; only if need be not the optimised one."""
    if not Path(folder).is_dir():
        return optimised  # nothing was begun there; what else is there is told elsewhere
    made = Checkpoint(Path(folder)).made()
    if made is None or made.get("written") != render(written):
        return optimised  # nothing to go on with, or of another program, which is told elsewhere
    text = made["program"]
    if text == render(optimised):
        return optimised
    try:
        begun = translate(Source(f"{folder}/job", text), DEFAULT).program
    except ProgramError:
        # Functions of Python have no text; what other passes made of them is told elsewhere.
        usual = (program for program in (written, optimise(written)) if render(program) == text)
        return next(usual, optimised)
    # What is not in a text, such as how times are written, is that of the same inputs now.
    return replace(begun, inputs=written.inputs) if begun.inputs == written.inputs else optimised
