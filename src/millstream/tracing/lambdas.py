"""From Python lambdas to terms, by calling them once with a row that takes notes.

    trace_row(lambda r: {"cost": r.price * 0.02}, schema)

The row's columns are objects whose operators build expressions. What cannot be traced (a
call of some library, an `if` on a column) is not a term; the caller then keeps the
callable as it is.
"""

from __future__ import annotations

import dis
import functools
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NoReturn

from millstream.calculus.check import Scope, check
from millstream.calculus.functions import Assign, Columns
from millstream.calculus.syntax import Apply, Constant, Expression, Name, VariableName
from millstream.calculus.terms import Term
from millstream.calculus.types import (
    BOOLEAN,
    DURATION,
    INTEGER,
    NUMBER,
    TEXT,
    TIME,
    TIME_COLUMN,
    Schema,
    Type,
    Value,
)
from millstream.errors import CheckError, MillstreamError, UsageError, listing, suggest
from millstream.meaning.scalars import evaluate
from millstream.values.core.table import SCALARS
from millstream.values.instants import micros_in, micros_of

#: What a row is called that is a value and not a dictionary of columns.
VALUE = "value"
#: Code that may look at objects: our own, and what `isinstance` runs.
_TRUSTED = (str(Path(__file__).parents[1]), "<frozen ")

#: A callable from a row, whose columns are attributes and items.
RowFunction = Callable[..., object]


class Untraceable(Exception):
    """The callable does something that a term cannot say."""


class Traced:
    """A column or an expression over columns."""

    __hash__ = None  # type: ignore[assignment]  # == builds an expression

    def __init__(self, expression: Expression) -> None:
        self.expression = expression

    def __bool__(self) -> NoReturn:
        raise Untraceable("a column has no truth value yet; use & | ~ and if_")

    def __str__(self) -> NoReturn:
        raise Untraceable('a column has no text yet; use call("text", column)')

    __repr__ = __str__

    def __format__(self, specification: str) -> NoReturn:
        str(self)
        raise AssertionError

    def __mod__(self, other: object) -> Traced:
        """Python's remainder has the sign of the divisor, the calculus' of the dividend."""
        left, right = self.expression, expression_of(other)
        shifted = Apply("+", (Apply("%", (left, right)), right))
        return Traced(Apply("%", (shifted, right)))

    def __rmod__(self, other: object) -> Traced:
        return Traced(expression_of(other)) % self

    def __iter__(self) -> NoReturn:
        raise Untraceable("a column cannot be iterated over")

    def __getattr__(self, name: str) -> NoReturn:
        function = _METHODS.get(name, name)
        hint = f'; use call("{function}", column)' if function in SCALARS else ""
        raise Untraceable(f"a column has no attribute {name}{hint}")


def _instead(function: str, what: str) -> Callable[..., NoReturn]:
    """What Python would have to answer itself, and which function of the calculus to call."""

    def refuse(*_: object) -> NoReturn:
        raise Untraceable(f'a column has no {what} yet; use call("{function}", column)')

    return refuse


#: Methods of texts by the functions that do as much.
_METHODS = {"startswith": "starts_with", "endswith": "ends_with", "strip": "trim"}
for _name, (_function, _what) in {
    "len": ("length", "length"), "int": ("integer", "integer"), "float": ("number", "float"),
    "round": ("round", "rounded value"), "floor": ("floor", "floor"), "ceil": ("ceil", "ceiling"),
    "contains": ("contains", "parts"), "pow": ("power", "powers"), "floordiv": ("div", "quotient"),
}.items():  # fmt: skip
    setattr(Traced, f"__{_name}__", _instead(_function, _what))


_BINARY = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "lt": "<", "le": "<=",
    "gt": ">", "ge": ">=", "eq": "==", "ne": "!=", "and": "and", "or": "or",
}  # fmt: skip


def _binary(function: str, *, is_reflected: bool) -> Callable[[Traced, object], Traced]:
    def operator(self: Traced, other: object) -> Traced:
        if other is None and function in ("==", "!="):
            return _is_none(self, is_equal=function == "==")
        pair = (self.expression, expression_of(other))
        return Traced(Apply(function, pair[::-1] if is_reflected else pair))

    return operator


def _is_none(value: Traced, *, is_equal: bool) -> Traced:
    """Python's `== None` asks whether there is a value; `==` of the calculus never says so."""
    is_null = Apply("is_null", (value.expression,))
    return Traced(is_null if is_equal else Apply("not", (is_null,)))


for _name, _function in _BINARY.items():
    setattr(Traced, f"__{_name}__", _binary(_function, is_reflected=False))
    if _function in ("+", "-", "*", "/", "and", "or"):
        setattr(Traced, f"__r{_name}__", _binary(_function, is_reflected=True))
for _name, _function in {"neg": "neg", "abs": "abs", "invert": "not"}.items():
    setattr(
        Traced,
        f"__{_name}__",
        lambda self, _function=_function: Traced(Apply(_function, (self.expression,))),
    )


def call(function: str, *args: object) -> Any:  # its operators are made at run time
    """A scalar function of the calculus inside a lambda: `call("upper", r.symbol)`.

    Of plain values it is the value itself, so that a lambda means the same whether it is
    traced or called.
    """
    if args and not any(isinstance(arg, Traced) for arg in args):
        return _value_of(function, args)
    return Traced(Apply(function, tuple(expression_of(a) for a in args)))


