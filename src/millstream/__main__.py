"""`python -m millstream` is the command `millstream`."""

from __future__ import annotations

import gc
import sys

from millstream.interrupts import interruptible


def _command() -> int:
    from millstream.cli.main import main as run  # takes a while, and may be interrupted too

    return run()


def main() -> int:
    status = interruptible(_command)
    # Python would look for cycles in all that is left, which takes longer the more there is.
    # DuckDB, which benchmarks compare with, complains about what it has left in some.
    if "duckdb" not in sys.modules:
        gc.freeze()
    return status


if __name__ == "__main__":
    sys.exit(main())
