"""How the scanners are compiled: at their first call, and kept on disk.

Numba notices when the file of a function changes, but not when functions do that it calls
in other files; so every scanner has all it calls in its own file.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba

F = TypeVar("F", bound=Callable[..., Any])

_njit: Any = numba.njit


def compiled(function: F) -> F:
    return _compiled(function)


def inlined(function: F) -> F:
    """For what is called once per cell: a call counts references, which costs more."""
    return _compiled(function, forceinline=True)


def _compiled(function: F, **options: Any) -> F:
    try:
        return _njit(cache=True, nogil=True, **options)(function)  # type: ignore[no-any-return]
    except RuntimeError:  # no folder at all can be written to: compile at every start
        return _njit(nogil=True, **options)(function)  # type: ignore[no-any-return]
