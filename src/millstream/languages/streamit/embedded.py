"""Streams written in Python: functions are called once, on values that remember what is done.

What they give becomes the work of filters, so that it is checked, compiled and explained as if it
were written in a `.str` file. It calculates as StreamIt does: `/` of integers cuts off, and 32 bits
wrap.
"""

from __future__ import annotations

import inspect
import linecache
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NoReturn, cast

from millstream.api import Compiled
from millstream.errors import UsageError
from millstream.languages.streamit import ast
from millstream.languages.streamit.read import type_in
from millstream.languages.streamit.translate import translation_of
from millstream.source import Source, Span

_FIRST = "item"


@dataclass(frozen=True, eq=False)
class Value:
    """A value that will be known when the program runs; operators on it make others."""

    node: ast.Expression

    def _with(self, operator: str, other: object, *, is_right: bool = False) -> Value:
        sides = self.node, _node(other, self.node.span)
        left, right = reversed(sides) if is_right else sides
        return Value(ast.Binary(operator, left, right, self.node.span))

    def __bool__(self) -> NoReturn:
        raise UsageError("this value is not known yet, so that Python cannot decide by it",
                         hint="write streamit.where(condition, then, otherwise)")  # fmt: skip

    def __add__(self, other: object) -> Value:
        return self._with("+", other)

    def __radd__(self, other: object) -> Value:
        return self._with("+", other, is_right=True)

    def __sub__(self, other: object) -> Value:
        return self._with("-", other)

    def __rsub__(self, other: object) -> Value:
        return self._with("-", other, is_right=True)

    def __mul__(self, other: object) -> Value:
        return self._with("*", other)

    def __rmul__(self, other: object) -> Value:
        return self._with("*", other, is_right=True)

    def __truediv__(self, other: object) -> Value:
        return self._with("/", other)

    def __rtruediv__(self, other: object) -> Value:
        return self._with("/", other, is_right=True)

    def __mod__(self, other: object) -> Value:
        return self._with("%", other)

    def __rmod__(self, other: object) -> Value:
        return self._with("%", other, is_right=True)

    def __lshift__(self, other: object) -> Value:
        return self._with("<<", other)

    def __rlshift__(self, other: object) -> Value:
        return self._with("<<", other, is_right=True)

    def __rshift__(self, other: object) -> Value:
        return self._with(">>", other)

    def __rrshift__(self, other: object) -> Value:
        return self._with(">>", other, is_right=True)

    def __and__(self, other: object) -> Value:
        return self._with("&", other)

    def __rand__(self, other: object) -> Value:
        return self._with("&", other, is_right=True)

    def __or__(self, other: object) -> Value:
        return self._with("|", other)

    def __ror__(self, other: object) -> Value:
        return self._with("|", other, is_right=True)

    def __xor__(self, other: object) -> Value:
        return self._with("^", other)

    def __rxor__(self, other: object) -> Value:
        return self._with("^", other, is_right=True)

    def __lt__(self, other: object) -> Value:
        return self._with("<", other)

    def __le__(self, other: object) -> Value:
        return self._with("<=", other)

    def __gt__(self, other: object) -> Value:
        return self._with(">", other)

    def __ge__(self, other: object) -> Value:
        return self._with(">=", other)

    def __eq__(self, other: object) -> Value:  # type: ignore[override]
        return self._with("==", other)

    def __ne__(self, other: object) -> Value:  # type: ignore[override]
        return self._with("!=", other)

    __hash__ = None  # type: ignore[assignment]

    def __neg__(self) -> Value:
        return Value(ast.Unary("-", self.node, self.node.span))

    def __invert__(self) -> Value:
        return Value(ast.Unary("~", self.node, self.node.span))

    def __abs__(self) -> Value:
        return call("abs", self)

    def __getitem__(self, index: object) -> Value:
        return Value(ast.Item(self.node, _node(index, self.node.span), self.node.span))

    def part(self, name: str) -> Value:
        """`real` and `imag` of a complex number."""
        return Value(ast.Member(self.node, name, self.node.span))


