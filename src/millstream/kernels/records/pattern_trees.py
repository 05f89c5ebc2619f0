"""Regular expressions as trees, of those that a machine without memory of its own can run.

Only texts of ASCII are matched by what is made of these trees. What is not read here (references
back, looking around, atomic groups, classes by name beyond ASCII, repetitions of what may be
empty) is left to the libraries: `tree` gives None.
"""

from __future__ import annotations

from dataclasses import dataclass

_MOST_REPEATS = 200
_DIGIT = frozenset(range(48, 58))
#: The characters of `\w`.
WORD = _DIGIT | set(range(65, 91)) | set(range(97, 123)) | {95}
_SPACE = frozenset(b" \t\n\v\f\r")
#: Stands in sets for every character beyond ASCII.
BEYOND = 128
_ALL = frozenset(range(BEYOND + 1))
_CLASSES = {"d": _DIGIT, "w": WORD, "s": _SPACE, "h": frozenset(b" \t")}
_POSIX = {
    "alpha": frozenset(range(65, 91)) | frozenset(range(97, 123)), "digit": _DIGIT,
    "alnum": WORD - {95}, "word": WORD, "space": _SPACE,
    "upper": frozenset(range(65, 91)), "lower": frozenset(range(97, 123)),
    "xdigit": _DIGIT | frozenset(b"abcdefABCDEF"), "blank": frozenset(b" \t"),
    "cntrl": frozenset(range(32)) | {127}, "graph": frozenset(range(33, 127)),
    "print": frozenset(range(32, 127)),
    "punct": frozenset(c for c in range(33, 127) if c not in WORD or c == 95),
}  # fmt: skip
_ESCAPES = {"n": 10, "t": 9, "r": 13, "f": 12, "a": 7, "e": 27}


@dataclass(frozen=True, slots=True)
class One:
    """One character of a set."""

    of: frozenset[int]


@dataclass(frozen=True, slots=True)
class Here:
    """A place: `^`, `$`, `A`, `z`, `Z`, `b` or `B`."""

    kind: str


@dataclass(frozen=True, slots=True)
class All:
    parts: tuple[Tree, ...]


@dataclass(frozen=True, slots=True)
class Either:
    parts: tuple[Tree, ...]


@dataclass(frozen=True, slots=True)
class Group:
    number: int
    inner: Tree


@dataclass(frozen=True, slots=True)
class Repeat:
    inner: Tree
    least: int
    most: int | None
    is_greedy: bool


Tree = One | Here | All | Either | Group | Repeat


class _Unread(Exception):
    """The pattern has something that is not read here."""


def tree(pattern: str) -> tuple[Tree, int] | None:
    """A tree and the number of its groups, or None."""
    if not pattern.isascii():
        return None
    reader = _Reader(pattern)
    try:
        found = reader.either()
        if reader.at < len(pattern):
            return None
    except _Unread:
        return None
    return found, reader.groups


