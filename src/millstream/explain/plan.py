"""The plan that an engine runs, with its kernels: in words, as JSON or as a picture.

The local engine has all rows in one place, or shares many of them among threads. On Spark a
stage runs on buckets. Rows change places where they enter a stage; which way is chosen by how
much there is of each input.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.calculus.graph import Program
from millstream.calculus.text import render_function, shown_lines
from millstream.draw import Box, draw
from millstream.errors import UsageError
from millstream.explain.records import Record, records_text
from millstream.plan.keys import Copies, Key
from millstream.plan.stages import Stage
from millstream.plan.steps import Plan, Step

if TYPE_CHECKING:
    from millstream.engine.layout import Layout

#: Instead of buckets: steps that run in the tasks that read.
WHERE_READ = "where rows are read"
#: What a row takes in a file, about.
_ROW_BYTES = 32


@dataclass(frozen=True, slots=True)
class _Laid:
    """A stage as an engine runs it."""

    number: int
    stage: Stage
    #: How many parts it has, and by what rows come to them; nothing where they do not move.
    buckets: int | str | None = None
    exchanges: tuple[tuple[str, Key], ...] = ()


@dataclass(frozen=True, slots=True)
class _Shown:
    """A plan, its stages in order, and what else is to be said of it."""

    plan: Plan
    stages: tuple[_Laid, ...]
    remarks: tuple[str, ...] = ()
    #: Where what leaves the last stage goes.
    end: str = "to the driver"


def _of_engine(program: Program, engine: str, sizes: Mapping[str, float]) -> _Shown:
    return _on_spark(program, sizes) if engine == "spark" else _local(program, sizes)


def _local(program: Program, sizes: Mapping[str, float]) -> _Shown:
    from millstream.engine.local.run import plan_for
    from millstream.engine.local.threads import LEAST_ROWS, layout_for_threads, threads_wanted

    is_large = sum(sizes.values()) >= LEAST_ROWS * _ROW_BYTES
    threads = threads_wanted(None)
    is_shared = is_large and threads > 1
    layout = layout_for_threads(program, sizes, threads) if is_shared else None
    if layout is None:
        plan = plan_for(program)
        return _Shown(plan, (_Laid(1, Stage((), plan.steps)),))
    remark = f"from {LEAST_ROWS:,} rows on, on as many threads as there are cores; else on one"
    return _Shown(layout.plan, _laid(layout, "one for each thread"), (remark,), "put together")


def _laid(layout: Layout, several: int | str) -> tuple[_Laid, ...]:
    return tuple(
        _Laid(
            number + 1,
            stage,
            1 if layout.has_one_bucket(number) else several,
            tuple((q, layout.targets[q].key) for q in stage.inputs),
        )
        for number, stage in enumerate(layout.stages)
    )


def _on_spark(program: Program, sizes: Mapping[str, float]) -> _Shown:
    from millstream.engine.layout import layout_for, with_ahead
    from millstream.plan.spreading import LONGEST_CHAIN

    layout = with_ahead(layout_for(program, sizes))
    remarks = []
    if layout.is_together:
        remarks.append("run in one place: cut by keys, and with small inputs copied, it would be")
        remarks.append(
            f"a chain of more than {LONGEST_CHAIN} stages, which cost more than is shared"
        )
    if layout.plan.placed and not layout.is_together:
        remarks.append(
            "made in one place, so that the rows of an instant keep their order: "
            + ", ".join(sorted(layout.plan.placed))
        )
    several = "one for each worker" if layout.choice.copied else "two for each worker"
    ahead = tuple(_Laid(0, Stage((), one.steps), WHERE_READ) for one in layout.ahead)
    return _Shown(layout.plan, (*ahead, *_laid(layout, several)), tuple(remarks))


def _place(laid: _Laid) -> str:
    if laid.buckets is None:
        return ""
    if laid.buckets == WHERE_READ:
        return WHERE_READ
    return f"stage {laid.number}, {_buckets(laid.buckets)}"


def _buckets(count: int | str) -> str:
    if isinstance(count, str):
        return f"buckets, {count}"
    return "one bucket" if count == 1 else f"{count} buckets"


# --- the plan ---------------------------------------------------------------------------


def explain_plan(program: Program, format_: str, engine: str, sizes: Mapping[str, float]) -> str:
    shown = _of_engine(program, engine, sizes)
    if format_ == "json":
        return records_text([r for laid in shown.stages for r in _records(laid)])
    return draw(_boxes(shown)) if format_ == "svg" else _text(shown)


def _records(laid: _Laid) -> list[Record]:
    stage: Record = {"stage": laid.number}
    if laid.buckets is not None:
        stage["buckets"] = laid.buckets
        stage["exchanges"] = {queue: _key_text(key) for queue, key in laid.exchanges}
    return [stage | _record(step) for step in laid.stage.steps] or [stage]


def _record(step: Step) -> Record:
    return {
        "step": _label(step),
        "inputs": ", ".join(step.inputs),
        "outputs": ", ".join(step.outputs),
        "runs": "row at a time" if step.fallback else "compiled",
        "why": step.fallback,
        "functions": "\n".join(render_function(o.function) for o in step.operators),
    }


def _text(shown: _Shown) -> str:
    lines = [f"# {remark}" for remark in shown.remarks]
    for laid in shown.stages:
        lines += _heading(laid)
        for step in laid.stage.steps:
            lines += _step_lines(step)
    if any(laid.buckets is not None for laid in shown.stages):
        lines.append(f"{shown.end}, by time: {', '.join(shown.plan.program.outputs)}")
    return "\n".join(lines) + "\n"


def _heading(laid: _Laid) -> list[str]:
    if laid.buckets is None:
        return ["in one process, all rows in one place"]
    if laid.buckets == WHERE_READ:
        return [f"{WHERE_READ}, before they travel"]
    moved = [f"exchange: {queue}, {_moved_by(key)}" for queue, key in laid.exchanges]
    return [*moved, f"stage {laid.number}, on {_buckets(laid.buckets)}"]


def _step_lines(step: Step) -> list[str]:
    record = _record(step)
    lines = [
        f"  {record['step']}   [{record['runs']}]",
        f"    from {record['inputs']} to {record['outputs'] or 'variables only'}",
        *(f"    {line}" for op in step.operators for line in shown_lines(op.function)),
    ]
    return [*lines, f"    no kernel: {step.fallback}"] if step.fallback else lines


def _boxes(shown: _Shown) -> list[Box]:
    program = shown.plan.program
    boxes = [Box(i.name, i.name, str(i.type), (), "input") for i in program.inputs]
    home = {i.name: i.name for i in program.inputs}
    made = {q: _step_name(step) for step in shown.plan.steps for q in step.outputs}
    types = program.queue_types()
    for laid in shown.stages:
        group = _place(laid)
        for queue, key in laid.exchanges:
            name = f"exchange {queue}"
            boxes.append(Box(name, "exchange", f"{queue}, {_moved_by(key)}", (home[queue],)))
            home[queue] = name
        for step in laid.stage.steps:
            after = tuple(home.get(q) or made[q] for q in step.inputs)
            kind = "state" if any(op.reads or op.writes for op in step.operators) else "step"
            detail = ", ".join(render_function(op.function) for op in step.operators)
            queues = tuple("" if "." in q else q for q in step.inputs)
            carried = tuple(str(types[q]) for q in step.inputs)
            boxes.append(
                Box(_step_name(step), _label(step), detail, after, kind, queues=queues,
                    types=carried, group=group)
            )  # fmt: skip
            home.update(dict.fromkeys(step.outputs, _step_name(step)))
    return boxes + [Box(f"output {q}", q, "output", (home[q],), "output") for q in program.outputs]


def _label(step: Step) -> str:
    return " > ".join(op.function.title for op in step.operators)


def _step_name(step: Step) -> str:
    return f"step {step.operators[0].id}"


def _key_text(key: Key) -> str:
    if isinstance(key, Copies):
        return "copied to every bucket"
    return "any columns" if key is None else ", ".join(key) or "nothing: all rows together"


def _moved_by(key: Key) -> str:
    if isinstance(key, Copies):
        return "copied to every bucket"
    if key is None:
        return "as it comes, to any bucket"
    return f"by {', '.join(key)}" if key else "all rows to one place"


# --- kernels ----------------------------------------------------------------------------


def explain_kernels(program: Program, format_: str, engine: str, sizes: Mapping[str, float]) -> str:
    from millstream.kernels.rounds import StepRunner

    if format_ == "svg":
        raise UsageError("kernels have no picture", hint="use --stage plan --format svg")
    runner = StepRunner(_of_engine(program, engine, sizes).plan)
    records: list[Record] = [
        {
            "step": _label(step),
            "kernel": type(kernel).__name__,
            "why": step.fallback,
            "source": getattr(kernel, "source", None),
        }
        for step, kernel in zip(runner.steps, runner.kernels, strict=True)
    ]
    if format_ == "json":
        return records_text(records)
    parts = []
    for record in records:
        parts.append(f"# {record['step']}: {record['kernel']}")
        if record["why"]:
            parts.append(f"# row at a time, because {record['why']}")
        if record["source"]:
            parts.append(str(record["source"]).rstrip())
        parts.append("")
    return "\n".join(parts)
