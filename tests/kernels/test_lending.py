"""What loops call is compiled once for all constants, without machine code, and is kept."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numba

from millstream.compiled import apart, inlined

KEPT = """
import numba
from millstream.kernels.windows.sums import two_sum, wide_add

@numba.njit
def exact(a, b):
    return two_sum(a, b)

print(exact(1.0, 2.0**-60))
print(sum(two_sum.stats.cache_hits.values()), sum(two_sum.stats.cache_misses.values()))
print(len(wide_add.overloads))
"""


@apart
def _power(base: Any, times: Any) -> Any:
    made = 1.0
    for _ in range(times):
        made *= base
    return made


@inlined
def _square(value: Any) -> Any:
    return _power(value, 2)


def _sum_of_powers(values: Any) -> Any:
    total = 0.0
    for value in values:
        total += _square(value) + _power(value, 3) + _power(value, 4)
    return total


def test_a_function_has_one_form_for_all_constants_and_no_machine_code() -> None:
    anew: Any = numba.njit(_sum_of_powers)  # nothing of it is kept, so it asks for what it calls
    assert 31 == anew((1.0, 2.0))
    (form,) = _power.overloads.values()  # type: ignore[attr-defined]
    assert 0 == form.library.get_pointer_to_function(form.fndesc.llvm_func_name)


def test_what_is_lent_is_kept_also_for_another_installation(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(
        root / "src", elsewhere, copy_function=shutil.copyfile,
        ignore=shutil.ignore_patterns("__pycache__"),
    )  # fmt: skip
    environment = {**os.environ, "MILLSTREAM_CACHE": str(tmp_path / "cache")}
    environment.pop("NUMBA_CACHE_DIR", None)
    said = [
        subprocess.run(
            [sys.executable, "-W", "error", "-c", KEPT],
            env={**environment, "PYTHONPATH": str(place)},
            cwd=root, capture_output=True, text=True, check=True,
        ).stdout.splitlines()
        for place in (root / "src", elsewhere)
    ]  # fmt: skip
    exact = f"(1.0, {2.0**-60})"
    # One is asked for, found the second time; what is not asked for is not looked for.
    assert [[exact, "0 1", "0"], [exact, "1 0", "0"]] == said
