"""From steps of a plan to kernels, and what can be compiled at all.

Most kernels are loaded where they are built: no program needs all, and all take a while.
"""

from __future__ import annotations

from typing import cast

from millstream.calculus.aggregation import SKETCHES
from millstream.calculus.each import PerKey
from millstream.calculus.functions import (
    Aggregate,
    Changes,
    Cubify,
    Distinct,
    Dstream,
    Except,
    Filter,
    Function,
    Istream,
    Join,
    Judge,
    Map,
    Ordered,
    Range,
)
from millstream.calculus.graph import Operator, Program
from millstream.calculus.sheets import Sheet
from millstream.calculus.types import QueueType
from millstream.calculus.unique import unique_keys
from millstream.calculus.work import Work
from millstream.kernels.fallback import FallbackKernel
from millstream.kernels.loop.rows import RowKernel
from millstream.kernels.loop.rows import why_not as why_not_rows
from millstream.kernels.nets.kernel import NetKernel
from millstream.kernels.nets.net import why_not as why_not_net
from millstream.kernels.runtime.kernel import Kernel
from millstream.kernels.table import KERNELS, kernel_for
from millstream.plan.net import consolidated_queues, leaving_order
from millstream.plan.places_asked import places_asked
from millstream.plan.steps import ROW_FUNCTIONS, Plan, Step, make_plan
from millstream.plan.unique import is_table_join


def why_not(program: Program, operators: tuple[Operator, ...]) -> str | None:
    """Why these operators cannot run as one compiled step, or None if they can."""
    if all(isinstance(op.function, ROW_FUNCTIONS) for op in operators):
        return _why_not_rows(program, operators)
    if any(isinstance(op.function, Work) for op in operators):
        return why_not_net(operators)
    if windowed(operators) is not None:
        return None
    if len(operators) > 1:
        names = ", ".join(dict.fromkeys(op.function.name for op in operators))
        return f"a cycle or a shared variable ties {names} together"
    (op,) = operators
    if isinstance(op.function, PerKey):
        from millstream.kernels.each import why_not as why_not_each

        return why_not_each(op.function, make_plan(op.function.program, why_not))
    if type(op.function) not in KERNELS and not isinstance(op.function, Sheet):
        return f"{op.function.name} has no kernel"
    if isinstance(op.function, Judge):
        from millstream.kernels.judge.code import why_not as why_not_judge

        return why_not_judge(op.function)
    if isinstance(op.function, Cubify):
        from millstream.kernels.cube.cube import why_not as why_not_cube

        return why_not_cube(op.function)
    return None


def _why_not_rows(program: Program, operators: tuple[Operator, ...]) -> str | None:
    inside = {q for op in operators for q in op.outputs}
    types = program.queue_types()
    inputs = tuple((q, types[q]) for op in operators for q in op.inputs if q not in inside)
    return why_not_rows(operators, inputs, program.variables)


def windowed(operators: tuple[Operator, ...]) -> Range | None:
    """The window of two operators, if what reads it has a kernel that takes in both."""
    match [op.function for op in operators]:
        case [Range(length=int(), slide=None) as window, Aggregate(aggregations=aggregations)]:
            # What is counted by hidden keys is counted where rows come and go one by one.
            return None if any(a.function in SKETCHES for a in aggregations) else window
        case [Range(length=0, slide=None) as window, Join(where=None)]:
            return window
        case _:
            return None


