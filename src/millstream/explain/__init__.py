"""What becomes of a program, stage by stage, in words, as JSON or as a picture."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from millstream.calculus.base import PicturePart
from millstream.calculus.estimates import NOTHING, Measures
from millstream.calculus.graph import Operator, Program, in_dependency_order
from millstream.calculus.text import parts_of, render, render_function, render_operator
from millstream.draw import Box, draw
from millstream.errors import UsageError, listing
from millstream.explain.records import Record, records_text
from millstream.optimiser.optimise import PASSES, RULES, Pass, Rewrite, optimise, refusals
from millstream.plan.work import work_of_program

#: What is known of columns before a program becomes anything.
TYPES = "types"
STAGES = ("calculus", "optimised", "plan", "kernels")
FORMATS = ("text", "json", "svg", "html")
ENGINES = ("local", "spark")


def explain(
    program: Program,
    stage: str = "calculus",
    format_: str = "text",
    engine: str = "local",
    notes: tuple[str, ...] = (),
    passes: tuple[Pass, ...] = PASSES,
    types: tuple[str, ...] = (),
    sizes: Mapping[str, float] | None = None,
    measures: Measures = NOTHING,
) -> str:
    """The program at a stage in a format; as text, with notes on how it came about.

    `types` is what its language knows of columns before it runs, `sizes` how much there is of
    each input, `measures` what else is known of them.
    """
    for what, asked, known in (
        ("stage", stage, (TYPES, *STAGES)),
        ("format", format_, FORMATS),
        ("engine", engine, ENGINES),
    ):
        if asked not in known:
            raise UsageError(f'unknown {what} "{asked}"', hint=f"{what}s are: {listing(known)}")
    if format_ == "html":
        return _page(program, passes, sizes, measures)
    if stage == TYPES:
        shown = _explain_types(program, format_, types)
    elif stage in ("calculus", "optimised"):
        shown = _explain_program(program, stage, format_, passes, measures)
    else:
        from millstream.engine.sizes import measured
        from millstream.explain.plan import explain_kernels, explain_plan

        shown = (explain_plan if stage == "plan" else explain_kernels)(
            optimise(program, passes, measures=measures), format_, engine,
            sizes or measured(program.inputs, {}),
        )  # fmt: skip
    return "".join(f"# {note}\n" for note in notes) + shown if format_ == "text" else shown


def _page(
    program: Program,
    passes: tuple[Pass, ...],
    sizes: Mapping[str, float] | None,
    measures: Measures,
) -> str:
    """All stages on one page."""
    from millstream.engine.sizes import measured
    from millstream.explain.page import Story, page
    from millstream.explain.plan import explain_plan

    rewrites: list[Rewrite] = []
    optimised = optimise(program, passes, rewrites.append, measures)
    known = sizes or measured(program.inputs, {})
    plans = {engine: explain_plan(optimised, "text", engine, known) for engine in ENGINES}
    origins = [op.origin.source.name for op in program.operators if op.origin is not None]
    name = Path(origins[0]).name if origins else ", ".join(program.outputs)
    story = Story(name, program, optimised, rewrites, _stayed(optimised, passes, measures), plans)
    return page(story, _rule, _lines_changed, render, lambda one: draw(_program_boxes(one)))


# --- types --------------------------------------------------------------------------------


def _explain_types(program: Program, format_: str, types: tuple[str, ...]) -> str:
    """What a language says of its columns, or else the types of all queues."""
    if format_ == "svg":
        raise UsageError("types are no picture", hint="leave out --format svg")
    queues = {queue: str(type_) for queue, type_ in program.queue_types().items()}
    if format_ == "json":
        return records_text([{"queue": queue, "type": type_} for queue, type_ in queues.items()])
    lines = types or tuple(f"{queue}: {type_}" for queue, type_ in queues.items())
    return "".join(f"{line}\n" for line in lines)


# --- programs ---------------------------------------------------------------------------


def _explain_program(
    program: Program, stage: str, format_: str, passes: tuple[Pass, ...], measures: Measures
) -> str:
    notes: list[str] = []
    if stage == "optimised":
        rewrites: list[Rewrite] = []
        program = optimise(program, passes, rewrites.append, measures)
        if format_ == "json":
            made = [_rewrite_record(one) for one in rewrites]
            stayed = [_refusal_record(*one) for one in refusals(program, passes, measures)]
            records: Record = {
                "operators": _operator_records(program),
                "rewrites": made,
                "stayed": stayed,
            }
            return records_text(records)
        notes = _told_of(rewrites) + _stayed(program, passes, measures)
    if format_ == "json":
        return records_text(_operator_records(program))
    if format_ == "svg":
        return draw(_program_boxes(program))
    notes += _remarks(program)
    return "".join(f"# {note}\n" for note in notes) + render(program)


def _rule(one: str) -> str:
    """A pass by its name, and by that of the paper's rule."""
    return f"{one} ({RULES[one]})" if one in RULES else one


