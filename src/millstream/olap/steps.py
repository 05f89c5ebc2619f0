"""From one question to the next: roll-up, drill-down, slice, dice and pivot.

Questions are JSON objects here, as they came: what is said of other things stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from millstream.calculus.cube import Cubify
from millstream.calculus.grains import GRAINS, Grain
from millstream.errors import listing, suggest
from millstream.olap.question import OTHERS, QuestionError, grain_named

Query = dict[str, Any]
#: What a step can move.
_ONE_OF = ("attribute", "dimension", "grain")


def next_question(kind: str, query: Query, step: Mapping[str, Any], cube: Cubify) -> Query:
    """The question after a step."""
    taken, keys = STEPS[kind]
    strange = next((key for key in step if key not in keys), None)
    if strange is not None:
        hint = f"it can have: {listing(keys)}. {suggest(strange, keys) or ''}".strip()
        raise QuestionError(f'unknown key "{strange[:80]}"', place="step", hint=hint)
    said = [key for key in _ONE_OF if step.keys() >= {key}]
    if len(said) > 1:
        hint = f"here are {listing(said)}: take one after the other"
        raise QuestionError("a step moves one thing", place="step", hint=hint)
    return _without_strays(taken(dict(query), step, cube), cube)


def _without_strays(query: Query, cube: Cubify) -> Query:
    """A question without what it could not be asked with after a step."""
    made = dict(query)
    rows, columns = _names(query, "rows"), _names(query, "columns")
    if not rows:
        made = {k: v for k, v in made.items() if k not in ("limit", "others")}
    if not rows:
        made.pop("share", None)
    if "order" in query:
        known = {*rows, *columns, *(["time"] if query.get("grain") is not None else [])}
        known |= {m.name for m in cube.measures}
        order = [n for n in _names(query, "order") if n in known or str(n)[1:] in known]
        made["order"] = order
    return made


def _roll_up(query: Query, step: Mapping[str, Any], cube: Cubify) -> Query:
    """A level up, or without a dimension; or a coarser grain."""
    if "grain" in step:
        return query | {"grain": _other_grain(query, step["grain"], cube, is_finer=False)}
    if "dimension" in step:
        dimension = _dimension(step["dimension"], cube, "step.dimension")
        shown = [n for n in (*_names(query, "rows"), *_names(query, "columns")) if n in dimension]
        if not shown:
            raise QuestionError("this dimension is not in the question", place="step.dimension")
        for name in shown:
            query = _replaced(query, name, None)
        return query
    name, dimension = _shown(query, step, cube)
    level = dimension.index(name) + 1
    return _replaced(query, name, dimension[level] if level < len(dimension) else None)


def _drill_down(query: Query, step: Mapping[str, Any], cube: Cubify) -> Query:
    """A level down, a dimension more, or a finer grain."""
    if "grain" in step:
        return query | {"grain": _other_grain(query, step["grain"], cube, is_finer=True)}
    if "dimension" in step:
        dimension = _dimension(step["dimension"], cube, "step.dimension")
        shown = [*_names(query, "rows"), *_names(query, "columns")]
        if any(name in dimension for name in shown):
            message = "this dimension is in the question already"
            raise QuestionError(message, place="step.dimension", hint="drill down its attribute")
        return query | {"rows": [*_names(query, "rows"), dimension[-1]]}
    name, dimension = _shown(query, step, cube)
    level = dimension.index(name) - 1
    if level < 0:
        raise QuestionError(f'"{name}" is the finest level', place="step.attribute",
                            hint="POST .../cells shows what is behind a cell")  # fmt: skip
    return _replaced(query, name, dimension[level])


def _slice(query: Query, step: Mapping[str, Any], cube: Cubify) -> Query:
    """One member of a dimension, which is then no longer shown."""
    if "attribute" not in step or "member" not in step:
        hint = 'write {"attribute": "...", "member": "..."}'
        raise QuestionError("a slice is of one member", place="step", hint=hint)
    dimension = _dimension(step["attribute"], cube, "step.attribute")
    _check_member(step["member"], "step.member", "dice selects several")
    made = dict(query)
    for key in ("rows", "columns"):
        if key in query:
            made[key] = [n for n in _names(query, key) if n not in dimension]
    return made | {"where": _where(query) | {step["attribute"]: step["member"]}}


def _dice(query: Query, step: Mapping[str, Any], cube: Cubify) -> Query:
    """Some members of two dimensions or more."""
    where = step.get("where")
    if not isinstance(where, dict) or len(where) < 2:
        hint = 'write {"where": {"one": [...], "other": [...]}}; slice is of one'
        raise QuestionError("a dice selects on two attributes or more", place="step", hint=hint)
    for name in where:
        _dimension(name, cube, "step.where")
    return query | {"where": _where(query) | where}


def _pivot(query: Query, step: Mapping[str, Any], cube: Cubify) -> Query:
    """An attribute from the rows to the columns or back; without one, all of them."""
    rows, columns = _names(query, "rows"), _names(query, "columns")
    if "attribute" not in step:
        return query | {"rows": columns, "columns": rows}
    name, _ = _shown(query, step, cube)
    if name in rows:
        rows, columns = [n for n in rows if n != name], [*columns, name]
    else:
        rows, columns = [*rows, name], [n for n in columns if n != name]
    return query | {"rows": rows, "columns": columns}


#: What each step does, and what can be said of it.
STEPS: dict[str, tuple[Callable[[Query, Mapping[str, Any], Cubify], Query], tuple[str, ...]]] = {
    "roll-up": (_roll_up, ("attribute", "dimension", "grain")),
    "drill-down": (_drill_down, ("attribute", "dimension", "grain")),
    "slice": (_slice, ("attribute", "member")),
    "dice": (_dice, ("where",)),
    "pivot": (_pivot, ("attribute",)),
}


def behind(query: Query, cell: Mapping[str, Any], cube: Cubify) -> Query:
    """The question for the finest cells behind a cell of an answer."""
    where = _where(query)
    time = dict(query.get("time") or {})
    if cell.get(OTHERS) is not None and OTHERS not in cube.attributes:
        hint = "ask for the members themselves, without a limit"
        raise QuestionError("this row stands for several members", place="cell.others", hint=hint)
    measures = {m.name + s for m in cube.measures for s in ("", "_before", "_change", "_share")}
    for name, member in cell.items():
        if name == "time":
            time = _part(member, query, cube)
        elif name in cube.attributes:
            _check_member(member, f"cell.{name}", "a cell has one of each attribute")
            where[name] = member
        elif name not in measures | {OTHERS}:
            known = ["time", *cube.attributes]
            hint = f"there are: {listing(known)}. {suggest(name, known) or ''}".strip()
            raise QuestionError(f'unknown attribute "{name[:80]}"', place="cell", hint=hint)
    made: Query = {"rows": list(cube.attributes), "grain": str(cube.grain), "where": where}
    if time:
        made["time"] = time
    if query.get("as_of") is not None:
        made["as_of"] = query["as_of"]
    return made


def _part(time: Any, query: Query, cube: Cubify) -> dict[str, Any]:
    """The partitions that lie in a part of time of the question's grain."""
    from millstream.values.instants import parse_time

    start = parse_time(time) if isinstance(time, str) else time
    given = query.get("grain")
    grain = grain_named(given) if isinstance(given, str) else None
    if isinstance(start, bool) or not isinstance(start, int) or abs(start) > 2**61:
        raise QuestionError("expected a time", place="cell.time")
    index = (grain or cube.grain).index(start)
    first, end = (int((grain or cube.grain).start(index + n)) for n in (0, 1))
    return {"from": first, "to": end}


