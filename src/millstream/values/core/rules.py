"""Typing rules of scalar functions.

A rule gets the types of the arguments and answers with a signature, or with one sentence
saying what it wanted. Integers are promoted to numbers where a number is wanted; nothing
else is converted silently.
"""

from __future__ import annotations

from millstream.values.core.scalar import Rule, Signature
from millstream.values.types import (
    BOOLEAN,
    DURATION,
    INTEGER,
    NUMBER,
    TEXT,
    TIME,
    Dimension,
    Kind,
    Type,
)


def _spoken(types: tuple[Type, ...]) -> str:
    return " and ".join(f"{'an' if str(t)[0] in 'ai' else 'a'} {t}" for t in types)


def fixed(*params: Type, result: Type) -> Rule:
    def rule(args: tuple[Type, ...]) -> Signature | str:
        fits = len(args) == len(params) and all(
            a == p or (p == NUMBER and a == INTEGER) for a, p in zip(args, params, strict=True)
        )
        if fits:
            return Signature(params, result)
        return f"expected {_spoken(params) or 'no arguments'}, got {_spoken(args) or 'none'}"

    return rule


def additive(name: str) -> Rule:
    """`+` and `-`: numbers of one dimension, integers, and time arithmetic."""

    def rule(args: tuple[Type, ...]) -> Signature | str:
        if len(args) != 2:
            return f"expected two arguments, got {len(args)}"
        left, right = args
        if left == right == INTEGER or left == right == DURATION:
            return Signature(args, left)
        if left.is_numeric and right.is_numeric:
            if left.dimension != right.dimension:
                return _dimension_clash("combine", left, right)
            return Signature((_as_number(left), _as_number(right)), _as_number(left))
        if left == TIME and right == DURATION:
            return Signature(args, TIME)
        if name == "+" and left == DURATION and right == TIME:
            return Signature(args, TIME)
        if name == "-" and left == right == TIME:
            return Signature(args, DURATION)
        if name == "+" and left == right == TEXT:
            return "cannot add texts; join them with ||"
        verb = "add" if name == "+" else "subtract"
        return f"cannot {verb} {_spoken(args)}"

    return rule


def _as_number(type_: Type) -> Type:
    return Type(Kind.NUMBER, type_.dimension)


def _dimension_clash(verb: str, left: Type, right: Type) -> str:
    def named(t: Type) -> str:
        return f"a {t.dimension}" if t.dimension.powers else "a plain number"

    return f"cannot {verb} {named(left)} with {named(right)}"


def times(args: tuple[Type, ...]) -> Signature | str:
    if len(args) != 2:
        return f"expected two arguments, got {len(args)}"
    left, right = args
    if left == right == INTEGER:
        return Signature(args, INTEGER)
    if left.is_numeric and right.is_numeric:
        dimension = left.dimension.times(right.dimension)
        return Signature((_as_number(left), _as_number(right)), Type(Kind.NUMBER, dimension))
    if left == DURATION and right in (INTEGER, NUMBER):
        return Signature((DURATION, right), DURATION)
    if right == DURATION and left in (INTEGER, NUMBER):
        return Signature((left, DURATION), DURATION)
    return f"cannot multiply {_spoken(args)}"


def over(args: tuple[Type, ...]) -> Signature | str:
    if len(args) != 2:
        return f"expected two arguments, got {len(args)}"
    left, right = args
    if left.is_numeric and right.is_numeric:
        dimension = left.dimension.times(right.dimension, -1)
        return Signature((_as_number(left), _as_number(right)), Type(Kind.NUMBER, dimension))
    if left == right == DURATION:
        return Signature(args, NUMBER)
    if left == DURATION and right.is_numeric and not right.dimension.powers:
        return Signature((DURATION, NUMBER), DURATION)
    return f"cannot divide {_spoken(args)}"


def remainder(args: tuple[Type, ...]) -> Signature | str:
    if len(args) == 2 and args[0] == args[1] and args[0] in (INTEGER, DURATION):
        return Signature(args, args[0])
    if len(args) == 2 and all(a in (INTEGER, NUMBER) for a in args):
        return Signature((NUMBER, NUMBER), NUMBER)
    return f"expected two numbers, integers or durations, got {_spoken(args)}"


