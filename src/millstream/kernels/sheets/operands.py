"""What generated code for a sheet works with: typed operands, and lines."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from millstream.values.excel.kinds import Kind, Kinds
from millstream.values.excel.syntax import Group, Literal, Node, Unary
from millstream.values.excel.values import CALC, ERRORS, ErrorValue, Scalar

#: Statuses. ZERO is the number 0 in a cell of texts or booleans, shown for an empty one.
OK, ABSENT, EMPTY, ZERO, FIRST_ERROR = 0, 1, 2, 3, 10
#: Where a cell may hold several kinds: a text and a boolean; a number is OK.
TEXT_HELD, BOOLEAN_HELD = 4, 5
#: No value, and nobody has said yet which error it is.
UNTOLD = 9
#: The errors, in the order of their statuses.
ERROR_VALUES = (*ERRORS, CALC)


class NotCompiled(Exception):
    """A sheet does something that has no compiled form; the message says what."""

    #: The cell whose formula it is, if one alone is to blame: worksheet, row and column.
    address: tuple[str, int, int] | None = None


def refuse_if(is_so: object, what: str) -> None:
    """What is so has no compiled form."""
    if is_so:
        raise NotCompiled(what)


@dataclass(frozen=True, slots=True)
class Operand:
    """A static kind, and the names of a value and of its status.

    `is_reference`: aggregates pass over what is empty. `is_left_out`: an argument that was
    not written, or an empty constant; it is like whatever the other side is.
    """

    kind: Kind
    value: str
    status: str = "0"
    is_reference: bool = False
    is_left_out: bool = False
    #: A text or boolean that may be the zero that an empty cell is shown as.
    shows_zero: bool = False
    may_be_empty: bool = True

    @property
    def is_sure(self) -> bool:
        """Never an error, never empty."""
        return self.status == "0"


@dataclass
class Texts:
    """Mutable: the dictionary of texts; number 0 is the empty text."""

    texts: list[str] = field(default_factory=lambda: [""])
    numbers: dict[str, int] = field(default_factory=lambda: {"": 0})

    def number(self, text: str) -> int:
        number = self.numbers.get(text)
        if number is None:
            number = self.numbers[text] = len(self.texts)
            self.texts.append(text)
        return number


@dataclass
class Lines:
    """Mutable: the statements of a path while it is generated."""

    prefix: str = "C"
    lines: list[str] = field(default_factory=list)
    depth: int = 0
    count: int = 0
    used: set[str] = field(default_factory=set)
    constants: dict[tuple[float, ...], str] = field(default_factory=dict)
    #: Where calls were written, with the names of what they give.
    calls: dict[str, tuple[int, str, tuple[str, str]]] = field(default_factory=dict)

    def add(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)

    def fresh(self) -> tuple[str, str]:
        """Names that no other form has in the same loop.

        Numba goes through the whole loop for every name that is assigned to at two places.
        """
        self.count += 1
        form = self.prefix.removesuffix("C").lower()
        return f"v{self.count}{form}", f"s{self.count}{form}"

    def call(self, kind: Kind, function: str, *arguments: str) -> Operand:
        """A call of a function of `scalar_sheet` that gives a value and a status."""
        self.used.add(function)
        value, status = self.made(f"{function}({', '.join(arguments)})")
        return Operand(kind, value, status, may_be_empty=False)

    def made(self, call: str) -> tuple[str, str]:
        """The value and the status that a call gives, which is written once for all who want it.

        Names are given once, and windows have moved on before anybody looks at them: so the same
        call gives the same.
        """
        return self._named(call, "{}, {} = {}")

    def once(self, expression: str) -> str:
        """The same of an expression that is a value alone."""
        return self._named(expression, "{0} = {2}")[0]

    def _named(self, text: str, line: str) -> tuple[str, str]:
        known = self.calls.get(text)
        if known is not None and self._is_at_hand(*known[:2]):
            return known[2]
        names = self.fresh()
        self.add(line.format(*names, text))
        self.calls[text] = len(self.lines) - 1, self.lines[-1], names
        return names

    def _is_at_hand(self, place: int, line: str) -> bool:
        """Is a line still where it was, and has its block not ended since?"""
        if place >= len(self.lines) or self.lines[place] is not line:
            return False
        depth = _indent(line)
        since = (_indent(later) for later in self.lines[place + 1 :])
        return len("    ") * self.depth >= depth and all(later >= depth for later in since)

    def array(self, values: tuple[float, ...]) -> str:
        """The name of an array of constants."""
        return self.constants.setdefault(values, f"{self.prefix}{len(self.constants)}")


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def written_number(node: Node) -> float | None:
    """The number that is written there, also a negative one; None if there is none."""
    match node:
        case Group(inner):
            return written_number(inner)
        case Literal(value) if type(value) is float:
            return value
        case Unary("-", operand):
            number = written_number(operand)
            return None if number is None else 0.0 - number  # there is no minus zero
        case _:
            return None


def held_as(kinds: Kinds) -> Kind:
    """How a loop holds what can be of these kinds, errors and emptiness aside."""
    plain = kinds - {Kind.ERROR, Kind.EMPTY}
    if len(plain) > 1:
        return Kind.MIXED
    return next(iter(plain)) if plain else Kind.NUMBER


def as_mixed(constant: Operand) -> Operand:
    """A constant where several kinds may be."""
    status = _HELD.get(constant.kind, OK) if constant.is_sure else int(constant.status)
    return replace(constant, kind=Kind.MIXED, status=str(status))


def held_constant(value: Scalar, kind: Kind, texts: Texts) -> Operand:
    """A constant as a cell of a kind holds it."""
    plain = constant(value, texts)
    return as_mixed(plain) if kind is Kind.MIXED else plain


_HELD = {Kind.TEXT: TEXT_HELD, Kind.BOOLEAN: BOOLEAN_HELD}


def pair(operand: Operand) -> tuple[str, str]:
    return operand.value, operand.status


def constant(value: Scalar, texts: Texts) -> Operand:
    if value is None:
        return Operand(Kind.NUMBER, "0.0", str(EMPTY), is_left_out=True)
    if type(value) is ErrorValue:
        refuse_if(value not in ERROR_VALUES, f"the error {value}")
        status = FIRST_ERROR + ERROR_VALUES.index(value)
        return Operand(Kind.NUMBER, "0.0", str(status), is_left_out=True)
    if type(value) is float:
        return Operand(Kind.NUMBER, repr(value))
    if type(value) is bool:
        return Operand(Kind.BOOLEAN, "1.0" if value else "0.0")
    return Operand(Kind.TEXT, f"{texts.number(str(value))}.0")