def _lines_changed(rewrite: Rewrite) -> tuple[list[str], list[str]]:
    """The operators that are no more, and those that have come."""
    old, new = rewrite.before.operators, rewrite.after.operators
    gone, come = set(old) - set(new), set(new) - set(old)
    return [_line(op) for op in old if op in gone], [_line(op) for op in new if op in come]


def _line(op: Operator) -> str:
    """An operator in one line: of a long body only how it begins and ends."""
    lines = render_operator(op).splitlines()
    return lines[0] if len(lines) == 1 else f"{lines[0]} ... {lines[-1].lstrip()}"


def _told_of(rewrites: list[Rewrite]) -> list[str]:
    notes: list[str] = []
    for rewrite in rewrites:
        before, after = _lines_changed(rewrite)
        notes.append(
            f"{_rule(rewrite.name)}, because {rewrite.reason}; {gain(rewrite)}; instead of"
        )
        notes += [f"    {line}" for line in before]
        notes += ["now", *(f"    {line}" for line in after)]
    return notes or ["no rewrite applies"]


def _stayed(program: Program, passes: tuple[Pass, ...], measures: Measures) -> list[str]:
    return [
        f"{_rule(one.__name__)} leaves {_line(op)} because {why}"
        for one, op, why in refusals(program, passes, measures)
    ]


def _nanoseconds(rewrite: Rewrite) -> tuple[float, float]:
    """What a row takes before and after, by the model of costs."""
    before, after = rewrite.before, rewrite.after
    measures = rewrite.measures
    return work_of_program(before, measures), work_of_program(after, measures)


def gain(rewrite: Rewrite) -> str:
    """What a rewrite spares, by the model of costs."""
    before, after = _nanoseconds(rewrite)
    spared = round(100 * (before - after) / before) if before else 0
    share = f"{abs(spared)} % {'less' if spared > 0 else 'more'}" if spared else "as much"
    return f"by the model of costs {share} work, {before:,.0f} to {after:,.0f} ns a row"


def _rewrite_record(rewrite: Rewrite) -> Record:
    before, after = _lines_changed(rewrite)
    work = _nanoseconds(rewrite)
    return {"pass": rewrite.name, "rule": RULES.get(rewrite.name), "reason": rewrite.reason,
            "before": before, "after": after,
            "ns_before": work[0], "ns_after": work[1]}  # fmt: skip


def _refusal_record(pass_: Pass, op: Operator, why: str) -> Record:
    name = pass_.__name__
    return {"pass": name, "rule": RULES.get(name), "operator": _line(op), "guard": why}


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
    types = program.queue_types()
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
        kind = "state" if op.reads or op.writes else "step"
        carried = tuple(str(types[q]) for q in op.inputs)
        box = Box(
            op.id, op.function.title, detail, after, kind, others, _named(op.inputs), carried
        )  # fmt: skip
        boxes.append(box)
    boxes += [Box(f"output {q}", q, "output", (home.get(q, q),), "output")
              for q in program.outputs]  # fmt: skip
    return boxes


def _named(queues: tuple[str, ...]) -> tuple[str, ...]:
    """The names of queues that somebody has chosen; others say nothing."""
    return tuple("" if "." in q else q for q in queues)


def _inner_boxes(
    op: Operator, parts: tuple[PicturePart, ...], home: dict[str, str]
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
