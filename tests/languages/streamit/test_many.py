"""Two thousand instances of twenty filters: each is compiled once, and read again when warm."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

_FILTER = """
float->float filter F{n}(int taps, float gain) {{
    float[taps] h;
    float kept;
    init {{ for (int i = 0; i < taps; i++) h[i] = (i + {n}) * gain; }}
    work push 1 pop 1 peek taps {{
        float sum = {n};
        for (int i = 0; i < taps; i++) sum += peek(i) * h[i];
        if (sum > {n}) kept = sum; else kept = kept / 2;
        push(kept - sum);
        pop();
    }}
}}
"""
PROGRAM = (
    "".join(_FILTER.format(n=n) for n in range(20))
    + """
void->void pipeline Main {
    add void->float filter { work push 1 { push(iter() % 7); } };
    for (int i = 0; i < 100; i++) {
"""
    + "\n".join(f"add F{n}(1 + (i + {n}) % 3, 0.001 * i);" for n in range(20))
    + """
    }
    add float->void filter { work pop 1 { println(pop()); } };
}
"""
)


def _environment(cache: Path) -> dict[str, str]:
    """Where Python keeps what it has read of modules, as it does unless it is told not to."""
    kept = {"MILLSTREAM_CACHE": str(cache), "PYTHONPYCACHEPREFIX": str(cache / "modules")}
    return {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"} | kept


def _started(program: Path, cache: Path) -> tuple[float, str]:
    """The processor time of a run, and what it prints."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "millstream", "run", str(program), "--engine", "local"]
    done = subprocess.run(
        [*command, "--iterations", "3"], check=True, capture_output=True, text=True,
        env=_environment(cache),
    )  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return spent, done.stdout


@pytest.mark.proof
def test_two_thousand_instances_of_twenty_filters_start_in_time(tmp_path: Path) -> None:
    program = tmp_path / "many.str"
    program.write_text(PROGRAM)
    cold, first = _started(program, tmp_path / "cache")
    warm, second = min(_started(program, tmp_path / "cache") for _ in range(3))
    assert first == second
    assert 3 == len(first.splitlines())
    assert cold < 60, cold
    assert warm < 3, warm
