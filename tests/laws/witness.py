"""Who ran the steps of a law: compiled loops, or the reference in their place.

A law that compares the reference with itself proves nothing. So whoever runs programs on
an engine notes which kernels were given rows, and how often a generated loop was called.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numba

from millstream.kernels.build import build_kernel
from millstream.kernels.fallback import FallbackKernel
from millstream.kernels.loop import cache
from millstream.plan.batch import Batch


class Witness:
    """Mutable: how often each kernel had rows, and each generated loop was called."""

    def __init__(self) -> None:
        self.kernels: Counter[str] = Counter()
        self.loops = 0

    @property
    def compiled(self) -> int:
        """How often a kernel that is no fallback had rows."""
        return sum(n for name, n in self.kernels.items() if name != FallbackKernel.__name__)

    def building(self, build: Callable[..., Any]) -> Callable[..., Any]:
        def built(*args: Any) -> Any:
            kernel = build(*args)
            process = kernel.process

            def processed(inputs: tuple[Batch, ...], round_: Any) -> Any:
                if any(map(len, inputs)):
                    self.kernels[type(kernel).__name__] += 1
                return process(inputs, round_)

            kernel.process = processed
            return kernel

        return built

    def compiling(self, compile_: Callable[[str], Any]) -> Callable[[str], Any]:
        def compiled(source: str) -> Any:
            loop = compile_(source)

            def called(*args: Any) -> Any:
                self.loops += 1
                return loop(*args)

            # A net calls its loops by their address, which is not seen here.
            vars(called)["overloads"] = loop.overloads
            return called

        return compiled

    def check(self) -> None:
        config: Any = numba.config
        assert not config.DISABLE_JIT, "numba compiles nothing in this process"
        assert self.compiled, f"no kernel has run, only {dict(self.kernels)}"
        assert self.loops, f"no generated loop has run; kernels: {dict(self.kernels)}"


@contextmanager
def watching() -> Iterator[Witness]:
    """Watch all engines of this process."""
    witness = Witness()
    watched: list[tuple[Any, Any]] = [
        (build_kernel, witness.building(build_kernel)),
        (cache.compiled, witness.compiling(cache.compiled)),
    ]
    for before, after in watched:
        _replace(before, after)
    try:
        yield witness
    finally:
        # Modules that were imported meanwhile know only what was put in place.
        for before, after in watched:
            _replace(after, before)


def _replace(before: Any, after: Any) -> None:
    """Put one function in place of another in all our modules that know it."""
    places = [
        (module, name)
        for path, module in list(sys.modules.items())
        if path.startswith("millstream.")
        for name, known in list(vars(module).items())
        if known is before
    ]
    assert places
    for module, name in places:
        setattr(module, name, after)