class _Reader:
    """Mutable: reads a pattern from left to right."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.at = 0
        self.groups = 0
        self.any_case = self.dot_all = False

    def next(self) -> str:
        return self.pattern[self.at : self.at + 1]

    def take(self) -> str:
        c = self.next()
        if not c:
            raise _Unread
        self.at += 1
        return c

    def accept(self, text: str) -> bool:
        if self.pattern.startswith(text, self.at):
            self.at += len(text)
            return True
        return False

    def either(self) -> Tree:
        parts = [self.all()]
        while self.accept("|"):
            parts.append(self.all())
        return parts[0] if len(parts) == 1 else Either(tuple(parts))

    def all(self) -> Tree:
        parts: list[Tree] = []
        while self.next() and self.next() not in "|)":
            part = self.part()
            if part is not None:
                parts.append(self.repeated(part))
        return parts[0] if len(parts) == 1 else All(tuple(parts))

    def part(self) -> Tree | None:
        c = self.take()
        match c:
            case "(":
                return self.group()
            case "[":
                return One(self.cased(self.set()))
            case ".":
                return One(_ALL if self.dot_all else _ALL - {10})
            case "^" | "$":
                return Here(c)
            case "\\":
                return self.escape()
            case "*" | "+" | "?":
                raise _Unread
            case "{" if self.count() is not None:
                raise _Unread
        return One(self.cased(frozenset({ord(c)})))

    def cased(self, of: frozenset[int]) -> frozenset[int]:
        if not self.any_case:
            return of
        return of | {ord(chr(c).swapcase()) for c in of}

    def group(self) -> Tree | None:
        if self.accept("?:"):
            return self.closed(None)
        if self.accept("?"):
            if self.accept("P<") or (self.next() == "<" and self.pattern[self.at + 1] not in "=!"):
                name_end = self.pattern.find(">", self.at)
                if name_end < 0:
                    raise _Unread
                self.at = name_end + 1
                return self.named()
            self.flags()
            return None
        if self.next() == "*":
            raise _Unread
        return self.named()

    def named(self) -> Tree:
        self.groups += 1
        return self.closed(self.groups)

    def closed(self, number: int | None) -> Tree:
        before = self.any_case, self.dot_all
        inner = self.either()
        self.any_case, self.dot_all = before
        if not self.accept(")"):
            raise _Unread
        return inner if number is None else Group(number, inner)

    def flags(self) -> None:
        """`(?i)` and `(?s)`, at the beginning only."""
        start = self.at
        while self.next() in ("i", "s"):
            self.any_case |= self.next() == "i"
            self.dot_all |= self.next() == "s"
            self.at += 1
        if start != 2 or not self.accept(")"):
            raise _Unread

    def escape(self) -> Tree:
        c = self.take()
        if c in "AzZbB":
            return Here(c)
        return One(self.cased(self.escaped(c)))

    def escaped(self, c: str) -> frozenset[int]:
        if c.lower() in _CLASSES and c.lower() != "h":
            return _CLASSES[c.lower()] if c.islower() else _ALL - _CLASSES[c.lower()]
        if c in _ESCAPES:
            return frozenset({_ESCAPES[c]})
        if c == "x":
            digits = self.pattern[self.at : self.at + 2]
            if len(digits) == 2 and all(d in "0123456789abcdefABCDEF" for d in digits):
                self.at += 2
                code = int(digits, 16)
                if code < 128:
                    return frozenset({code})
            raise _Unread
        if c.isalnum():
            raise _Unread
        return frozenset({ord(c)})

    def set(self) -> frozenset[int]:
        is_negated = self.accept("^")
        of: set[int] = set()
        first = True
        while first or self.next() != "]":
            first = False
            of |= self.span()
        self.at += 1
        return _ALL - self.cased(frozenset(of)) if is_negated else frozenset(of)

    def span(self) -> frozenset[int]:
        if self.accept("[:"):
            end = self.pattern.find(":]", self.at)
            name = self.pattern[self.at : end]
            if end < 0 or name not in _POSIX:
                raise _Unread
            self.at = end + 2
            return _POSIX[name]
        low = self.member()
        if self.next() == "-" and self.pattern[self.at + 1 : self.at + 2] not in ("]", ""):
            self.at += 1
            if self.next() == "[":
                raise _Unread
            high = self.member()
            if len(low) != 1 or len(high) != 1 or min(low) > min(high):
                raise _Unread
            return frozenset(range(min(low), min(high) + 1))
        return low

    def member(self) -> frozenset[int]:
        c = self.take()
        if c == "[" and self.next() in (".", "="):
            raise _Unread
        if c != "\\":
            return frozenset({ord(c)})
        c = self.take()
        return frozenset({8}) if c == "b" else self.escaped(c)

    def repeated(self, part: Tree) -> Tree:
        while self.next() in ("*", "+", "?", "{") and self.next():
            bounds = self.bounds()
            if bounds is None:
                return part
            if self.next() == "+":
                raise _Unread
            least, most = bounds
            if isinstance(part, Here) or can_be_empty(part):
                raise _Unread
            part = Repeat(part, least, most, not self.accept("?"))
            if self.next() in ("*", "+", "?"):
                raise _Unread
        return part

    def bounds(self) -> tuple[int, int | None] | None:
        match self.next():
            case "*":
                self.at += 1
                return 0, None
            case "+":
                self.at += 1
                return 1, None
            case "?":
                self.at += 1
                return 0, 1
        self.at += 1
        found = self.count()
        if found is None:
            self.at -= 1
            raise _Unread
        least, most, self.at = found
        if max(least, most or 0) > _MOST_REPEATS or (most is not None and most < least):
            raise _Unread
        return least, most

    def count(self) -> tuple[int, int | None, int] | None:
        """What stands in braces from here on, and the place behind them."""
        end = self.pattern.find("}", self.at)
        low, comma, high = self.pattern[self.at : end].partition(",") if end >= 0 else ("", "", "")
        if not low.isdigit() or (high and not high.isdigit()) or len(low) > 4 or len(high) > 4:
            return None
        most = int(low) if not comma else int(high) if high else None
        return int(low), most, end + 1


def can_be_empty(part: Tree) -> bool:
    match part:
        case One():
            return False
        case Here():
            return True
        case All(parts):
            return all(map(can_be_empty, parts))
        case Either(parts):
            return any(map(can_be_empty, parts))
        case Group(_, inner):
            return can_be_empty(inner)
        case Repeat(inner, least):
            return least == 0 or can_be_empty(inner)
