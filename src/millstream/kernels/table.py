"""Which kernel computes which function of time or order.

A kernel is made of the function, the types of its inputs and the number of its outputs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from millstream.calculus import functions
from millstream.calculus.functions import Function
from millstream.calculus.work import Interleave
from millstream.kernels.cube.cube import CubeKernel
from millstream.kernels.judge.judge import JudgeKernel
from millstream.kernels.relational.aggregate import AggregateKernel
from millstream.kernels.relational.changes import ChangesKernel
from millstream.kernels.relational.distinct import DistinctKernel, ExceptKernel
from millstream.kernels.relational.held import HeldKernel
from millstream.kernels.relational.join import JoinKernel
from millstream.kernels.relational.lookup import lookup_kernel
from millstream.kernels.relational.merge import MergeKernel
from millstream.kernels.relational.ordered import ordered_kernel
from millstream.kernels.relational.roundrobin import (
    InterleaveKernel,
    RoundRobinJoinKernel,
    RoundRobinSplitKernel,
)
from millstream.kernels.relational.top import TopKernel
from millstream.kernels.relational.tostream import DifferenceKernel, RstreamKernel
from millstream.kernels.relational.until import UntilKernel
from millstream.kernels.relational.window_rows import rows_kernel
from millstream.kernels.relational.window_time import range_kernel
from millstream.kernels.scripts.on_columns import ColumnsKernel
from millstream.kernels.scripts.tally import TallyKernel

KERNELS: dict[type[Function], Callable[..., Any]] = {
    functions.Merge: MergeKernel,
    functions.Now: range_kernel,
    functions.Range: range_kernel,
    functions.Until: UntilKernel,
    functions.Rows: rows_kernel,
    functions.Latest: rows_kernel,
    functions.Held: HeldKernel,
    functions.Join: JoinKernel,
    functions.Lookup: lookup_kernel,
    functions.Judge: JudgeKernel,
    functions.Cubify: CubeKernel,
    functions.Aggregate: AggregateKernel,
    functions.Distinct: DistinctKernel,
    functions.Except: ExceptKernel,
    functions.Top: TopKernel,
    functions.Ordered: ordered_kernel,
    functions.Istream: DifferenceKernel,
    functions.Changes: ChangesKernel,
    functions.Dstream: DifferenceKernel,
    functions.Rstream: RstreamKernel,
    functions.RoundRobinSplit: RoundRobinSplitKernel,
    functions.RoundRobinJoin: RoundRobinJoinKernel,
    Interleave: InterleaveKernel,
    functions.RunScript: ColumnsKernel,
    functions.Tally: TallyKernel,
}
