"""`python -m millstream` is the command `millstream`."""

from __future__ import annotations

import sys

from millstream.interrupts import interruptible


def _command() -> int:
    from millstream.cli.main import main as run  # takes a while, and may be interrupted too

    return run()


def main() -> int:
    return interruptible(_command)


if __name__ == "__main__":
    sys.exit(main())
