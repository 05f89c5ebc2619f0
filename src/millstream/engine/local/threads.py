"""The stages of a plan on the cores of one machine: each thread has buckets of its own.

Rows go to buckets as they do on a cluster, and what the buckets make is put back into the one
order of time and rank: so the answer does not depend on how many threads there are. Kernels,
the taking of rows and their hashing all let other threads run meanwhile.

Cutting rows by key and putting them in order again keep nothing, so several rounds are under way
at a time: while the buckets work on one, the next is cut and the last put in order.
"""

from __future__ import annotations

import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np

from millstream.calculus.graph import Program
from millstream.engine.buckets import buckets_of
from millstream.engine.layout import Layout, layout_if_spread
from millstream.engine.local.turns import Turns
from millstream.engine.order import Each, in_order, in_turn
from millstream.engine.settings import check_options
from millstream.engine.state import nothing_of
from millstream.errors import UsageError
from millstream.kernels.rounds import StepRunner
from millstream.kernels.scripts.combining import combined
from millstream.plan.batch import Array, Batch, concat_batches
from millstream.plan.figures import StepFigures, together
from millstream.plan.keys import Copies, Key
from millstream.plan.stages import Stage
from millstream.plan.work import moved, passed, rates, work_of_step

#: The setting: on how many threads the local engine works; as many as there are cores for it.
SETTING = "MILLSTREAM_THREADS"
#: Unless more are asked for: what buckets make is put in order again, which takes longer with each.
_USUAL = 8
#: Of fewer rows in all, threads are not worth their start.
LEAST_ROWS = 1 << 18
#: A round of fewer rows is done sooner than threads have been told of it.
_LEAST_IN_ROUND = 4_096
#: A large program takes longer to be laid out than threads can save.
_MOST_OPERATORS = 500
#: So many times less the work on threads must be: what it takes to move rows is a guess, and
#: they are moved through caches that others fill.
_GAIN = 1.2
#: So many rounds are under way: one is cut, one is worked on, one is put in order.
_UNDER_WAY = 3
#: In seconds: how soon who comes back from compiled work may go on; Python's own 5 ms are as long
#: as that work.
_HAND_OVER = 0.0005

T = TypeVar("T")
Made = dict[str, Batch]


def threads_wanted(asked: int | None) -> int:
    """How many threads there are to be, as asked for, as set, or one for each core."""
    if asked is None:
        text = os.environ.get(SETTING)
        if text is None:
            return min(_cores(), _USUAL)
        if not text.isascii() or not text.isdigit():
            raise UsageError(f'{SETTING} must be a number of threads, got "{text}"')
        asked = int(text)
    check_options({"threads": asked})
    return asked


