"""Work of the event loop that hardly ever has to wait: it is begun where it is asked for.

A task for it would cost more than the work.
"""

from __future__ import annotations

import asyncio
import types
from collections.abc import Awaitable, Coroutine, Generator
from typing import Any


def begun(work: Coroutine[Any, Any, None]) -> Awaitable[None] | None:
    """Do what can be done without waiting; what is left to be awaited, or None."""
    try:
        awaited = work.send(None)
    except StopIteration:
        return None
    except Exception as error:  # noqa: BLE001 - it is for whoever awaits
        failed = asyncio.get_running_loop().create_future()
        failed.set_exception(error)
        return failed
    return _rest(work, awaited)


@types.coroutine
def _rest(work: Coroutine[Any, Any, None], awaited: Any) -> Generator[Any, Any, None]:
    while True:
        thrown: BaseException | None = None
        try:
            yield awaited
        except BaseException as error:  # noqa: BLE001 - it is for what waits
            thrown = error
        try:
            awaited = work.send(None) if thrown is None else work.throw(thrown)
        except StopIteration:
            return
