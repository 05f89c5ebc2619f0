"""The textual form `.brook`: printing, and loading what was printed.

`load(Source(name, render(program))) == program` for every program without opaque
functions; a test holds us to it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator

from millstream.calculus import functions
from millstream.calculus.base import PicturePart
from millstream.calculus.cube_text import cube_lines
from millstream.calculus.each import PerKey
from millstream.calculus.expressions import RESERVED_WORDS, UNITS
from millstream.calculus.graph import Input, Operator, Program, Variable
from millstream.calculus.judging import Shown
from millstream.calculus.ordering import JOINED, NEIGHBOURS, PLACES
from millstream.calculus.procedure_text import work_lines
from millstream.calculus.script_text import script_lines, table_lines
from millstream.calculus.sheet_shown import sheet_shown
from millstream.calculus.sheet_text import sheet_lines, sheet_parts
from millstream.calculus.sheets import Sheet
from millstream.calculus.sketches import WHOLE
from millstream.calculus.terms import Call, Column, Literal, Read, Term, VariableField
from millstream.calculus.types import Kind, Type, Value
from millstream.values.core.table import PRECEDENCE
from millstream.values.instants import render_time

_PLAIN_NAME = re.compile(r"[^\W\d]\w*")
#: `json.dumps` would make an encoder for every text.
_quoted = json.JSONEncoder(ensure_ascii=False).encode
_PRINTED_UNITS = ("d", "h", "min", "s", "ms", "us")


def render(program: Program) -> str:
    """The program as text, one clause per line."""
    lines = [f"output {', '.join(map(_name, program.outputs))};".replace(" ;", ";")]
    if program.inputs:
        lines.append(f"input {(',' + chr(10) + '      ').join(map(_input, program.inputs))};")
    lines += [f"variable {_variable(v)};" for v in program.variables]
    lines += [render_operator(op) for op in program.operators]
    return "\n".join(lines) + "\n"


def render_operator(op: Operator) -> str:
    left = ", ".join([*map(_name, op.outputs), *(f"${_name(v)}" for v in op.writes)])
    right = ", ".join([*map(_name, op.inputs), *(f"${_name(v)}" for v in op.reads)])
    return f"({left}) <- {render_function(op.function)}({right});"


def shown_lines(function: functions.Function) -> list[str]:
    """A function for people, who need not be able to write it."""
    if isinstance(function, Sheet):
        return sheet_shown(function)
    return render_function(function).split("\n")


def render_function(function: functions.Function) -> str:
    body = _body(function)
    return f"{function.name}[{body}]" if body else function.name


def parts_of(op: Operator) -> tuple[PicturePart, ...]:
    """What a picture of an operator shows instead of one box; nothing for most."""
    if isinstance(op.function, Sheet):
        return sheet_parts(op.function, op.inputs, op.outputs)
    return ()


def _name(name: str) -> str:
    if _PLAIN_NAME.fullmatch(name) and name not in RESERVED_WORDS:
        return name
    return f"`{name}`"


def _names(names: Iterable[str]) -> str:
    return ", ".join(map(_name, names))


def _input(input_: Input) -> str:
    kind = " relation " if input_.type.is_relation else ""
    columns = ", ".join(f"{_name(f.name)} {f.type}" for f in input_.type.schema)
    time = f" time {_name(input_.time)}" if input_.time else ""
    slack = f" slack {render_duration(input_.slack)}" if input_.slack else ""
    slack += " early" if input_.is_early else ""
    once = " once" if input_.is_read_once else " numbered" if input_.is_numbered else ""
    values = "" if input_.values is None else f" values ({', '.join(_rows(input_))})"
    # Of another unit the same rows mean another input: a checkpoint must see that.
    unit = f" /* its times count {input_.unit} */" if input_.unit else ""
    return f"{_name(input_.name)}{kind}({columns}){time}{slack}{once}{values}{unit}"


def _rows(input_: Input) -> Iterator[str]:
    types = [f.type for f in input_.type.schema]
    for row in input_.values or ():
        yield f"({', '.join(_literal(v, t) for v, t in zip(row, types, strict=True))})"


def _variable(variable: Variable) -> str:
    fields = ", ".join(
        f"{_name(f.name)} {f.type} = {_literal(v, f.type)}"
        for f, v in zip(variable.fields, variable.initial, strict=True)
    )
    return f"${_name(variable.name)}({fields})"


def _body(function: functions.Function) -> str:
    match function:
        case functions.Map(columns):
            return _columns(columns)
        case functions.Filter(condition):
            return render_term(condition)
        case functions.FlatMap(branches):
            return "; ".join(map(_branch, branches))
        case functions.Fold():
            return "; ".join(_fold_clauses(function))
        case functions.Range(length, slide):
            first = "unbounded" if length is None else render_duration(length)
            return first if slide is None else f"{first}; slide {render_duration(slide)}"
        case functions.Rows(count, by, length):
            first = f"{count} by {_names(by)}" if by else str(count)
            return first if length is None else f"{first}; within {render_duration(length)}"
        case functions.Changes(by, old):
            return "; ".join([*_by(by), *([f"emit {_columns(old)}"] if old else [])])
        case functions.Rstream(every):
            return f"every {', '.join(map(render_duration, every))}" if every else ""
        case functions.Lookup(name, on, nulls_match, where):
            clauses = [_name(name), *_on(on), *(["nulls"] if nulls_match else [])]
            return "; ".join(clauses + ([_comparison(where)] if where else []))
        case functions.Top(count, by, descending):
            first = f"{count} by {_names(by)}" if by else str(count)
            return f"{first}; descending {_names(descending)}" if descending else first
        case functions.Ordered():
            return "; ".join(_ordered_clauses(function))
        case functions.Latest(by, unless):
            return "; ".join([*_by(by), *([f"unless {_name(unless)}"] if unless else [])])
        case functions.Until(until):
            return _name(until)
        case functions.Held(until, by, is_alone):
            return "; ".join([_name(until), *_by(by), *(["alone"] if is_alone else [])])
        case functions.Join(on, where, nulls_match):
            clauses = [*_on(on), *(["nulls"] if nulls_match else [])]
            return "; ".join(clauses + ([f"where {render_term(where)}"] if where else []))
        case functions.Aggregate(by, aggregations):
            return "; ".join([*_by(by), ", ".join(map(_aggregation, aggregations))])
        case functions.Judge():
            return ";\n    ".join(_judge_clauses(function))
        case _:
            return _other_body(function)


def _other_body(function: functions.Function) -> str:
    """What counts items, and what is described line by line."""
    match function:
        case functions.RoundRobinSplit(weights):
            return ", ".join(map(str, weights))
        case functions.RoundRobinJoin(weights, enqueued):
            rows = [json.dumps(json.dumps(enqueued))] if enqueued else []
            return ", ".join([*map(str, weights), *rows])
        case functions.Interleave(begins, repeats):
            turns = f"; every {', '.join(map(str, repeats))}" if repeats else ""
            return ", ".join(map(str, begins)) + (turns if begins else turns[2:])
        case functions.Work():
            return _texts(work_lines(function))
        case functions.Cubify():
            return _texts(cube_lines(function))
        case functions.RunScript():
            return _texts(script_lines(function))
        case functions.Tally():
            return _texts(table_lines(function))
        case Sheet():
            return _texts(sheet_lines(function))
        case PerKey(by, program, first):
            most = [] if first is None else [f"first {first}"]
            return "; ".join([*_by(by), *most, _texts(render(program).splitlines())])
        case functions.Opaque(label) | functions.OpaqueFold(label):
            return _texts([label])
        case _:
            return ""


def _ordered_clauses(ordered: functions.Ordered) -> list[str]:
    clauses = [] if ordered.count is None else [str(ordered.count)]
    clauses += _by(ordered.by)
    clauses += [f"on {_names(ordered.on)}"] if ordered.on else []
    clauses += [f"descending {_names(ordered.descending)}"] if ordered.descending else []
    if ordered.columns:
        clauses.append("emit " + ", ".join(map(_placed, ordered.columns)))
    return clauses


def _placed(placed: functions.Placed) -> str:
    args = [_name(placed.column)] if placed.column is not None else []
    if placed.function in NEIGHBOURS:
        args.append(str(placed.offset))
    if placed.function == JOINED:
        args.append(json.dumps(placed.between, ensure_ascii=False))
    if placed.function not in (*PLACES, *NEIGHBOURS):
        ends = ("*" if end is None else str(end) for end in placed.frame.ends)
        args.append(json.dumps(" ".join((placed.frame.unit, *ends))))
    return f"{_name(placed.name)} = {placed.function}({', '.join(args)})"


def _by(names: tuple[str, ...]) -> list[str]:
    return [f"by {_names(names)}"] if names else []


def _branch(branch: functions.Branch) -> str:
    when = f"when {render_term(branch.when)} " if branch.when is not None else ""
    return f"{when}emit {_columns(branch.columns)}"


def _texts(lines: Iterable[str]) -> str:
    return ",\n    ".join(map(_quoted, lines))


def _fold_clauses(fold: functions.Fold) -> list[str]:
    clauses = _by(fold.by)
    if fold.when is not None:
        clauses.append(f"when {render_term(fold.when)}")
    if fold.updates:
        updates = (
            f"${_name(u.variable)}.{_name(u.field)} = {render_term(u.term)}" for u in fold.updates
        )
        clauses.append(f"set {', '.join(updates)}")
    if fold.emit is not None:
        clauses.append(f"emit {_columns(fold.emit)}")
    return clauses


def _judge_clauses(judge: functions.Judge) -> list[str]:
    levels = [_texts(judge.levels)] if judge.levels else []
    clauses = [*levels, *_by(judge.keep)]
    for requirement in judge.requirements:
        place, text = (
            json.dumps(t, ensure_ascii=False) for t in (requirement.place, requirement.text)
        )
        level = f", {_texts([requirement.level])}" if judge.levels else ""
        when = "" if requirement.when is None else f"when {render_term(requirement.when)}; "
        clauses.append(
            f"{when}where {place}, {text}, {render_term(requirement.holds)}{level}"
            + _shown("emit", requirement.shown)
            + _shown("on", requirement.asked)
        )
    return clauses


def _shown(word: str, shown: tuple[Shown, ...]) -> str:
    items = (
        f"{json.dumps(s.label, ensure_ascii=False)}, {json.dumps(s.unit, ensure_ascii=False)}, "
        f"{render_term(s.term)}"
        for s in shown
    )
    return f"; {word} {', '.join(items)}" if shown else ""


def _on(on: tuple[tuple[str, str], ...]) -> list[str]:
    return [f"on {', '.join(map(_pair, on))}"] if on else []


def _comparison(where: functions.Comparison) -> str:
    return f"where {_name(where.ours)} {where.order} {_name(where.theirs)}"


def _pair(pair: tuple[str, str]) -> str:
    left, right = pair
    return _name(left) if left == right else f"{_name(left)} = {_name(right)}"


def _aggregation(aggregation: functions.Aggregation) -> str:
    terms = [render_term(term) for term in aggregation.terms]
    at = [] if aggregation.at is None else [f"{aggregation.at / WHOLE:.6f}"]
    return f"{_name(aggregation.name)} = {aggregation.function}({', '.join(terms + at)})"


def _columns(columns: functions.Columns) -> str:
    return ", ".join(
        _name(c.name)
        if isinstance(c.term, Column) and c.term.name == c.name
        else f"{_name(c.name)} = {render_term(c.term)}"
        for c in columns
    )


def render_term(term: Term, floor: int = 0) -> str:
    """A term as text, with the parentheses it needs inside something of binding `floor`."""
    match term:
        case Column(name):
            return _name(name)
        case VariableField(variable, field):
            return f"${_name(variable)}.{_name(field)}"
        case Literal(value, type_):
            return _literal(value, type_)
        case Read(place):
            steps = (f".{s}" if isinstance(s, str) else f"[{render_term(s)}]" for s in place.path)
            return _name(place.variable) + "".join(steps)
        case Call(function, args) if function in PRECEDENCE:
            level = PRECEDENCE[function]
            left, right = (render_term(args[0], level - 1), render_term(args[1], level))
            text = f"{left} {function} {right}"
            return f"({text})" if level <= floor else text
        case Call("not", args):
            return f"(not {render_term(args[0], PRECEDENCE['and'])})"
        case Call("neg", args):
            return f"(-{render_term(args[0], 100)})"
        case Call(function, args):
            return f"{function}({', '.join(render_term(a) for a in args)})"


def _literal(value: Value, type_: Type) -> str:
    if value is None:
        return f"null({type_})"
    match type_.kind:
        case Kind.TEXT:
            return json.dumps(value, ensure_ascii=False)
        case Kind.BOOLEAN:
            return "true" if value else "false"
        case Kind.DURATION:
            assert isinstance(value, int)
            return render_duration(value)
        case Kind.TIME:
            assert isinstance(value, int)
            return f"time({_time(value)})"
        case Kind.NUMBER:
            number = repr(float(value))
            return f"quantity({number}, {type_})" if type_.dimension.powers else number
        case _:
            return str(value)


def render_duration(micros: int) -> str:
    unit = next(u for u in _PRINTED_UNITS if micros % UNITS[u] == 0)
    return f"{micros // UNITS[unit]} {unit}" if micros else "0 s"


def _time(micros: int) -> str:
    """An ISO text in quotes where the calendar has one, else the microseconds."""
    text = render_time(micros)
    return str(micros) if text is None else f'"{text}"'