def build_kernel(plan: Plan, step: Step) -> Kernel:
    """The kernel of a step; a fallback where nothing can be compiled."""
    types = plan.program.queue_types()
    inputs = tuple((q, types[q]) for q in step.inputs)
    if step.fallback is not None:
        behind = plan.inputs_behind()
        return FallbackKernel(
            step.operators,
            inputs,
            step.outputs,
            plan.program.variables,
            [max(behind[q], default=0) for q in step.inputs],
            is_ranked=bool(plan.ranked & set(step.outputs)),
        )
    if step.is_net:
        return NetKernel(step.operators, inputs, step.outputs, types)
    if step.is_row_step:
        return RowKernel(step.operators, inputs, step.outputs, plan.program.variables)
    window = windowed(step.operators)
    if window is not None:
        return _windowed_kernel(plan, step, window)
    (op,) = step.operators
    if isinstance(op.function, PerKey):
        from millstream.kernels.each import PerKeyKernel  # it runs kernels that are built here

        inner = make_plan(op.function.program, why_not)
        return PerKeyKernel(op.function, inner, inputs[0][1])
    if isinstance(op.function, Sheet):
        from millstream.kernels.sheets.build import sheet_kernel

        return sheet_kernel(op.function, tuple(t for _, t in inputs), len(step.outputs))
    if isinstance(op.function, Join):
        keys = unique_keys(plan.program)
        if is_table_join(op.function, [keys.get(q) for q in op.inputs]):
            from millstream.kernels.relational.table_join import TableJoinKernel

            return TableJoinKernel(op.function, tuple(t for _, t in inputs), keys[op.inputs[0]])
        from millstream.kernels.relational.join import JoinKernel

        order = leaving_order(plan.program, op.outputs[0])
        return JoinKernel(op.function, tuple(t for _, t in inputs), 1, order)
    return _kernel_of_one(plan, op, tuple(t for _, t in inputs), len(step.outputs))


def _kernel_of_one(
    plan: Plan, op: Operator, inputs: tuple[QueueType, ...], output_count: int
) -> Kernel:
    """The kernel of one function of time or order, told what may be known of its queues."""
    if isinstance(op.function, Ordered):
        asked = places_asked(plan.program, op.function, op.outputs[0])
        if asked is not None:
            from millstream.kernels.relational.chosen import ChosenKernel

            return ChosenKernel(op.function, inputs, output_count, asked)
    kernel = kernel_for(type(op.function))(op.function, inputs, output_count)
    if isinstance(op.function, Istream | Dstream):
        kernel.input_is_net = _is_net(plan.program, op.inputs[0])
    if isinstance(op.function, Changes):
        kernel.input_is_net = op.inputs[0] in consolidated_queues(plan)
    if isinstance(op.function, Aggregate) and _only_comes(plan.program, op.outputs[0], Filter):
        kernel.tell_only_news()
    return cast("Kernel", kernel)


def _windowed_kernel(plan: Plan, step: Step, window: Range) -> Kernel:
    """The kernel of a window and of what reads it."""
    from millstream.kernels.relational.now_join import NowJoinKernel
    from millstream.kernels.relational.window_aggregate import WindowAggregateKernel

    types = plan.program.queue_types()
    first, op = step.operators
    kernel: WindowAggregateKernel | NowJoinKernel
    if isinstance(op.function, Join):
        stream, relation = (types[q] for q in step.inputs)
        side = op.inputs.index(first.outputs[0])
        kernel = NowJoinKernel(op.function, stream, relation, side)
        is_seen = not _only_comes(plan.program, op.outputs[0], Filter, Map)
    else:
        assert isinstance(op.function, Aggregate)
        kernel = WindowAggregateKernel(window, op.function, types[step.inputs[0]])
        is_seen = not _only_comes(plan.program, op.outputs[0], Filter)
    if not is_seen:
        kernel.tell_only_news()
    return kernel


def _only_comes(program: Program, queue: str, *between: type[Function]) -> bool:
    """Whether a queue goes to an Istream, through nothing but some row functions."""
    readers = {name: op for name, (op, _) in program.consumers().items()}
    while (reader := readers.get(queue)) is not None and isinstance(reader.function, between):
        (queue,) = reader.outputs
    return reader is not None and isinstance(reader.function, Istream)


def _is_net(program: Program, queue: str) -> bool:
    """Whether no change on a queue undoes another one of the same instant."""
    producer = program.producers().get(queue)
    while producer is not None and isinstance(producer.function, Filter):
        producer = program.producers().get(producer.inputs[0])
    return producer is not None and isinstance(producer.function, (Aggregate, Distinct, Except))
