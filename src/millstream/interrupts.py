"""Ctrl-C at any moment: no traceback, "stopped", exit status 130, and nothing half published.

This module is loaded before everything else, so it needs next to nothing itself.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

#: As shells have it for what was ended by Ctrl-C.
STOPPED = 130
#: Who presses Ctrl-C again within so many seconds need not wait less; after them it ends at once.
_PATIENCE = 2.0
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
#: Between an interrupt that came where nothing can be raised and its repetition.
_AGAIN = 0.02
#: So often it is looked whether somebody has swallowed an interrupt.
_LOOK = 0.5


class _Interrupts:
    """Mutable: what has been asked for while a command runs."""

    def __init__(self) -> None:
        self.since: float | None = None

    def take(self, _signal: int, _frame: object) -> None:
        if self.since is None:
            self.since = time.monotonic()
            self.come_again(_LOOK)
            raise KeyboardInterrupt
        if time.monotonic() - self.since > _PATIENCE:
            say_stopped()
            os._exit(STOPPED)

    def unraisable(self, unraisable: Any) -> None:
        """An interrupt that came where nothing can be raised comes again a moment later."""
        if not isinstance(unraisable.exc_value, KeyboardInterrupt):
            sys.__unraisablehook__(unraisable)
            return
        self.come_again(_AGAIN)

    def come_again(self, after: float) -> None:
        signal.signal(signal.SIGALRM, self.again)
        signal.setitimer(signal.ITIMER_REAL, after, _LOOK)

    def again(self, _signal: int, _frame: object) -> None:
        """Some libraries, compilers among them, swallow an interrupt and go on.

        While it is being handled, by cleaning up after it, it does not come again.
        """
        handled = sys.exc_info()[1]
        while handled is not None and not isinstance(handled, KeyboardInterrupt):
            handled = handled.__context__
        if handled is None:
            raise KeyboardInterrupt


_interrupts = _Interrupts()


def was_interrupted() -> bool:
    """Whether an interrupt has come, whatever others have made of it: some libraries swallow it."""
    return _interrupts.since is not None


def say_stopped() -> None:
    sys.stderr.write("\nstopped\n" if sys.stderr.isatty() else "stopped\n")
    sys.stderr.flush()


def interruptible(command: Callable[[], int]) -> int:
    """The exit status of a whole process, which ends quietly when it is interrupted."""
    for one in _SIGNALS:
        if signal.getsignal(one) is not signal.SIG_IGN:  # as it is for what runs in the background
            signal.signal(one, _interrupts.take)
    sys.unraisablehook = _interrupts.unraisable
    try:
        status = command()
        sys.stdout.flush()
    except KeyboardInterrupt:
        say_stopped()
        status = STOPPED
    except BrokenPipeError:
        _let_nobody_read()
        status = 0
    except Exception:
        if not was_interrupted():
            raise
        say_stopped()  # it came while a library was being loaded, which told it as an error
    # What is left to do is to leave, and no interrupt makes that faster.
    for one in (*_SIGNALS, signal.SIGALRM):
        signal.signal(one, signal.SIG_IGN)
    return STOPPED if was_interrupted() else status


def leave(status: int) -> NoReturn:
    """End this process with a status, also if code that was made of a text was interrupted.

    Of such code Python remembers that it was not caught there, and ends itself by the signal.
    """
    with suppress(OSError):  # whoever read it may have gone
        sys.stdout.flush()
    atexit._run_exitfuncs()  # noqa: SLF001 - what others have registered is done by nobody else
    os._exit(status)


def _let_nobody_read() -> None:
    """Whoever read our output has gone; give Python something to flush into."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def undisturbed() -> Iterator[None]:
    """Do something as a whole, if at all: interrupts wait until it is done."""
    if was_interrupted():
        raise KeyboardInterrupt
    if threading.current_thread() is not threading.main_thread():
        yield  # interrupts come to the main thread
        return
    held: list[int] = []
    before = {one: signal.getsignal(one) for one in _SIGNALS}
    for one, handler in before.items():
        if callable(handler):
            signal.signal(one, lambda number, _: held.append(number))
    try:
        yield
    finally:
        for one, handler in before.items():
            if callable(handler):
                signal.signal(one, handler)
        if held:
            signal.raise_signal(held[0])
