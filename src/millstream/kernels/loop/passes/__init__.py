"""The passes of the loop compiler: one per file, each with its law."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from millstream.kernels.loop.ir import Function
from millstream.kernels.loop.passes.assume_present import assume_present
from millstream.kernels.loop.passes.assume_sound import assume_sound
from millstream.kernels.loop.passes.certain import certain
from millstream.kernels.loop.passes.choices import choices
from millstream.kernels.loop.passes.fold import fold
from millstream.kernels.loop.passes.overwritten import overwritten
from millstream.kernels.loop.passes.share import share
from millstream.kernels.loop.passes.unneeded import unneeded

Pass = Callable[[Function], Function]

#: For statements without guards.
STEPS: tuple[Pass, ...] = (overwritten, fold, share, unneeded)
#: For rows, whatever is given.
CAREFUL: tuple[Pass, ...] = (fold, certain, share, unneeded, choices)
#: For rows of columns without nulls.
PLAIN: tuple[Pass, ...] = (assume_present, *CAREFUL)
#: For such rows, if nothing fails.
HOPEFUL: tuple[Pass, ...] = (assume_present, assume_sound, *CAREFUL)


def through(passes: tuple[Pass, ...], function: Function) -> Function:
    return reduce(lambda made, one: one(made), passes, function)