def _value_of(function: str, args: tuple[object, ...]) -> Value:
    """A null may stand for a value of any type, so the others are asked for theirs."""
    given = [expression_of(a) for a in args]
    types = [e.type for e in given if isinstance(e, Constant) and e.type is not None]
    likely = types[0] if types else NUMBER
    typed = tuple(
        Constant(None, likely) if isinstance(e, Constant) and e.type is None else e for e in given
    )
    return evaluate(check(Apply(function, typed), Scope(Schema())), {})


def if_(condition: object, then: object, otherwise: object) -> Any:
    """One of two values, inside a lambda: `if_(r.price > 10, "dear", "cheap")`.

    Of plain values it is Python's own conditional, so that a lambda means the same
    whether it is traced or called.
    """
    if any(isinstance(one, Traced) for one in (condition, then, otherwise)):
        return call("if", condition, then, otherwise)
    return then if condition else otherwise


def expression_of(value: object) -> Expression:
    match value:
        case Traced():
            return value.expression
        case bool():
            return Constant(value, BOOLEAN)
        case int():
            return Constant(value, INTEGER)
        case float():
            return Constant(value, NUMBER)
        case str():
            return Constant(value, TEXT)
        case datetime():
            return Constant(micros_of(value), TIME)
        case timedelta():
            return Constant(micros_in(value), DURATION)
        case None:
            return Constant(None, None)
        case _:
            raise Untraceable(f"{type(value).__name__} is not a value of the calculus")


class _Row:
    """A row whose attributes are columns."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema

    def __getattr__(self, name: str) -> Any:
        if name == "keys" and name not in self._schema:
            return lambda: self._schema.names  # so that a dictionary can have all: {**row}
        return Traced(Name(name))

    def __getitem__(self, name: str) -> Traced:
        return Traced(Name(name))


class Record:
    """Named values, plain or traced, as attributes and items."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.__dict__.update(values)

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name)

    def keys(self) -> Iterable[str]:
        """So that a dictionary can have all of them: `{**row}`."""
        return self.__dict__.keys()

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        known = list(self.__dict__)
        hint = f"there are: {listing(known)}. {suggest(name, known) or ''}".strip()
        raise CheckError(f'unknown field "{name}"', hint=hint)


def traced_variable(variable: str, fields: Schema) -> Record:
    """The fields of a state variable, for a callable to be traced with."""
    return Record({name: Traced(VariableName(variable, name)) for name in fields.names})


def traced_columns(schema: Schema, *, has_time: bool = False) -> Record:
    """The columns of a row, and perhaps its time, for a callable to be traced with."""
    names = (*schema.names, *((TIME_COLUMN,) if has_time else ()))
    return Record({name: Traced(Name(name)) for name in names})


def _called(function: Callable[[Any], object], schema: Schema) -> object:
    """What the callable makes of the note-taking row.

    It may fail in any way at all on something that is not a value; whatever it raises
    means that it cannot be traced.
    """
    return called_with(function, _Row(schema))


def called_with(function: RowFunction, *notes: object) -> object:
    """What the callable makes of rows and records that take notes."""
    if not callable(function):
        raise UsageError(f"expected a lambda or a function, got {function!r}")
    if not inspect.isroutine(function):
        raise Untraceable("only functions of Python can be traced")
    try:
        made, codes = _watched(function, notes)
    except MillstreamError:
        raise
    except Exception as error:
        raise Untraceable(str(error)) from error
    if any(map(_looks_at_objects, codes)):
        raise Untraceable("`is` looks at objects, which columns are not yet; use is_null")
    return made


def _watched(function: RowFunction, notes: tuple[object, ...]) -> tuple[object, set[CodeType]]:
    """What a callable makes of its arguments, and what code was run for it."""
    codes: set[CodeType] = set()

    def watch(frame: FrameType, _event: str, _argument: object) -> None:
        if not frame.f_code.co_filename.startswith(_TRUSTED):
            codes.add(frame.f_code)

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        return function(*notes), codes
    finally:
        sys.setprofile(before)


@functools.cache
def _looks_at_objects(code: CodeType) -> bool:
    names = {step.opname for step in dis.get_instructions(code)}
    return any(name == "IS_OP" or name.endswith("_NONE") for name in names)


def trace_term(
    function: Callable[[Any], object], schema: Schema, wanted: Type | None = None
) -> Term:
    """The term of a lambda that gives one value."""
    result = _called(function, schema)
    if not isinstance(result, Traced):
        # It may be a constant; it may as well depend on what cannot be seen here.
        raise Untraceable("the result does not depend on any column")
    return check(result.expression, Scope(schema), wanted=wanted)


def row_of(made: object) -> object:
    """A traced value is a row of one column, the row all of them; all else is left as it is."""
    if isinstance(made, _Row):
        return {**made}
    return {VALUE: made} if isinstance(made, Traced) else made


def trace_row(function: Callable[[Any], object], schema: Schema) -> Columns:
    """The columns of a lambda that gives a dictionary, or one value."""
    result = row_of(_called(function, schema))
    if not isinstance(result, Mapping):
        raise Untraceable('it does not give a dictionary of columns, such as {"x": ..}')
    scope = Scope(schema)
    return tuple(Assign(str(n), check(expression_of(v), scope)) for n, v in result.items())
