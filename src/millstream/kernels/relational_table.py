"""Which kernel computes which function of time or order.

A kernel is made of the function, the types of its inputs and the number of its outputs.
"""

from __future__ import annotations

from typing import Any

from millstream.calculus import functions
from millstream.calculus.functions import Function
from millstream.kernels.aggregate import AggregateKernel
from millstream.kernels.distinct import DistinctKernel
from millstream.kernels.join import JoinKernel
from millstream.kernels.merge import DuplicateKernel, MergeKernel
from millstream.kernels.roundrobin import RoundRobinJoinKernel, RoundRobinSplitKernel
from millstream.kernels.tostream import DifferenceKernel, RstreamKernel
from millstream.kernels.windows import RangeKernel
from millstream.kernels.windows_rows import RowsKernel

KERNELS: dict[type[Function], type[Any]] = {
    functions.Merge: MergeKernel,
    functions.Now: RangeKernel,
    functions.Range: RangeKernel,
    functions.Rows: RowsKernel,
    functions.Latest: RowsKernel,
    functions.Join: JoinKernel,
    functions.Aggregate: AggregateKernel,
    functions.Distinct: DistinctKernel,
    functions.Istream: DifferenceKernel,
    functions.Dstream: DifferenceKernel,
    functions.Rstream: RstreamKernel,
    functions.Duplicate: DuplicateKernel,
    functions.RoundRobinSplit: RoundRobinSplitKernel,
    functions.RoundRobinJoin: RoundRobinJoinKernel,
}
