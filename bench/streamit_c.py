"""The loops of `streamit_hand.c`, compiled by gcc where there is one."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

#: Sums of products are rounded twice, as everywhere else here.
FLAGS = ("-O2", "-ffp-contract=off", "-shared", "-fPIC")


def compiled() -> Callable[..., int] | None:
    """Calls a loop by its name with arrays and numbers; None if there is no gcc."""
    gcc = shutil.which("gcc")
    if gcc is None:
        return None
    source = Path(__file__).with_name("streamit_hand.c")
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "hand.so"
        subprocess.run([gcc, *FLAGS, "-o", str(library), str(source), "-lm"], check=True)  # noqa: S603
        loaded = ctypes.CDLL(str(library))

    def call(name: str, *arguments: Any) -> int:
        function = loaded[name]
        function.restype = ctypes.c_int64
        return int(function(*map(_passed, arguments)))

    return call


def _passed(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        assert value.flags.c_contiguous
        return ctypes.c_void_p(value.ctypes.data)
    return ctypes.c_int64(value)