def same_sign(args: tuple[Type, ...]) -> Signature | str:
    """Unary functions that keep the type of a quantity: `neg`, `abs`."""
    if len(args) == 1 and (args[0].is_numeric or args[0] == DURATION):
        return Signature(args, args[0])
    return f"expected a number, an integer or a duration, got {_spoken(args)}"


def rounding(args: tuple[Type, ...]) -> Signature | str:
    if len(args) == 1 and args[0].is_numeric:
        return Signature((_as_number(args[0]),), _as_number(args[0]))
    return f"expected a number, got {_spoken(args)}"


def root(args: tuple[Type, ...]) -> Signature | str:
    if len(args) != 1 or not args[0].is_numeric:
        return f"expected a number, got {_spoken(args)}"
    powers = args[0].dimension.powers
    if any(power % 2 for _, power in powers):
        return f"cannot take the square root of a {args[0].dimension}"
    dimension = Dimension(tuple((base, power // 2) for base, power in powers))
    return Signature((_as_number(args[0]),), Type(Kind.NUMBER, dimension))


def _unified(args: tuple[Type, ...]) -> Type | str:
    """The one type all arguments can have."""
    kinds = {a.kind for a in args}
    dimensions = {a.dimension for a in args}
    if len(dimensions) > 1 and all(a.is_numeric for a in args):
        first, other = args[0], next(a for a in args if a.dimension != args[0].dimension)
        return _dimension_clash("compare", first, other)
    if len(kinds) == 1:
        return args[0]
    if kinds == {Kind.NUMBER, Kind.INTEGER}:
        return _as_number(args[0])
    return f"expected values of one type, got {_spoken(tuple(dict.fromkeys(args)))}"


def comparison(args: tuple[Type, ...]) -> Signature | str:
    if len(args) != 2:
        return f"expected two arguments, got {len(args)}"
    unified = _unified(args)
    if isinstance(unified, str):
        return unified if "cannot" in unified else f"cannot compare {_spoken(args)}"
    return Signature((unified, unified), BOOLEAN)


def same_type(least: int) -> Rule:
    """`coalesce`, `least`, `greatest`: any number of values of one type."""

    def rule(args: tuple[Type, ...]) -> Signature | str:
        if len(args) < least:
            return f"expected at least {least} arguments, got {len(args)}"
        unified = _unified(args)
        return unified if isinstance(unified, str) else Signature((unified,) * len(args), unified)

    return rule


def conditional(args: tuple[Type, ...]) -> Signature | str:
    if len(args) != 3:
        return f"expected a condition and two values, got {len(args)} arguments"
    if args[0] != BOOLEAN:
        return f"expected a boolean condition, got {_spoken(args[:1])}"
    unified = _unified(args[1:])
    return unified if isinstance(unified, str) else Signature((BOOLEAN, unified, unified), unified)


def any_type(result: Type) -> Rule:
    def rule(args: tuple[Type, ...]) -> Signature | str:
        if len(args) == 1:
            return Signature(args, result)
        return f"expected one argument, got {len(args)}"

    return rule


def cast(result: Type, accepted: frozenset[Kind]) -> Rule:
    def rule(args: tuple[Type, ...]) -> Signature | str:
        if len(args) != 1:
            return f"expected one argument, got {len(args)}"
        if args[0].kind not in accepted:
            return f"cannot convert {_spoken(args)} to {result}"
        if result == NUMBER and args[0].kind is Kind.INTEGER:
            return Signature(args, _as_number(args[0]))
        return Signature(args, result)

    return rule


def concatenation(args: tuple[Type, ...]) -> Signature | str:
    if len(args) == 2 and all(a == TEXT for a in args):
        return Signature(args, TEXT)
    message = f"expected two texts, got {_spoken(args)}"
    return message + "; text(x) makes one of another value" * (TEXT in args)


def like(args: tuple[Type, ...]) -> Signature | str:
    if len(args) in (2, 3) and set(args) == {TEXT}:
        return Signature(args, BOOLEAN)
    return f"expected a text, a pattern and an optional escape, got {_spoken(args)}"


def substring(args: tuple[Type, ...]) -> Signature | str:
    wanted = (TEXT, INTEGER, INTEGER)[: len(args)]
    if len(args) in (2, 3) and args == wanted:
        return Signature(args, TEXT)
    return f"expected a text, a start from 1 and an optional length, got {_spoken(args)}"
