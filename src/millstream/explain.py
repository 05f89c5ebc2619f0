"""What becomes of a program, stage by stage, in words, as JSON or as a picture."""

from __future__ import annotations

import json

from millstream.calculus.base import Part
from millstream.calculus.graph import Operator, Program, in_dependency_order
from millstream.calculus.text import parts_of, render, render_function, render_operator
from millstream.draw import Box, draw
from millstream.errors import UsageError, listing
from millstream.plan.stages import Stage, stages_of
from millstream.plan.steps import Step

STAGES = ("calculus", "optimised", "plan", "kernels")
FORMATS = ("text", "json", "svg")


def explain(
    program: Program, stage: str = "calculus", format_: str = "text", notes: tuple[str, ...] = ()
) -> str:
    """The program at a stage in a format; as text, with notes on how it came about."""
    if stage not in STAGES:
        raise UsageError(f'unknown stage "{stage}"', hint=f"stages are: {listing(STAGES)}")
    if format_ not in FORMATS:
        raise UsageError(f'unknown format "{format_}"', hint=f"formats are: {listing(FORMATS)}")
    if stage in ("calculus", "optimised"):
        found = _explain_program(program, stage, format_)
    else:
        found = _explain_plan(program, stage, format_)
    return "".join(f"# {note}\n" for note in notes) + found if format_ == "text" else found


# --- programs ---------------------------------------------------------------------------


def _explain_program(program: Program, stage: str, format_: str) -> str:
    notes: list[str] = []
    if stage == "optimised":
        program, notes = _optimised(program)
    if format_ == "json":
        return _json(_operator_records(program))
    if format_ == "svg":
        return draw(_program_boxes(program))
    notes += _remarks(program)
    return "".join(f"# {note}\n" for note in notes) + render(program)


def _optimised(program: Program) -> tuple[Program, list[str]]:
    from millstream.optimiser.optimise import Rewrite, optimise

    notes: list[str] = []

    def record(rewrite: Rewrite) -> None:
        old = set(rewrite.before.operators)
        new = [render_operator(op) for op in rewrite.after.operators if op not in old]
        notes.append(f"{rewrite.name}, because {rewrite.reason}; now")
        notes.extend(f"    {one}" for one in new)

    return optimise(program, trace=record), notes or ["no rewrite applies"]


def _remarks(program: Program) -> list[str]:
    shared = sorted(program.shared_variables())
    if not shared:
        return ["deterministic: no variable is shared"]
    names = ", ".join(f"${name}" for name in shared)
    return [f"{names} is shared by several operators: the order of firing can matter;",
            "the engines fire by (time, order of declaration, position)"]  # fmt: skip


def _operator_records(program: Program) -> list[dict[str, object]]:
    types = program.queue_types()
    records: list[dict[str, object]] = []
    for op in program.operators:
        facts = op.function.facts(tuple(types[q] for q in op.inputs), 0)
        records.append(
            {
                "operator": op.id,
                "function": render_function(op.function),
                "inputs": ", ".join(op.inputs),
                "outputs": ", ".join(op.outputs),
                "reads_variables": ", ".join(op.reads),
                "writes_variables": ", ".join(op.writes),
                "output_types": "; ".join(str(types[q]) for q in op.outputs),
                "reads": ", ".join(sorted(facts.reads)),
                "writes": ", ".join(sorted(facts.writes)),
                "stateless": facts.is_stateless,
                "key": None if facts.key is None else ", ".join(facts.key),
                "commutative": facts.is_commutative,
                "origin": op.origin.place if op.origin else None,
            }
        )
    return records


def _program_boxes(program: Program) -> list[Box]:
    boxes = [Box(i.name, i.name, str(i.type), (), "input") for i in program.inputs]
    home = {q: op.id for op in program.operators for q in op.outputs}
    writers = {
        v: tuple(op for op in program.operators if v in op.writes)
        for v in program.shared_variables()
    }
    for op in in_dependency_order(program):
        parts = parts_of(op)
        if parts:
            inner, ends = _inner_boxes(op, parts, home)
            boxes += inner
            home |= ends
            continue
        detail = render_function(op.function)
        after = tuple(home.get(q, q) for q in op.inputs)
        others = tuple(u.id for v in op.reads for u in writers.get(v, ()) if u is not op)
        boxes.append(Box(op.id, op.function.name, detail, after, beside=others))
    boxes += [Box(f"output {q}", q, "output", (home.get(q, q),), "output")
              for q in program.outputs]  # fmt: skip
    return boxes


