"""The plain form of a path: what a tuple runs when nothing is strange.

Most tuples meet no error, no empty cell and no infinite number. For them numbers are computed
without statuses, and a few checks say afterwards whether that was right; if it was not, the
tuple is computed again by the careful statements. Infinities and NaN go through sums and
products, so they are looked for only where they could vanish: before comparisons, functions
and divisors, and in what a cell holds. Before values enter windows, which cannot be taken
back, all checks so far are made; the careful statements then leave out what was done.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import NoReturn

from millstream.kernels.sheets.aggregates import Surroundings
from millstream.kernels.sheets.called import Site
from millstream.kernels.sheets.formulas import Formulas
from millstream.kernels.sheets.formulas_folds import FOLDS
from millstream.kernels.sheets.operands import (
    EMPTY,
    NotCompiled,
    Operand,
)
from millstream.values.excel.kinds import Kind
from millstream.values.excel.rounding import last_same
from millstream.values.excel.syntax import Binary, Call, Group, Node, Unary

NUMBER = Kind.NUMBER
_PLAIN_OPERATORS = ("+", "-", "*", "/")
#: How numbers are compared beside a constant: it is known which are taken for it.
BESIDE = {
    "=": "({a} >= {low}) & ({a} <= {high})", "<>": "({a} < {low}) | ({a} > {high})",
    "<": "{a} < {low}", ">": "{a} > {high}", "<=": "{a} <= {high}", ">=": "{a} >= {low}",
}  # fmt: skip
_TURNED = {"=": "=", "<>": "<>", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
_EXACT = {"=": "==", "<>": "!=", "<": "<", ">": ">", "<=": "<=", ">=": ">="}


#: Functions of a finite number that give one.
_PLAIN_FUNCTIONS = {"ABS": "abs", "INT": "np.floor", "SIGN": "plain_sign"}
#: Of those that are called, the ones that are imported.
_IMPORTED = ("plain_modulo", "plain_sign")


class PlainFormulas(Formulas):
    """Generates statements without statuses, and the checks that must hold for them."""

    def __init__(self, around: Surroundings) -> None:
        super().__init__(around)
        #: Conditions for what was generated so far, and numbers that must be finite.
        self.checks: list[str] = []
        self.finite: list[str] = []
        #: Values that may be infinite or NaN.
        self.unchecked: set[str] = set()
        #: Those that were checked in any case.
        self.checked: set[str] = set()
        #: Values of which it is known: a sum of two of them is never next to nothing.
        self.never_negative: set[str] = set()
        #: How many conditions there are for what is generated now.
        self.depth = 0

    def root(self, node: Node) -> Operand:
        """The value of a cell, which may still be infinite or NaN."""
        result = self._loose(node)
        if isinstance(node, Binary) and node.operator in ("+", "-"):
            return self._or_zero(result, node.operator, *self._last)
        if result.is_sure or not result.may_be_empty:
            return replace(result, is_reference=False, may_be_empty=False)
        return self._without_status(super().root(node))

    def operand(self, node: Node) -> Operand:
        """A value that is sure, apart from constants that are empty or errors."""
        return self.sure(self._loose(node))

    def _without_status(self, operand: Operand) -> Operand:
        if operand.status.isdigit():
            return operand
        self.checks.append(f"({operand.status} == 0)")
        return replace(operand, status="0", may_be_empty=False)

    def sure(self, operand: Operand) -> Operand:
        """What must be finite from here on."""
        if operand.value in self.unchecked and operand.value not in self.checked:
            self.finite.append(operand.value)
            if not self.depth:
                self.checked.add(operand.value)
        return operand

    def settled(self, operand: Operand) -> Operand:
        """What is kept or leaves: finite, and zero without a sign."""
        self.sure(operand)
        if operand.value not in self.unchecked:
            return operand
        return replace(operand, value=self.lines.once(f"{operand.value} + 0.0"))

    def taken_checks(self) -> str:
        """All conditions so far as one; from here on there are none. Empty if there were none."""
        if self.finite:
            total = "0.0"
            for value in self.finite:
                total = f"nothing_of({value}, {total})"
            self.lines.used.add("nothing_of")
            self.checks.append(f"({total} < 1.0)")
        taken = " & ".join(self.checks)
        self.checks, self.finite = [], []
        return taken

    def apart(self, make: Callable[[], Operand]) -> tuple[Operand, str]:
        """Something with its own conditions."""
        outer = self.checks, self.finite
        self.checks, self.finite = [], []
        self.depth += 1
        made = make()
        self.depth -= 1
        taken = self.taken_checks()
        self.checks, self.finite = outer
        return made, taken

    def _loose(self, node: Node) -> Operand:
        """The same, but what arithmetic gives may still be infinite or NaN."""
        if self.around.site(node) is not None:
            give_up()
        match node:
            case Group(inner):
                return self._loose(inner)
            case Unary("-", inner):
                a = self.number(self._loose(inner))
                if not _is_number(a):
                    give_up()
                return self._computed(f"-{a.value}")
            case Binary(operator, left, right) if operator in _PLAIN_OPERATORS:
                return self._arithmetic(operator, left, right)
            case Call(function, arguments) if function in FOLDS or function == "IF":
                return self._without_status(self._call(function, arguments))
            case _:
                return self._without_status(super().operand(node))

    def _computed(self, expression: str) -> Operand:
        value = self.lines.once(expression)
        self.unchecked.add(value)
        return Operand(NUMBER, value, may_be_empty=False)

    def _arithmetic(self, operator: str, left: Node, right: Node) -> Operand:
        a, b = self.number(self._loose(left)), self.number(self._loose(right))
        if not (_is_number(a) and _is_number(b)) or (operator == "/" and _is_zero(b)):
            give_up()
        if operator == "/":
            # Dividing by zero gives no finite number, and is seen by that.
            b = self.sure(b)
        result = self._computed(f"{a.value} {operator} {b.value}")
        if self._is_never_negative(operator, a, b):
            self.never_negative.add(result.value)
        self._last = a, b
        return result

    def _is_never_negative(self, operator: str, a: Operand, b: Operand) -> bool:
        if operator == "*" and a.value == b.value:
            return True
        sides = (
            float(o.value) >= 0.0 if _is_written(o) else o.value in self.never_negative
            for o in (a, b)
        )
        return operator != "-" and all(sides)

    def _or_zero(self, total: Operand, operator: str, a: Operand, b: Operand) -> Operand:
        """The sum of two numbers: zero, if next to nothing is left of them."""
        if total.value in self.never_negative:
            return total
        least = None
        if _is_written(a):
            least = 2.0**-50 * abs(float(a.value))
        elif _is_written(b):
            least = least_left(float(b.value) if operator == "+" else -float(b.value))
        if least is not None:
            self.lines.used.add("or_zero_below")
            return self._computed(f"or_zero_below({total.value}, {least!r})")
        self.lines.used.add("or_zero")
        return self._computed(f"or_zero({total.value}, {a.value})")

    # --- comparisons and choices ---

    def compared(self, kind: Kind, operator: str, a: Operand, b: Operand) -> Operand:
        if not (_is_number(a) and _is_number(b)):
            give_up()
        if kind is NUMBER and _is_written(a) and not _is_written(b):
            a, b, operator = b, a, _TURNED[operator]
        if kind is NUMBER and not (_is_zero(a) or _is_zero(b)):
            test = self._compared_nearly(operator, a, b)
        else:
            # Beside zero nothing is next to anything else.
            x, y = (self._folded(a), self._folded(b)) if kind is Kind.TEXT else (a.value, b.value)
            test = f"{x} {_EXACT[operator]} {y}"
        value, _ = self.lines.fresh()
        self.lines.used.add("pick")
        self.lines.add(f"{value} = pick({test}, 1.0, 0.0)")
        return Operand(Kind.BOOLEAN, value, may_be_empty=False)

    def compared_as_they_are(self, operator: str, a: Operand, b: Operand) -> Operand:
        """What is sure is never an empty cell shown as zero."""
        if a.kind is not b.kind or a.kind is Kind.MIXED:
            give_up()
        return self.compared(a.kind, operator, a, b)

    def as_mixed(self, operand: Operand) -> Operand:
        give_up()

    def called_operand(self, site: Site) -> Operand:
        give_up()

    def told(self, made: Operand, function: str, arguments: tuple[Node, ...]) -> Operand:
        """Where there is no value the status is no zero, which is all that matters here."""
        return made

    def _compared_nearly(self, operator: str, a: Operand, b: Operand) -> str:
        if _is_written(b) and not _is_written(a):
            low, high = (last_same(float(b.value), way) for way in (-1.0, 1.0))
            return BESIDE[operator].format(a=a.value, low=repr(low), high=repr(high))
        # Numbers next to each other, of which the digits decide, are left to careful statements.
        self.lines.used.add("is_clear")
        self.checks.append(f"is_clear({a.value}, {b.value})")
        return f"{a.value} {_EXACT[operator]} {b.value}"

    def scan(self, function: str, arguments: tuple[Node, ...]) -> Operand:
        return self._not_called(lambda: super(PlainFormulas, self).scan(function, arguments))

    def of_areas(self, function: str, arguments: tuple[Node, ...]) -> Operand:
        return self._not_called(lambda: super(PlainFormulas, self).of_areas(function, arguments))

    def of_filtered(self, function: str, arguments: tuple[Node, ...]) -> Operand:
        return self._not_called(lambda: super(PlainFormulas, self).of_filtered(function, arguments))

    def of_steps(self, function: str, arguments: tuple[Node, ...]) -> Operand:
        return self._not_called(lambda: super(PlainFormulas, self).of_steps(function, arguments))

    def _not_called(self, make: Callable[[], Operand]) -> Operand:
        """Each of the values has its status, as in careful statements."""
        called = self.called
        made = make()
        if self.called > called:
            give_up()
        return made

    def _call(self, function: str, arguments: tuple[Node, ...]) -> Operand:
        if function == "IF":
            return self.if_(arguments)
        if function in _PLAIN_FUNCTIONS and len(arguments) == 1:
            x = self.number(self.operand(arguments[0]))
            if _is_number(x):
                if function == "INT":
                    self.lines.used.add("is_clear")
                    self.checks.append(f"is_clear({x.value}, np.rint({x.value}))")
                return self._made(f"{_PLAIN_FUNCTIONS[function]}({x.value})")
        if function == "MOD" and len(arguments) == 2:
            x, d = (self.number(self.operand(n)) for n in arguments)
            if _is_number(x) and _is_written(d) and not _is_zero(d):
                self.checks.append(f"(abs({x.value} / {d.value}) <= 1.125e15)")
                return self._made(f"plain_modulo({x.value}, {d.value})")
        return super()._call(function, arguments)

    def _made(self, expression: str) -> Operand:
        """What a function makes of finite numbers, which is finite."""
        self.lines.used.update(name for name in _IMPORTED if expression.startswith(name))
        return Operand(NUMBER, self.lines.once(f"{expression} + 0.0"), may_be_empty=False)

    def _rounded(self, function: str, number: Node, places: float) -> Operand:
        x = self.number(self.operand(number))
        if function != "rounded_at" or not _is_number(x) or abs(places) > 300:
            return super()._rounded(function, number, places)
        # Rounding what is nearly the largest number gives an infinity.
        scale = 10.0 ** abs(int(places))
        self.lines.used.add("plain_rounded")
        return self._computed(f"plain_rounded({x.value}, {scale!r}, {int(places) >= 0})")

    def choice(self, condition: Operand, then: Operand, other: Operand) -> Operand:
        if not (condition.is_sure and then.is_sure and other.is_sure):
            return super().choice(condition, then, other)
        value, _ = self.lines.fresh()
        self.lines.used.add("pick")
        self.lines.add(f"{value} = pick({condition.value} != 0.0, {then.value}, {other.value})")
        if {then.value, other.value} & self.unchecked:
            self.unchecked.add(value)
        return Operand(then.kind, value, may_be_empty=False)

    def side(self, node: Node) -> Operand:
        return self._loose(node)

    def branch(self, condition: Operand, test: str, make: Callable[[], Operand]) -> Operand:
        """One side of IF: its checks matter only if it is taken."""
        made, checks = self.apart(make)
        if checks:
            self.checks.append(f"(({checks}) | ({condition.value} {test}))")
        return made

    # --- many values, tables ---

    def _fold(self, function: str, arguments: tuple[Node, ...]) -> Operand:
        operands = [o for o in self._values(arguments) if self._counts(function, o)]
        if function in ("COUNT", "COUNTA"):
            return Operand(NUMBER, f"{len(operands)}.0", may_be_empty=False)
        if not operands:
            give_up()
        self.lines.used.add("pick")
        total, _ = self.lines.fresh()
        is_truth = function in ("AND", "OR")
        rest = operands if is_truth else operands[1:]
        self.lines.add(f"{total} = {FOLDS[function][0] if is_truth else operands[0].value}")
        for operand in rest:
            self.lines.add(_STEPS[function].format(t=total, v=operand.value))
        if is_truth:
            return Operand(Kind.BOOLEAN, total, may_be_empty=False)
        if function in ("MAX", "MIN"):
            return Operand(NUMBER, total, may_be_empty=False)
        return self._computed(f"{total} / {len(operands)}.0" if function == "AVERAGE" else total)

    def _counts(self, function: str, operand: Operand) -> bool:
        if not _is_number(operand):
            give_up()
        is_empty = not operand.is_sure
        if not operand.is_reference:
            return not (is_empty and function == "PRODUCT")
        if function == "COUNTA":
            return not is_empty
        kinds = (NUMBER, Kind.BOOLEAN) if function in ("AND", "OR") else (NUMBER,)
        return not is_empty and operand.kind in kinds

    def search(self, keys: tuple[float, ...]) -> str:
        return "place_among" if list(keys) == sorted(keys) else super().search(keys)


_STEPS = {
    "SUM": "{t} = {t} + {v}", "AVERAGE": "{t} = {t} + {v}", "PRODUCT": "{t} = {t} * {v}",
    "MAX": "{t} = pick({v} > {t}, {v}, {t})", "MIN": "{t} = pick({v} < {t}, {v}, {t})",
    "AND": "{t} = pick({v} != 0.0, {t}, 0.0)", "OR": "{t} = pick({v} != 0.0, 1.0, {t})",
}  # fmt: skip


def give_up() -> NoReturn:
    raise NotCompiled("a constant that is always an error has no plain form")


def _is_number(operand: Operand) -> bool:
    """Can it be taken as it is? An empty constant is a zero."""
    return operand.status in ("0", str(EMPTY))


def _is_written(operand: Operand) -> bool:
    return operand.value[0] in "-0123456789"


def _is_zero(operand: Operand) -> bool:
    return _is_written(operand) and float(operand.value) == 0.0


def least_left(constant: float) -> float | None:
    """What must be left of a number and a constant added to it, so that the sum is not zero.

    A sum is zero if it is less than 2**-50 of the number. That happens only beside the constant,
    where sums are exact, so that all of them can be looked at. None if it is not the same from
    both sides, or too small a number.
    """
    if not 1e-290 < abs(constant) < 1e290:
        return None if constant else 0.0
    zero, left = 0.0, math.inf
    for way in (math.inf, -math.inf):
        x = -constant
        for _ in range(32):
            x = math.nextafter(x, way)
            rest = abs(x + constant)
            if rest < 2.0**-50 * abs(x):
                zero = max(zero, rest)
            else:
                left = min(left, rest)
    return left if zero < left else None
