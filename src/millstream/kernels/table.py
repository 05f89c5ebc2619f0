"""Which kernel computes which function of time or order.

A kernel is made of the function, the types of its inputs and the number of its outputs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from millstream.calculus import functions
from millstream.calculus.functions import Function
from millstream.kernels.judge.judge import JudgeKernel
from millstream.kernels.relational.aggregate import AggregateKernel
from millstream.kernels.relational.changes import ChangesKernel
from millstream.kernels.relational.distinct import DistinctKernel
from millstream.kernels.relational.join import JoinKernel
from millstream.kernels.relational.lookup import lookup_kernel
from millstream.kernels.relational.merge import MergeKernel
from millstream.kernels.relational.roundrobin import RoundRobinJoinKernel, RoundRobinSplitKernel
from millstream.kernels.relational.top import TopKernel
from millstream.kernels.relational.tostream import DifferenceKernel, RstreamKernel
from millstream.kernels.relational.window_rows import rows_kernel
from millstream.kernels.relational.window_time import range_kernel

KERNELS: dict[type[Function], Callable[..., Any]] = {
    functions.Merge: MergeKernel,
    functions.Now: range_kernel,
    functions.Range: range_kernel,
    functions.Rows: rows_kernel,
    functions.Latest: rows_kernel,
    functions.Join: JoinKernel,
    functions.Lookup: lookup_kernel,
    functions.Judge: JudgeKernel,
    functions.Aggregate: AggregateKernel,
    functions.Distinct: DistinctKernel,
    functions.Top: TopKernel,
    functions.Istream: DifferenceKernel,
    functions.Changes: ChangesKernel,
    functions.Dstream: DifferenceKernel,
    functions.Rstream: RstreamKernel,
    functions.RoundRobinSplit: RoundRobinSplitKernel,
    functions.RoundRobinJoin: RoundRobinJoinKernel,
}
