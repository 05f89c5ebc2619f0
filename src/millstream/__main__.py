"""`python -m millstream` is the command `millstream`."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # under `signal`, which takes a while to load
import gc
import os
import sys


def _leave(_signal: int, _frame: object) -> None:
    """Before anything has begun there is nothing to clean up."""
    os.write(2, b"\nstopped\n" if os.isatty(2) else b"stopped\n")
    os._exit(130)


def _command() -> int:
    from millstream.cli.main import main as run  # takes a while, and may be interrupted too

    return run()


def main() -> int:
    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, _leave)
    from millstream.interrupts import interruptible, leave, was_interrupted

    status = interruptible(_command)
    if was_interrupted():
        leave(status)
    # Python would look for cycles in all that is left, which takes longer the more there is.
    # DuckDB, which benchmarks compare with, complains about what it has left in some.
    if "duckdb" not in sys.modules:
        gc.freeze()
    return status


if __name__ == "__main__":
    sys.exit(main())
