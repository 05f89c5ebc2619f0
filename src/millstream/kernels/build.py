"""From steps of a plan to kernels, and what can be compiled at all."""

from __future__ import annotations

from millstream.calculus.functions import Aggregate, Distinct, Filter, Join, Judge
from millstream.calculus.graph import Operator, Program
from millstream.calculus.sheets import Sheet
from millstream.kernels.fallback import FallbackKernel
from millstream.kernels.judge_code import why_not as why_not_judge
from millstream.kernels.kernel import Kernel
from millstream.kernels.relational_table import KERNELS
from millstream.kernels.rows import RowKernel
from millstream.kernels.rows import why_not as why_not_rows
from millstream.kernels.sheet_build import sheet_kernel
from millstream.kernels.table_join import TableJoinKernel
from millstream.kernels.tostream import DifferenceKernel
from millstream.plan.steps import ROW_FUNCTIONS, Plan, Step
from millstream.plan.unique import is_table_join, unique_keys


def why_not(program: Program, operators: tuple[Operator, ...]) -> str | None:
    """Why these operators cannot run as one compiled step, or None if they can."""
    if all(isinstance(op.function, ROW_FUNCTIONS) for op in operators):
        return _why_not_rows(program, operators)
    if len(operators) > 1:
        names = ", ".join(dict.fromkeys(op.function.name for op in operators))
        return f"a cycle or a shared variable ties {names} together"
    (op,) = operators
    if type(op.function) not in KERNELS and not isinstance(op.function, Sheet):
        return f"{op.function.name} has no kernel"
    if isinstance(op.function, Judge):
        return why_not_judge(op.function)
    return None


def _why_not_rows(program: Program, operators: tuple[Operator, ...]) -> str | None:
    inside = {q for op in operators for q in op.outputs}
    types = program.queue_types()
    inputs = tuple((q, types[q]) for op in operators for q in op.inputs if q not in inside)
    return why_not_rows(operators, inputs, program.variables)


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
    if step.is_row_step:
        return RowKernel(step.operators, inputs, step.outputs, plan.program.variables)
    (op,) = step.operators
    if isinstance(op.function, Sheet):
        return sheet_kernel(op.function, tuple(t for _, t in inputs), len(step.outputs))
    if isinstance(op.function, Join):
        keys = unique_keys(plan.program)
        if is_table_join(op.function, [keys.get(q) for q in op.inputs]):
            return TableJoinKernel(op.function, tuple(t for _, t in inputs), keys[op.inputs[0]])
    kernel: Kernel = KERNELS[type(op.function)](
        op.function, tuple(t for _, t in inputs), len(step.outputs)
    )
    if isinstance(kernel, DifferenceKernel):
        kernel.input_is_net = _is_net(plan.program, op.inputs[0])
    return kernel


def _is_net(program: Program, queue: str) -> bool:
    """Whether no change on a queue undoes another one of the same instant."""
    producer = program.producers().get(queue)
    while producer is not None and isinstance(producer.function, Filter):
        producer = program.producers().get(producer.inputs[0])
    return producer is not None and isinstance(producer.function, (Aggregate, Distinct))