def _cores() -> int:
    """Those that this process may use, where the system says so."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def layout_for_threads(program: Program, sizes: Mapping[str, float], threads: int) -> Layout | None:
    """How a program is laid out on threads; None if they have nothing to share.

    Reading and writing have threads of their own in any case.
    """
    if len(program.operators) > _MOST_OPERATORS:
        return None
    layout = layout_if_spread(program, sizes)
    is_shared = layout is not None and _is_worth_it(layout, sizes, threads)
    return layout if is_shared else None


def _is_worth_it(layout: Layout, sizes: Mapping[str, float], threads: int) -> bool:
    """Whether several threads save more of the work on rows than it takes to move them.

    One of them has enough to do if it computes while others read and write.
    """
    rate = rates(layout.plan, sizes)
    program = layout.plan.program
    types = program.queue_types()
    read = sum(passed(types[q], rate[q]) for q in program.input_names)
    written = sum(passed(types[q], rate[q]) for q in program.outputs if q in rate)
    alone = shared = carried = 0.0
    for number, stage in enumerate(layout.stages):
        is_cut = not layout.has_one_bucket(number)
        for step in stage.steps:
            work = work_of_step(step) * sum(rate[q] for q in step.inputs)
            if is_cut and not layout.is_everywhere(step):
                shared += work
            else:
                alone += work
        if is_cut:
            has_key = any(key is not None for _, key in stage.keys)
            crossing = {*stage.inputs, *_leaving(stage)}
            carried += sum(moved(types[q], rate.get(q, 0.0), has_key=has_key) for q in crossing)
    work = alone + shared
    in_line = max(work, written, (work + read + written) / threads)
    together = max(written, alone + shared / threads,
                   (work + read + written + carried) / threads)  # fmt: skip
    return _GAIN * together < in_line


def _leaving(stage: Stage) -> set[str]:
    """What a stage makes that none of its own steps takes."""
    return {q for s in stage.steps for q in s.outputs} - {q for s in stage.steps for q in s.inputs}


class ThreadedRunner:
    """Mutable: for each stage of a layout the kernels of its buckets, one bucket a thread."""

    #: How many rounds may be begun before the first of them is asked for.
    under_way = _UNDER_WAY

    def __init__(self, layout: Layout, threads: int) -> None:
        self.plan = layout.plan
        self.layout = layout
        self.types = layout.plan.program.queue_types()
        self._threads = threads
        self._pool = ThreadPoolExecutor(threads, "millstream")
        self._rounds = ThreadPoolExecutor(_UNDER_WAY, "millstream-round")
        self._begun = 0
        self._turns = Turns(len(layout.stages))
        self._figures: list[dict[str, StepFigures]] = []
        self._noting = threading.Lock()
        self._interval = sys.getswitchinterval()
        sys.setswitchinterval(_HAND_OVER)
        self._stages = [
            [
                StepRunner(layout.plan, stage.steps)
                for _ in range(1 if layout.has_one_bucket(number) else threads)
            ]
            for number, stage in enumerate(layout.stages)
        ]

    def close(self) -> None:
        self._turns.stop()
        self._rounds.shutdown(cancel_futures=True)
        self._pool.shutdown(cancel_futures=True)
        sys.setswitchinterval(self._interval)

    def ticks_of(self, name: str, *came: Batch) -> dict[str, Array]:
        return self._stages[0][0].ticks_of(name, *came)

    def round(self, arrivals: Made, mark: int, ticks: dict[str, Array]) -> Iterator[Made]:
        """Begin to run every stage on all items up to a mark; gives what nobody here reads.

        Who asks waits until it is there.
        """
        number, self._begun = self._begun, self._begun + 1
        return _result(self._rounds.submit(self._through, number, arrivals, mark, ticks))

    def _through(self, number: int, arrivals: Made, mark: int, ticks: dict[str, Array]) -> Made:
        try:
            queues = {q: b if len(b) else nothing_of(b.type) for q, b in arrivals.items()}
            for stage in range(len(self._stages)):
                queues.update(self._stage(stage, number, queues, mark, ticks))
        except BaseException:
            self._turns.stop_after(number)  # those who come later would wait for ever
            raise
        return queues

    def _stage(
        self, place: int, number: int, queues: Made, mark: int, ticks: dict[str, Array]
    ) -> Made:
        runners = self._stages[place]
        entering = {q: queues.pop(q) for q in self.layout.stages[place].inputs}
        if len(runners) == 1:
            with self._turns.turn(place, number):
                made = self._bucket(runners[0], 0, entering, mark, ticks)
                self._note(runners)
            return made
        is_much = sum(map(len, entering.values())) >= _LEAST_IN_ROUND
        each = self.each if is_much else in_turn
        cut = {q: self._cut(q, batch, each) for q, batch in entering.items()}

        def part(bucket: int) -> Made:
            return {q: of_bucket(bucket) for q, of_bucket in cut.items()}

        def work(bucket: int) -> Made:
            return self._bucket(runners[bucket], bucket, parts[bucket], mark, ticks)

        buckets = range(len(runners))
        parts = each(part, buckets)
        with self._turns.turn(place, number):
            some = each(work, buckets)
            self._note(runners)
        return self._together(some, each)

    def each(self, work: Callable[[Any], T], some: Sequence[Any]) -> list[T]:
        """The same work on several things, each in a thread."""
        return list(self._pool.map(work, some))

    def _bucket(
        self, runner: StepRunner, bucket: int, mine: Made, mark: int, ticks: dict[str, Array]
    ) -> Made:
        """What a bucket makes in a round, for other buckets or for those who asked."""
        made: dict[str, list[Batch]] = {}
        for queues in runner.round(mine, mark, ticks):
            for name, batch in queues.items():
                if bucket == 0 or name not in self.layout.everywhere:
                    made.setdefault(name, []).append(batch)
        whole = {q: concat_batches(some, self.types[q]) for q, some in made.items()}
        return {q: self._sent(q, batch) for q, batch in whole.items()}

    def _sent(self, queue: str, batch: Batch) -> Batch:
        table = None if queue in self.plan.program.outputs else self.layout.table_of(queue)
        return batch if table is None else combined(table, batch)

    def _cut(self, queue: str, batch: Batch, each: Each) -> Callable[[int], Batch]:
        """How a bucket gets its part of a batch: in its own thread, where it can be."""
        key = self.layout.targets[queue].key
        if isinstance(key, Copies):
            return lambda _: batch
        if key is None:
            ends = _even(len(batch), self._threads)
            return lambda bucket: batch.slice(ends[bucket], ends[bucket + 1])
        if key == () or not len(batch):
            return lambda bucket: batch if bucket == 0 else batch.slice(0, 0)
        numbers = self._numbers(batch, key, each)
        return lambda bucket: batch.take(np.flatnonzero(numbers == bucket))

    def _numbers(self, batch: Batch, key: Key, each: Each) -> Array:
        """The bucket of each row, told by several threads."""
        assert isinstance(key, tuple)
        threads = self._threads
        ends = _even(len(batch), threads)

        def of_block(block: int) -> Array:
            return buckets_of(batch.slice(ends[block], ends[block + 1]), key, threads, 0)

        return np.concatenate(each(of_block, range(threads)))

    def _together(self, made: Sequence[Made], each: Each) -> Made:
        """What all buckets have made, in its order."""
        whole: Made = {}
        for queue in dict.fromkeys(q for some in made for q in some):
            parts = [some[queue] for some in made if queue in some and len(some[queue])]
            type_ = self.types[queue]
            whole[queue] = in_order(parts, type_, each) if parts else nothing_of(type_)
        return whole

    def faults(self) -> Counter[str]:
        """Copies of what every bucket does are counted once."""
        total: Counter[str] = Counter()
        for runners in self._stages:
            for bucket, runner in enumerate(runners):
                counted = [bucket == 0 or not self.layout.is_everywhere(s) for s in runner.steps]
                total.update(runner.faults(counted))
        return total

    def _note(self, runners: Sequence[StepRunner]) -> None:
        """What the steps of a stage have done; asked while nobody runs them."""
        figures = [
            runner.taken_figures(
                [bucket == 0 or not self.layout.is_everywhere(s) for s in runner.steps]
            )
            for bucket, runner in enumerate(runners)
        ]
        with self._noting:
            self._figures += figures

    def taken_figures(self) -> dict[str, StepFigures]:
        """What the steps of all buckets have done since this was asked last."""
        with self._noting:
            figures, self._figures = self._figures, []
        return together(figures)


def _result(made: Future[Made]) -> Iterator[Made]:
    yield made.result()


def _even(rows: int, parts: int) -> list[int]:
    """The ends of blocks of about as many rows."""
    return [rows * n // parts for n in range(parts + 1)]
