"""`millstream bench`: the benchmarks of the checkout, beside hand-written programs.

Benchmarks are modules `bench/*.py` with `BENCHMARKS`, a table of names and functions
from a scale to a list of flat records; what a function says of itself are its conditions.
The name of a module stands for all its benchmarks: `millstream bench spark` runs those of
`bench/spark_engine.py`. They are run from a checkout of the project only.
"""

from __future__ import annotations

import argparse
import importlib.util
import inspect
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
    chosen = choose(benchmarks(), arguments.names)
    records: list[dict[str, Any]] = []
    for name, benchmark in chosen.items():
        measured = benchmark(arguments.scale)
        records += [{"name": name, **record} for record in measured]
        if arguments.format == "text":
            print(f"# {name}   {machine()}")
            for line in (inspect.getdoc(benchmark) or "").splitlines():
                print(f"# {line}".rstrip())
            print_table(measured)
            print(flush=True)
    if arguments.format == "json":
        print_json([{**record, "machine": machine()} for record in records])
    return 0


def choose(known: dict[str, dict[str, Benchmark]], names: list[str]) -> dict[str, Benchmark]:
    """The benchmarks that are named, alone or by their module; all if none is named."""
    single = {name: one for module in known.values() for name, one in module.items()}
    chosen: dict[str, Benchmark] = {}
    for name in names or known:
        if name not in single and name not in known:
            every = [*known, *single]
            hint = f"benchmarks are: {listing(every)}. {suggest(name, every) or ''}".strip()
            raise UsageError(f'there is no benchmark "{name}"', hint=hint)
        chosen |= known.get(name) or {name: single[name]}
    return chosen


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


def benchmarks() -> dict[str, dict[str, Benchmark]]:
    """All benchmarks of the checkout that we are in, or that this package comes from."""
    by_file: dict[str, dict[str, Benchmark]] = {}
    folder = _folder()
    sys.path.insert(0, str(folder))  # they may share modules that lie beside them
    for path in sorted(folder.glob("*.py")):
        if "\nBENCHMARKS" not in path.read_text():
            continue  # others are parts of these
        spec = importlib.util.spec_from_file_location(f"millstream_bench_{path.stem}", path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module  # numba finds cached functions by their module
        spec.loader.exec_module(module)
        by_file[path.stem.removesuffix("_engine")] = module.BENCHMARKS
    return by_file


def _folder() -> Path:
    for root in (Path.cwd(), Path(__file__).parents[3]):
        if (root / "bench").is_dir() and (root / "pyproject.toml").exists():
            return root / "bench"
    raise UsageError("there is no folder bench here", hint="run this in a checkout of Millstream")