def _node(given: object, span: Span) -> ast.Expression:
    match given:
        case Value(node):
            return node
        case bool():
            return ast.Truth(given, span)
        case int() | float() if given < 0:
            return ast.Unary("-", ast.Number(-given, False, span), span)
        case int() | float():
            return ast.Number(given, False, span)
        case _:
            raise UsageError(f"expected a value of StreamIt, got {given!r}")


def call(function: str, *arguments: Any) -> Value:
    """A function that StreamIt knows, such as `call("sqrt", x)`."""
    spans = [a.node.span for a in arguments if isinstance(a, Value)]
    span = spans[0] if spans else _nowhere(function)
    return Value(ast.Invoke(function, tuple(_node(a, span) for a in arguments), span))


def where(condition: Any, then: Any, otherwise: Any) -> Value:
    """One of two values: `if` and `else` of functions that are called before anything is known."""
    span = condition.node.span
    sides = _node(then, span), _node(otherwise, span)
    return Value(ast.Choice(_node(condition, span), *sides, span))


# --- streams ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Stream:
    """A filter, a pipeline, a split-join or a feedback loop, with the streams it is made of."""

    tree: ast.Stream

    def translation(self, name: str = "Main") -> Any:
        whole = replace(self.tree, name=name)
        return translation_of(ast.Text((whole,), (), (), ()), whole.span.source, Path())

    def compile(self, name: str = "Main") -> Compiled:
        """A program that can be run, explained and put into a project."""
        return Compiled.of(self.translation(name), name, Path())


def filter(  # noqa: A001 - as the language calls it
    function: Callable[..., Any], *, takes: str = "int", gives: str | None = None,
    pop: int = 1, peek: int | None = None, state: Mapping[str, Any] | None = None,
    name: str | None = None,
) -> Stream:  # fmt: skip
    """A filter that pushes what a function gives for the items it sees.

    The function takes the state first, if there is any, then `peek` items (the oldest first; by
    default as many as are popped). It gives what is pushed, one value or several; with state, the
    new state before that. The filter is called as the function is, or by a name of its own.
    """
    span = _place_of(function)
    seen = pop if peek is None else peek
    held = dict(state or {})
    items = [f"{_FIRST}{n}" for n in range(seen)]
    values = [Value(ast.Name(one, span)) for one in (*held, *items)]
    given = function(*values)
    results = [_node(r, span) for r in (given if isinstance(given, tuple | list) else (given,))]
    if len(results) < len(held):
        raise UsageError(f"{_name_of(function)} must give {len(held)} values for its state")
    type_, output = type_in(takes, span), type_in(gives or takes, span)
    statements: list[ast.Statement] = [
        ast.Declare(type_, item, ast.Invoke("peek", (ast.Number(n, False, span),), span), span)
        for n, item in enumerate(items)
    ]
    kept = [f"next_{name}" for name in held]
    fields = [ast.Declare(_type_of(v, span), n, _node(v, span), span) for n, v in held.items()]
    pairs = list(zip(fields, kept, results, strict=False))
    pushed = [f"given{n}" for n in range(len(results) - len(held))]
    statements += [ast.Declare(f.type, name, result, span) for f, name, result in pairs]
    statements += [ast.Declare(output, name, result, span)
                   for name, result in zip(pushed, results[len(held) :], strict=True)]  # fmt: skip
    statements += [ast.Set(ast.Name(f.name, span), "", ast.Name(name, span), span)
                   for f, name, _ in pairs]  # fmt: skip
    statements += [ast.Push(ast.Name(name, span), span) for name in pushed]
    statements += [ast.Do(ast.Invoke("pop", (), span), span) for _ in range(pop)]
    rates = {name: _rate(count, span)
             for name, count in (("pop", pop), ("peek", seen), ("push", len(pushed)))}  # fmt: skip
    work = ast.Work(rates, ast.Block(tuple(statements), span), span)
    body = ast.Filter(tuple(fields), None, None, work, ())
    return Stream(ast.Stream(name or _name_of(function), type_, output, (), body, span))


