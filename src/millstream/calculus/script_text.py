"""Scripts and tables as lines of text, for people and for seeing whether a program has changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from millstream.calculus.scripts import (
    Apply,
    Assert,
    Assign,
    Block,
    Choose,
    Const,
    Convert,
    Declare,
    Defined,
    Do,
    Emit,
    Expression,
    Get,
    If,
    Index,
    Inline,
    Intrinsic,
    Lambda,
    Leave,
    Length,
    Logic,
    Loop,
    Make,
    New,
    Operate,
    Part,
    Place,
    Present,
    Result,
    Return,
    Saw,
    Scope,
    Slice,
    Statement,
    Table,
    Undefine,
    Var,
    When,
)
from millstream.calculus.tables import RunScript, Tally
from millstream.values.records.printing import source_text
from millstream.values.records.types import RecordType, resolved

_INDENT = "  "


def script_lines(function: RunScript) -> list[str]:
    script = function.script
    record = "columns" if function.has_columns else "line"
    head = f"record {_var(script.record)} by {record}, zone {script.timezone}"
    lines = [head + (", passes over" if script.passes_over else "")]
    lines += [f"table {n}: {table_text(script.tables[n])}" for n in function.told]
    lines += [f"static {line}" for line in _block(script.statics, "")]
    return lines + list(_block(script.body, ""))


def table_lines(function: Tally) -> list[str]:
    every = "" if function.every is None else f", every {function.every} us"
    window = "" if function.window is None else f", window {function.window} us"
    lines = ", with lines" if function.lines else ""
    return [f"{table_text(function.table)}{every}{window}{lines}"]


def table_text(table: Table) -> str:
    parameter = "" if table.parameter is None else f"({table.parameter})"
    indexes = "".join(f"[{name or ''}{': ' * bool(name)}{t}]" for name, t in table.indexes)
    weight = "" if table.weight is None else f" weight {table.weight}"
    file = "" if table.file is None else f" file {table.file}"
    return f"{table.name}: {table.kind}{parameter}{indexes} of {table.value}{weight}{file}"


def _block(block: Block, indent: str) -> Iterator[str]:
    for statement in block:
        yield from _statement(statement, indent)


def _statement(statement: Statement, indent: str) -> Iterator[str]:
    inner = indent + _INDENT
    match statement:
        case If(condition, then, otherwise):
            yield f"{indent}if {text_of(condition)}"
            yield from _block(then, inner)
            if otherwise:
                yield f"{indent}else"
                yield from _block(otherwise, inner)
        case Loop(condition, body, after, tests_first):
            word = "while" if tests_first else "do while"
            yield f"{indent}{word} {'true' if condition is None else text_of(condition)}"
            yield from _block(body, inner)
            if after:
                yield f"{indent}after each"
                yield from _block(after, inner)
        case Choose(_, value, cases, otherwise):
            yield f"{indent}switch {text_of(value)}"
            for labels, body in cases:
                yield f"{indent}case {', '.join(map(text_of, labels))}"
                yield from _block(body, inner)
            yield f"{indent}default"
            yield from _block(otherwise, inner)
        case When(quantifiers, condition, body):
            names = "".join(f"{_var(q.var)}: {q.word}; " for q in quantifiers)
            yield f"{indent}when {names}{text_of(condition)}"
            yield from _block(body, inner)
        case Scope(body):
            yield from _block(body, indent)
        case _:
            yield indent + _plain(statement)


def _plain(statement: Any) -> str:
    match statement:
        case Declare(var, value):
            begins = "" if value is None else f" = {text_of(value)}"
            return f"{_var(var)}: {var.type}{begins}"
        case Assign(target, value):
            return f"{_place(target)} = {text_of(value)}"
        case Undefine(target, is_field):
            return f"{'clear' if is_field else 'undefine'} {_place(target)}"
        case Do(value):
            return text_of(value)
        case Assert(condition, message):
            more = "" if message is None else f", {text_of(message)}"
            return f"assert {text_of(condition)}{more}"
        case Leave(word):
            return word
        case Emit(table, indexes, value, weight):
            where = "".join(f"[{text_of(i)}]" for i in indexes)
            heavy = "" if weight is None else f" weight {text_of(weight)}"
            return f"emit {table}{where} <- {text_of(value)}{heavy}"
        case Return(value):
            return "return" if value is None else f"return {text_of(value)}"
        case Result(value):
            return f"result {text_of(value)}"
        case _:
            raise AssertionError(statement)


def _var(var: Var) -> str:
    return f"{var.name}.{var.number}"


def _place(place: Place) -> str:
    steps = ""
    for step in place.path:
        if step.position is not None:
            steps += f".{step.position}"
        elif step.index is not None:
            high = "" if step.high is None else f":{text_of(step.high)}"
            steps += f"[{text_of(step.index)}{high}]"
    return _var(place.var) + steps


def _values(values: tuple[Expression, ...]) -> str:
    return ", ".join(map(text_of, values))


def text_of(node: Expression) -> str:
    """An expression in one line."""
    match node:
        case Const(value, type_):
            return _constant(value, type_)
        case Get(var):
            return _var(var)
        case Operate(operator, (left, right)):
            return f"({text_of(left)} {operator} {text_of(right)})"
        case Operate(operator, arguments):
            return f"{operator}({_values(arguments)})"
        case Logic(operator, left, right):
            return f"({text_of(left)} {operator} {text_of(right)})"
        case Intrinsic(name, arguments, type_):
            return f"{name}({_values(arguments)})" + (f": {type_}" if name == "row" else "")
        case Convert(value, parameters, type_):
            return f"convert({type_}, {_values((value, *parameters))})"
        case New(count, item, type_):
            return f"new({type_}, {text_of(count)}, {text_of(item)})"
        case Index(base, index):
            return f"{text_of(base)}[{text_of(index)}]"
        case Slice(base, low, high):
            return f"{text_of(base)}[{text_of(low)}:{text_of(high)}]"
        case Length(number):
            return f"$.{number}"
        case Part(base, position):
            return f"{text_of(base)}.{position}"
        case _:
            return _other(node)


def _other(node: Expression) -> str:
    match node:
        case Make(items, type_):
            return f"{{{_values(items)}}}: {type_}"
        case Lambda(function):
            names = ", ".join(map(_var, function.parameters))
            body = "; ".join(_block(function.body, ""))
            return f"function {function.number}({names}) {{ {body} }}"
        case Apply(function, arguments):
            return f"{text_of(function)}({_values(arguments)})"
        case Inline(body):
            return "?{ " + "; ".join(_block(body, "")) + " }"
        case Defined(value):
            return f"def({text_of(value)})"
        case Present(base, position):
            return f"present({text_of(base)}, {position})"
        case Saw(text, cuts, count, rests):
            words = [
                "skip " * c.is_skipped + "submatch " * c.is_submatch + text_of(c.pattern)
                for c in cuts
            ]
            often = "until it ends" if count is None else text_of(count)
            left = "".join(f", rest {_place(place)} after {before}" for place, before in rests)
            return f"saw({text_of(text)}, {', '.join(words)}; {often}{left})"
        case _:
            raise AssertionError(node)


def _constant(value: Any, type_: RecordType) -> str:
    return "nothing" if value is None else source_text(value, resolved(type_))
