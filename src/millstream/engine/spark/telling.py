"""What Spark says when it stops, in our words."""

from __future__ import annotations

import errno
import re
from pathlib import Path

from millstream.engine.storage.codec import DamagedState
from millstream.engine.storage.files import FULL
from millstream.errors import RunError

#: It waits ten seconds for a Python that reads inputs, which is short on a busy machine: so a query
#: of which no batch is over is started again.
SLOW, STARTS = "Python worker failed to connect back", 3
_PYTHON_ERROR = re.compile(r"[\w.]*(Error|Exception|State|Fault): ")


def told(error: Exception, log: Path) -> Exception:
    """Spark's errors are pages long; the last Python error in them is the reason."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    reasons = [line for line in lines if _PYTHON_ERROR.match(line)]
    reason = reasons[-1] if reasons else lines[0]
    if "DamagedState: " in reason:
        return DamagedState(reason.partition("DamagedState: ")[2])
    if any(FULL in line for line in lines):
        return OSError(errno.ENOSPC, FULL)
    if SLOW in str(error):
        message = f"a Python of Spark's was not there within ten seconds, {STARTS} times"
        hint = f"this machine may have too much to do; Spark's log is {log}"
        return RunError(message, hint=hint)
    return RunError(f"Spark stopped: {reason}", hint=f"its log is {log}")


def java_ended(log: Path) -> RunError:
    return RunError(
        "the Java that runs Spark has ended; somebody, or the system for want of memory, "
        "has ended it",
        hint=f"its log is {log}",
    )