def _names(query: Query, key: str) -> list[Any]:
    return list(query.get(key, []))


def _where(query: Query) -> dict[str, Any]:
    return dict(query.get("where") or {})


def _check_member(member: Any, place: str, hint: str) -> None:
    """That it is one member, and no choice of several; its type is looked at with the question."""
    if isinstance(member, (list, dict)):
        raise QuestionError("expected one member", place=place, hint=hint)


def _dimension(name: Any, cube: Cubify, place: str) -> tuple[str, ...]:
    dimension = next((d for d in cube.dimensions if name in d), None)
    if dimension is None:
        hint = f"there are: {listing(cube.attributes)}."
        if not isinstance(name, str):
            raise QuestionError("expected an attribute", place=place, hint=hint)
        hint = f"{hint} {suggest(name, cube.attributes) or ''}".strip()
        raise QuestionError(f'unknown attribute "{name[:80]}"', place=place, hint=hint)
    return dimension


def _shown(query: Query, step: Mapping[str, Any], cube: Cubify) -> tuple[str, tuple[str, ...]]:
    """The attribute of a step, which must be in the rows or columns; or the only one there."""
    shown = [*_names(query, "rows"), *_names(query, "columns")]
    if "attribute" not in step and len(shown) == 1:
        step = {"attribute": shown[0]}
    if "attribute" not in step:
        hint = f'write {{"attribute": ...}}; there are: {listing(map(str, shown))}'
        raise QuestionError("say which attribute", place="step", hint=hint)
    name = step["attribute"]
    dimension = _dimension(name, cube, "step.attribute")
    if name not in shown:
        hint = f"there are: {listing(map(str, shown))}"
        message = f'"{name}" is neither in the rows nor in the columns'
        raise QuestionError(message, place="step.attribute", hint=hint)
    return name, dimension


def _replaced(query: Query, name: str, other: str | None) -> Query:
    """Another attribute in the place of one."""
    made = dict(query)
    for key in ("rows", "columns"):
        names = [other if n == name else n for n in _names(query, key)]
        made[key] = list(dict.fromkeys(n for n in names if n is not None))
    return made


def grains_of(cube: Cubify) -> list[Grain]:
    """The grains with names that a question can have, fine to coarse."""
    named = [g for name in GRAINS if (g := Grain.named(name)) is not None]
    longest = (cube.window + 1) * cube.grain.longest
    fitting = [g for g in named if cube.grain.is_within(g) and g.longest <= longest]
    return list(dict.fromkeys([cube.grain, *fitting]))


def _other_grain(query: Query, wanted: Any, cube: Cubify, *, is_finer: bool) -> str | None:
    if isinstance(wanted, str):
        return wanted
    if wanted is not True and wanted is not None:
        raise QuestionError("expected a grain, or true", place="step.grain")
    grains, given = grains_of(cube), query.get("grain")
    now = grain_named(given) if isinstance(given, str) else None
    if is_finer:
        finer = [g for g in grains if now is None or g.longest < now.longest]
        if not finer:
            raise QuestionError("there is no finer grain", place="step.grain")
        return str(finer[-1])
    if now is None:
        raise QuestionError("the whole window is the coarsest grain", place="step.grain")
    coarser = [g for g in grains if g.longest > now.longest]
    return str(coarser[0]) if coarser else None
