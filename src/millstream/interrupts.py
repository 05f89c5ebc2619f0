"""Ctrl-C at any moment: no traceback, "stopped", exit status 130, and nothing half published.

This module is loaded before everything else, so it needs next to nothing itself.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

#: As shells have it for what was ended by Ctrl-C.
STOPPED = 130
#: Who presses Ctrl-C again within so many seconds need not wait less; after them it ends at once.
_PATIENCE = 2.0
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
#: Between an interrupt that somebody else has swallowed and its repetition.
_AGAIN = 0.02


class _Interrupts:
    """Mutable: what has been asked for while a command runs."""

    def __init__(self) -> None:
        self.since: float | None = None

    def take(self, _signal: int, _frame: object) -> None:
        if self.since is None:
            self.since = time.monotonic()
            raise KeyboardInterrupt
        if time.monotonic() - self.since > _PATIENCE:
            say_stopped()
            os._exit(STOPPED)

    def unraisable(self, unraisable: Any) -> None:
        """An interrupt that came where nothing can be raised comes again a moment later."""
        if not isinstance(unraisable.exc_value, KeyboardInterrupt):
            sys.__unraisablehook__(unraisable)
            return
        signal.signal(signal.SIGALRM, self.again)
        signal.setitimer(signal.ITIMER_REAL, _AGAIN)

    def again(self, _signal: int, _frame: object) -> None:
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
    # What is left to do is to leave, and no interrupt makes that faster.
    for one in (*_SIGNALS, signal.SIGALRM):
        signal.signal(one, signal.SIG_IGN)
    return STOPPED if was_interrupted() else status


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
