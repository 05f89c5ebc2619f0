"""What is known before anything runs is worked out once.

Law: a function of values that never change has one value. `true and x` is x, `if(true, x, y)` is x.

    before  (out) <- Map[b = a * (2 + 3)](in);   (r) <- Filter[1 < 2 and a > 1](q);
    after   (out) <- Map[b = a * 5](in);         (r) <- Filter[a > 1](q);

Terms of row functions, totals and joins are folded, and those of the statements of procedures. What
fails stays, for each row on which it fails is counted; so does what would be a zero of single
precision, which has a sign that a constant has not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

from millstream.calculus.functions import (
    Aggregate,
    Aggregation,
    Assign,
    Branch,
    Filter,
    FlatMap,
    Fold,
    Join,
    Map,
    Update,
)
from millstream.calculus.graph import Operator, Program, rewritten
from millstream.calculus.procedures import Code, Routine, Statement
from millstream.calculus.terms import Call, Column, Literal, Place, Read, Term
from millstream.calculus.text import render_term
from millstream.calculus.work import Work
from millstream.meaning.scalars import evaluate
from millstream.values.types import Kind

_FUNCTIONS = (Map, Filter, FlatMap, Fold, Aggregate, Join, Work)
#: What terms are found in, inside of functions; sizes of arrays are part of what is declared.
_PARTS = (Assign, Branch, Update, Aggregation, Code, Routine, Statement)
_WITH_TERMS = (*_PARTS, *_FUNCTIONS)
#: To ask a class for its fields takes as long as to look at them.
_FIELDS: dict[type[Any], tuple[str, ...]] = {}
#: Of what is asked in turn, the answer that leaves it to the other.
_NEUTRAL = {"and": True, "or": False}


def fold_constants(program: Program) -> Program:
    """Work out all that is known; the same program if nothing is."""
    instead: dict[int, list[Operator]] = {}
    # The codes of filters by their numbers in memory: thousands of filters share a few of them.
    codes: dict[int, Code] = {}
    for op in program.operators:
        function = op.function
        if isinstance(function, Work):
            if id(function.code) not in codes:
                codes[id(function.code)] = _within(function.code)
            code = codes[id(function.code)]
            function = function if code is function.code else replace(function, code=code)
        elif isinstance(function, _FUNCTIONS):
            function = _within(function)
        if function is not op.function:
            instead[id(op)] = [replace(op, function=function)]
    return rewritten(program, instead)


def refusals(program: Program) -> Iterator[tuple[Operator, str]]:
    """The constants that stay as they are written, and why."""
    for op in program.operators:
        if isinstance(op.function, _FUNCTIONS):
            for call in _constants(op.function):
                why = _refusal(call)
                if why is not None:
                    yield op, f"{render_term(call)} {why}"


def _within(node: Any) -> Any:
    """The same with all terms folded; the same object if nothing changes."""
    if node is None or isinstance(node, (str, int, Column)):
        return node
    if isinstance(node, (Call, Read)):
        return folded(node)
    if isinstance(node, tuple):
        parts = tuple(map(_within, node))
        return node if all(a is b for a, b in zip(node, parts, strict=True)) else parts
    if isinstance(node, Place):
        path = _within(node.path)
        return node if path is node.path else replace(node, path=path)
    if not isinstance(node, _WITH_TERMS):
        return node
    changed = {}
    for name in _fields_of(node):
        old = getattr(node, name)
        new = _within(old)
        if new is not old:
            changed[name] = new
    return replace(node, **changed) if changed else node


def _fields_of(node: Any) -> tuple[str, ...]:
    """What something is made of; where it was written holds no terms."""
    assert is_dataclass(node)
    kind = type(node)
    if kind not in _FIELDS:
        _FIELDS[kind] = tuple(f.name for f in fields(node) if f.init and f.name != "span")
    return _FIELDS[kind]


def folded(term: Term) -> Term:
    """A term with all constants worked out; the same object if there are none."""
    match term:
        case Read(place):
            inner = _within(place)
            return term if inner is place else replace(term, place=inner)
        case Call(_, args):
            parts = tuple(map(folded, args))
            if any(a is not b for a, b in zip(args, parts, strict=True)):
                term = replace(term, args=parts)
            return _simplified(term)
        case _:
            return term


def _simplified(call: Call) -> Term:
    match call:
        case Call("and" | "or" as word, (left, right)):
            for one, other in ((left, right), (right, left)):
                if isinstance(one, Literal) and one.value is _NEUTRAL[word]:
                    return other
        case Call("if", (Literal(value), then, otherwise)):
            return then if value is True else otherwise
        case _:
            pass
    if not _is_constant(call) or _refusal(call) is not None:
        return call
    return Literal(evaluate(call, {}), call.type, call.span)


def _is_constant(call: Call) -> bool:
    return all(isinstance(arg, Literal) for arg in call.args)


def _refusal(call: Call) -> str | None:
    """Why a function of constants stays as it is; None if it can be worked out."""
    faults: Counter[str] = Counter()
    value = evaluate(call, {}, faults=faults)
    if faults:
        return "fails, which is counted for every row"
    if call.type.kind is Kind.SINGLE and value == 0.0:
        return "is a zero of single precision, which may have a sign"
    return None


def _constants(node: Any) -> Iterator[Call]:
    """The functions of constants inside of something."""
    match node:
        case Call(_, args):
            if _is_constant(node):
                yield node
            yield from _constants(args)
        case Read(place):
            yield from _constants(place.path)
        case Place(_, path):
            yield from _constants(path)
        case tuple():
            for part in node:
                yield from _constants(part)
        case _ if isinstance(node, _WITH_TERMS):
            for f in fields(node):
                yield from _constants(getattr(node, f.name))
        case _:
            return