def _inner_boxes(
    op: Operator, parts: tuple[Part, ...], home: dict[str, str]
) -> tuple[list[Box], dict[str, str]]:
    """The parts of a function as boxes of their own, and which of them give its outputs."""

    def box(name: str) -> str:
        return home.get(name, name) if name in op.inputs else f"{op.id} {name}"

    boxes = [
        Box(
            box(p.name),
            p.label,
            p.detail,
            tuple(map(box, p.after)),
            beside=tuple(map(box, p.beside)),
        )
        for p in parts
    ]
    return boxes, {p.output: box(p.name) for p in parts if p.output is not None}


# --- plans ------------------------------------------------------------------------------


def _explain_plan(program: Program, stage: str, format_: str) -> str:
    from millstream.engine.local.run import plan_for
    from millstream.optimiser.optimise import optimise

    plan = plan_for(optimise(program))
    if stage == "kernels":
        return _explain_kernels(program, format_)
    records: list[dict[str, object]] = []
    boxes = [Box(i.name, i.name, str(i.type), (), "input") for i in plan.program.inputs]
    home = {q: _step_name(step) for step in plan.steps for q in step.outputs}
    for number, one in enumerate(stages_of(plan), 1):
        for step in one.steps:
            label = " > ".join(op.function.name for op in step.operators)
            records.append(
                {
                    "stage": number,
                    "key": _key_text(one),
                    "step": label,
                    "inputs": ", ".join(step.inputs),
                    "outputs": ", ".join(step.outputs),
                    "runs": "row at a time" if step.fallback else "compiled",
                    "why": step.fallback,
                    "functions": "\n".join(render_function(o.function) for o in step.operators),
                }
            )
            after = tuple(home.get(q, q) for q in step.inputs)
            boxes.append(Box(_step_name(step), label, f"stage {number}", after))
    if format_ == "json":
        return _json(records)
    if format_ == "svg":
        outputs = [
            Box(f"output {q}", q, "output", (home.get(q, q),), "output") for q in program.outputs
        ]
        return draw(boxes + outputs)
    return _plan_text(records)


def _step_name(step: Step) -> str:
    return f"step {step.operators[0].id}"


def _key_text(stage: Stage) -> str:
    """How the rows of a stage are partitioned, in words."""
    texts = dict.fromkeys(
        "any columns" if key is None else ", ".join(key) or "nothing: all rows together"
        for _, key in stage.keys
    )
    return " = ".join(texts)


def _plan_text(records: list[dict[str, object]]) -> str:
    lines: list[str] = []
    stage = None
    for record in records:
        if record["stage"] != stage:
            stage = record["stage"]
            lines.append(f"stage {stage}, partitioned by {record['key']}")
        lines.append(f"  {record['step']}   [{record['runs']}]")
        lines.append(f"    from {record['inputs']} to {record['outputs'] or 'variables only'}")
        lines += [f"    {one}" for one in str(record["functions"]).split("\n")]
        if record["why"]:
            lines.append(f"    no kernel: {record['why']}")
    return "\n".join(lines) + "\n"


def _explain_kernels(program: Program, format_: str) -> str:
    from millstream.engine.local.run import plan_for
    from millstream.kernels.rounds import StepRunner
    from millstream.optimiser.optimise import optimise

    engine = StepRunner(plan_for(optimise(program)))
    records: list[dict[str, object]] = []
    for step, kernel in zip(engine.plan.steps, engine.kernels, strict=True):
        records.append(
            {
                "step": " > ".join(op.function.name for op in step.operators),
                "kernel": type(kernel).__name__,
                "why": step.fallback,
                "source": getattr(kernel, "source", None),
            }
        )
    if format_ == "json":
        return _json(records)
    if format_ == "svg":
        raise UsageError("kernels have no picture", hint="use --stage plan --format svg")
    parts = []
    for record in records:
        parts.append(f"# {record['step']}: {record['kernel']}")
        if record["why"]:
            parts.append(f"# row at a time, because {record['why']}")
        if record["source"]:
            parts.append(str(record["source"]).rstrip())
        parts.append("")
    return "\n".join(parts)


def _json(records: list[dict[str, object]]) -> str:
    return json.dumps(records, indent=2, ensure_ascii=False) + "\n"
