"""`millstream bench`: the benchmarks of the checkout, beside hand-written programs.

A benchmark is a module in `bench/` with `BENCHMARKS`, a table of names and functions from
a scale to a list of flat records. They are run from a checkout of the project only.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import platform
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from millstream.cli.show import print_json, print_table
from millstream.errors import UsageError, listing, suggest

Benchmark = Callable[[float], list[dict[str, Any]]]


def run(arguments: argparse.Namespace) -> int:
    known = benchmarks()
    chosen = arguments.names or list(known)
    for name in chosen:
        if name not in known:
            hint = f"benchmarks are: {listing(known)}. {suggest(name, known) or ''}".strip()
            raise UsageError(f'there is no benchmark "{name}"', hint=hint)
    records: list[dict[str, Any]] = []
    for name in chosen:
        found = known[name](arguments.scale)
        records += found
        if arguments.format == "text":
            print(f"# {name}   {machine()}")
            print_table(found)
            print(flush=True)
    if arguments.format == "json":
        print_json([{**record, "machine": machine()} for record in records])
    return 0


def machine() -> str:
    """The conditions under which figures were taken."""
    model = platform.processor() or platform.machine()
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    except OSError:
        model = platform.machine()
    return f"{model}, {os.cpu_count()} cores, Python {platform.python_version()}"


def benchmarks() -> dict[str, Benchmark]:
    """All benchmarks of the checkout that we are in, or that this package comes from."""
    found: dict[str, Benchmark] = {}
    for path in sorted(_folder().glob("*.py")):
        spec = importlib.util.spec_from_file_location(f"millstream_bench_{path.stem}", path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module  # numba finds cached functions by their module
        spec.loader.exec_module(module)
        found.update(getattr(module, "BENCHMARKS", {}))
    return found


def _folder() -> Path:
    for root in (Path.cwd(), Path(__file__).parents[3]):
        if (root / "bench").is_dir() and (root / "pyproject.toml").exists():
            return root / "bench"
    raise UsageError("there is no folder bench here", hint="run this in a checkout of Millstream")
