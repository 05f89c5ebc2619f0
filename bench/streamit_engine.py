"""Benchmarks of nets of filters beside hand-written loops, in numba and in C.

Times are those of the processor, the least of several runs.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import streamit_c
import streamit_coefficients as coefficients
import streamit_hand as hand
import streamit_programs as programs
from millstream.kernels.build import why_not
from millstream.kernels.rounds import StepRunner
from millstream.kernels.runtime.kernel import Round
from millstream.languages.streamit.load import load
from millstream.plan.batch import Batch, Vector
from millstream.plan.steps import make_plan
from millstream.source import Source

F = np.float32
RUNS = 5
IN_C = streamit_c.compiled()
#: The name of a loop, and what it is given before and after the room for what it gives.
Arguments = tuple[str, tuple[Any, ...], tuple[Any, ...]]


def _ours(text: str, items: Any) -> tuple[float, Any]:
    """The least time for all items, and what came out first."""
    program = load(Source("bench.str", text)).program
    plan = make_plan(program, why_not)
    (one,) = program.inputs
    type_ = one.type.schema.fields[0].type
    wide = items.astype(np.float64 if items.dtype == F else np.int64)
    batch = Batch(one.type, np.arange(len(items)), (Vector(type_, wide),))
    best, first = float("inf"), None
    for _ in range(RUNS):
        (kernel,) = StepRunner(plan).kernels
        begun = time.process_time()
        (sent,) = kernel.process((batch,), Round(len(items), np.zeros(0, np.int64)))
        best = min(best, time.process_time() - begun)
        first = sent if first is None else first
    assert first is not None
    return best, first.columns[0].values


def _theirs(run: Callable[[], int]) -> tuple[float, int]:
    count, best = run(), float("inf")
    for _ in range(RUNS):
        begun = time.process_time()
        count = run()
        best = min(best, time.process_time() - begun)
    return best, count


def _equal(name: str, sent: Any, out: Any, count: int) -> None:
    # At the end one of them may go a little further: what looks ahead waits for items.
    same = min(count, len(sent))
    assert same > 0.9 * max(count, len(sent)), (name, count, len(sent))
    assert np.array_equal(sent[:same].astype(out.dtype), out[:same], equal_nan=True), name


def _compared(name: str, text: str, items: Any, arguments: Arguments) -> dict[str, Any]:
    function, before, after = arguments
    ours, sent = _ours(text, items)
    row = {"program": name, "items": len(items), "ours_per_s": round(len(items) / ours)}
    for rival, call in _rivals(function).items():
        if call is None:
            row[f"of_{rival}"] = "no gcc"
            continue
        out = np.zeros(2 * len(items) + 64, items.dtype)
        theirs, count = _theirs(lambda call=call, out=out: call(*before, out, *after))  # type: ignore[misc]
        _equal(name, sent, out, count)
        row[f"{rival}_per_s"] = round(len(items) / theirs)
        row[f"of_{rival}"] = round(theirs / ours, 2)
    return row


def _rivals(function: str) -> dict[str, Callable[..., int] | None]:
    in_c = IN_C
    call = None if in_c is None else lambda *given: in_c(function, *given)
    return {"numba": getattr(hand, function), "c": call}


def _room(items: Any, count: int) -> tuple[Any, ...]:
    return tuple(np.zeros(len(items) + 64, F) for _ in range(count))


def streamit(scale: float) -> list[dict[str, Any]]:
    """Items per second of processor time; answers are equal, bit for bit. C is gcc -O2."""
    rng = np.random.default_rng(7)
    x = rng.standard_normal(int(400_000 * scale)).astype(F)
    k = rng.integers(-(10**6), 10**6, int(400_000 * scale)).astype(np.int32)
    low = hand.low_pass
    first, second = (
        np.array([[F(i * 32 + b * 32 + b + i + 1) for i in range(32)] for b in range(s, s + 8)])
        for s in (0, 8)
    )
    (front, bands), last = coefficients.equalizer(), low(8000, 40, 64)
    fronts = np.array([low(1000, 100 + 10 * i, 32) for i in range(12)])
    backs = np.array([low(1000, 50 + 10 * i, 32) for i in range(4)])
    vocal = np.array([low(8000, 200 * i + f, 64) for i in range(6) for f in (100, 300)])
    w, cosines = coefficients.turns(), coefficients.cosines()
    steer, room, n = coefficients.steering(), _room(x, 3), len(x)
    calls: dict[str, tuple[str, Any, Arguments]] = {
        "fm radio": (programs.FM_RADIO, x, ("fm_radio", (x, n, front, bands), room)),
        "fft": (programs.FFT, x, ("fft", (x, n, w), ())),
        "bitonic sort": (programs.BITONIC, k, ("bitonic", (k, n), ())),
        "filter bank": (programs.FILTER_BANK, x,
                        ("filter_bank", (x, n, first, second), room[:2])),
        "dct": (programs.DCT, x, ("dct", (x, n, cosines), ())),
        "beamformer": (programs.BEAMFORMER, x,
                       ("beamformer", (x, n, fronts, steer, backs), room)),
        "vocoder": (programs.VOCODER, x, ("vocoder", (x, n, vocal, last), room[:2])),
    }  # fmt: skip
    return [_compared(name, *call) for name, call in calls.items()]


BENCHMARKS = {"streamit": streamit}
