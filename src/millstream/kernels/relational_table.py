"""Which kernel computes which function of time or order.

A kernel is made of the function, the types of its inputs and the number of its outputs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from millstream.calculus import functions
from millstream.calculus.functions import Function
from millstream.kernels.aggregate import AggregateKernel
from millstream.kernels.distinct import DistinctKernel
from millstream.kernels.join import JoinKernel
from millstream.kernels.judge import JudgeKernel
from millstream.kernels.lookup import lookup_kernel
from millstream.kernels.merge import DuplicateKernel, MergeKernel
from millstream.kernels.roundrobin import RoundRobinJoinKernel, RoundRobinSplitKernel
from millstream.kernels.top import TopKernel
from millstream.kernels.tostream import DifferenceKernel, RstreamKernel
from millstream.kernels.windows_rows_within import rows_kernel
from millstream.kernels.windows_slide import range_kernel

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
    functions.Dstream: DifferenceKernel,
    functions.Rstream: RstreamKernel,
    functions.Duplicate: DuplicateKernel,
    functions.RoundRobinSplit: RoundRobinSplitKernel,
    functions.RoundRobinJoin: RoundRobinJoinKernel,
}
