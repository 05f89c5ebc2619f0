"""Libraries that only some need: a missing one is told with what to install."""

from __future__ import annotations

import importlib
from typing import Any

from millstream.errors import UsageError


def optional(module: str, extra: str) -> Any:
    """A module of an extra."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise UsageError(
            f"this needs {module.partition('.')[0]}, which is not installed",
            hint=f"pip install 'millstream[{extra}]'",
        ) from None
