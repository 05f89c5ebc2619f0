"""Every function of Excel with arguments that nobody has thought of, in little time and memory.

    python -m tests.languages.sheets.any_arguments COUNT SEED

tries each function COUNT times and prints what breaks down, takes long or wants much memory.
"""

from __future__ import annotations

import random
import resource
import signal
import sys
from collections.abc import Iterator
from types import FrameType

from millstream.errors import MillstreamError
from millstream.values.excel.table import FUNCTIONS, SPECIAL
from tests.languages.sheets.books import value

#: Seconds of the processor for one formula, and bytes for all of them.
MOST_SECONDS = 4.0
MOST_BYTES = 3 << 30

DATA = {
    "A1": 1, "A2": -2.5, "A3": "x", "A4": True, "A5": "12", "A7": 1e308, "A8": 5e-324,
    "A9": "=1/0", "B1": 3, "B2": 4, "B3": 0, "B4": 1e15, "B5": -1e15,
}  # fmt: skip

NUMBERS = (
    "0", "1", "-1", "2", "0.5", "-0.5", "10", "16", "36", "255", "3", "(-0)", "1E308", "-1E308",
    "1E-300", "5E-324", "1E15", "1E5", "1E6", "-1E6", "3E9", "12345678", "2147483648", "9E15",
)  # fmt: skip
DATES = ("40000", "60", "2958465", "2958466", "-1", '"1/2/2020"', '"25:61"', '"31.12.9999"')
TEXTS = (
    '""', '" "', '"abc"', '"12"', '"1E400"', '"0.00"', '"<>1"', '"~"', '"*a?"', '"i"', '"3+4i"',
    '"1E308+1E308i"', '"TRUE"', '"[h]:mm"', '"\N{GREEK SMALL LETTER ALPHA}\N{GRINNING FACE}"',
    'REPT("a",5000)', '"R1C1"', '"A1"', "CHAR(0)", '"(("',
)  # fmt: skip
AREAS = (
    "A1:A9", "A1:B5", "B1:B5", "A3", "A6", "A7", "A8", "A9", "B4", "A6:B7", "C1:C9", "{1,2;3,4}",
    '{1;-2;"x"}', "{0}", "{1,#N/A}", "{TRUE,FALSE}", "SEQUENCE(3,3)", "{1E308;1E308}",
)  # fmt: skip
OTHERS = (
    "", "TRUE", "FALSE", "#N/A", "#DIV/0!", "1/0", "LAMBDA(x,x)", "LAMBDA(x,y,x+y)",
    "LAMBDA(x,1/0)", "LAMBDA(1)", "LAMBDA(x,LAMBDA(y,x))", "IF(TRUE,LAMBDA(x,x))",
)  # fmt: skip
ARGUMENTS = (NUMBERS, DATES, TEXTS, AREAS, OTHERS)
NAMES = sorted({*FUNCTIONS, *SPECIAL})


def calls(name: str, count: int, seed: int = 0) -> Iterator[str]:
    """So many calls of a function, the same each time."""
    chance = random.Random(f"{name} {seed}")
    spec = FUNCTIONS.get(name)
    counts = [n for n in range(9) if spec is None or spec.accepts(n)]
    for _ in range(count):
        # Calls of one kind of argument get further than mixed ones.
        kinds = chance.choice((ARGUMENTS, (NUMBERS,), (NUMBERS, AREAS), (NUMBERS, DATES)))
        given = [chance.choice(chance.choice(kinds)) for _ in range(chance.choice(counts))]
        formula = f"={name}({','.join(given)})"
        yield formula if chance.random() < 0.7 else f"{{{formula}}}"


def answer(formula: str) -> object:
    """What a formula gives; None if it is refused with a reason."""
    try:
        return value(formula, DATA)
    except MillstreamError:
        return None


def is_answer(found: object) -> bool:
    if type(found) is float:
        return found - found == 0
    return found is None or isinstance(found, (str, bool))


class _TooLong(BaseException):
    """A formula has had its time."""


def _stop(number: int, frame: FrameType | None) -> None:
    raise _TooLong


def fault_of(formula: str) -> str | None:
    """What is wrong with the answer to a formula, if anything is."""
    signal.setitimer(signal.ITIMER_VIRTUAL, MOST_SECONDS)
    try:
        found = answer(formula)
    except (Exception, _TooLong) as error:  # noqa: BLE001 - whatever it is, it is told
        return f"{type(error).__name__}: {error}"
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return None if is_answer(found) else f"gives {found!r}"


def main() -> int:
    count, seed = int(sys.argv[1]), int(sys.argv[2])
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    signal.signal(signal.SIGVTALRM, _stop)
    faults = 0
    for name in NAMES:
        for formula in calls(name, count, seed):
            fault = fault_of(formula)
            if fault is not None:
                faults += 1
                sys.stdout.write(f"{formula}   {fault}\n")
    sys.stdout.write(f"{len(NAMES) * count} formulas, {faults} faults\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