def pipeline(*streams: Stream) -> Stream:
    """Streams one after another."""
    return _composite("pipeline", [_placed("add", stream) for stream in streams], streams)


def splitjoin(split: Any, *streams: Stream, join: Any = "roundrobin") -> Stream:
    """Streams side by side; `split` and `join` are "duplicate", "roundrobin" or weights."""
    span = _span_of(streams)
    statements = [_dealt("split", split, span), *(_placed("add", s) for s in streams),
                  _dealt("join", join, span)]  # fmt: skip
    return _composite("splitjoin", statements, streams)


def feedbackloop(
    *, body: Stream, loop: Stream | None = None, join: Any = "roundrobin",
    split: Any = "roundrobin", enqueue: Sequence[Any] = (),
) -> Stream:  # fmt: skip
    """A loop: outside is first in `join` and `split`, what goes round second."""
    streams = [body] if loop is None else [body, loop]
    span = _span_of(streams)
    statements = [_dealt("join", join, span), _placed("body", body)]
    statements += [] if loop is None else [_placed("loop", loop)]
    statements.append(_dealt("split", split, span))
    statements += [ast.Enqueue(_node(value, span), span) for value in enqueue]
    return _composite("feedbackloop", statements, streams)


def _composite(
    kind: Literal["pipeline", "splitjoin", "feedbackloop"], statements: Sequence[ast.Statement],
    streams: Sequence[Stream],
) -> Stream:  # fmt: skip
    span = _span_of(streams)
    body = ast.Composite(kind, ast.Block(tuple(statements), span))
    first, last = streams[0].tree, streams[-1].tree
    return Stream(ast.Stream(None, first.input, last.output, (), body, span))


def _placed(role: Literal["add", "body", "loop"], stream: Stream) -> ast.Statement:
    return ast.AddStream(role, stream.tree, (), stream.tree.span)


def _dealt(role: Literal["split", "join"], weights: Any, span: Span) -> ast.Statement:
    if isinstance(weights, str):
        kind = cast("Literal['duplicate', 'roundrobin']", weights)
        if kind not in ("duplicate", "roundrobin"):
            raise UsageError(f'expected duplicate, roundrobin or weights, got "{weights}"')
        return ast.Split(role, kind, (), span)
    return ast.Split(role, "roundrobin", tuple(_node(w, span) for w in weights), span)


def _span_of(streams: Sequence[Stream]) -> Span:
    if not streams:
        raise UsageError("a composite needs streams")
    return streams[0].tree.span


def _rate(count: int, span: Span) -> ast.Rate:
    value = ast.Number(count, False, span)
    return ast.Rate(value, value, span)


def _type_of(value: object, span: Span) -> ast.TypeName:
    names = {bool: "boolean", int: "int", float: "float"}
    if type(value) not in names:
        raise UsageError(f"expected a number as state, got {value!r}")
    return ast.TypeName(names[type(value)], (), span)


def _name_of(function: Callable[..., Any]) -> str:
    name = getattr(function, "__name__", "")
    return name if name.isidentifier() else "Filter"


def _nowhere(text: str) -> Span:
    return Span(Source("Python", text), 0, len(text))


def _place_of(function: Callable[..., Any]) -> Span:
    """The first line of a function, for messages."""
    try:
        file = inspect.getsourcefile(function) or ""
        _, number = inspect.getsourcelines(function)
    except (OSError, TypeError):
        return _nowhere(_name_of(function))
    lines = linecache.getlines(file)
    start = sum(len(line) for line in lines[: number - 1])
    return Span(Source(file, "".join(lines)), start, start + len(lines[number - 1].rstrip()))
