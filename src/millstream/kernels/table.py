"""Which kernel computes which function of time or order.

A kernel is made of the function, the types of its inputs and the number of its outputs. It is
named and loaded when it is needed: a program has few of them, and all take a while to load.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from millstream.calculus import functions
from millstream.calculus.functions import Function
from millstream.calculus.work import Interleave

#: As `module:name`, in `millstream.kernels`.
KERNELS: dict[type[Function], str] = {
    functions.Merge: "relational.merge:MergeKernel",
    functions.Now: "relational.window_time:range_kernel",
    functions.Range: "relational.window_time:range_kernel",
    functions.Until: "relational.until:UntilKernel",
    functions.Rows: "relational.window_rows:rows_kernel",
    functions.Latest: "relational.window_rows:rows_kernel",
    functions.Held: "relational.held:HeldKernel",
    functions.Join: "relational.join:JoinKernel",
    functions.Lookup: "relational.lookup:lookup_kernel",
    functions.Judge: "judge.judge:JudgeKernel",
    functions.Cubify: "cube.cube:CubeKernel",
    functions.Aggregate: "relational.aggregate:AggregateKernel",
    functions.Distinct: "relational.distinct:DistinctKernel",
    functions.Except: "relational.distinct:ExceptKernel",
    functions.Top: "relational.top:TopKernel",
    functions.Ordered: "relational.ordered:ordered_kernel",
    functions.Istream: "relational.tostream:DifferenceKernel",
    functions.Changes: "relational.changes:ChangesKernel",
    functions.Dstream: "relational.tostream:DifferenceKernel",
    functions.Rstream: "relational.tostream:RstreamKernel",
    functions.RoundRobinSplit: "relational.roundrobin:RoundRobinSplitKernel",
    functions.RoundRobinJoin: "relational.roundrobin:RoundRobinJoinKernel",
    Interleave: "relational.roundrobin:InterleaveKernel",
    functions.RunScript: "scripts.on_columns:ColumnsKernel",
    functions.Tally: "scripts.tally:TallyKernel",
}


def kernel_for(function: type[Function]) -> Callable[..., Any]:
    """What makes the kernel of such a function."""
    module, _, name = KERNELS[function].partition(":")
    made: Callable[..., Any] = getattr(import_module(f"millstream.kernels.{module}"), name)
    return made
