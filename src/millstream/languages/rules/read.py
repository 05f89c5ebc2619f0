"""From the lines of a rule file to its tree; all syntax errors at once.

A line is read on its own: an error in one leaves the others to be read. What a faulty
line would have defined is remembered, so that its uses are not called unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from millstream.errors import Fault, suggest
from millstream.languages.rules.ast import (
    Expression,
    Location,
    Named,
    Require,
    Rules,
    Statement,
    Text,
    When,
    Word,
    parts,
)
from millstream.languages.rules.tokens import (
    KEYWORDS,
    WORDS,
    Line,
    split_lines,
)
from millstream.languages.rules.words import Stop, Words
from millstream.source import Source, Span

#: What else people begin a line with, and what to write instead.
_BEGINNINGS = {
    "else": "write the opposite: when not CONDITION:",
    "elif": "write another block: when CONDITION:",
    "if": "write when CONDITION:",
    **dict.fromkeys(("and", "or"), "a line goes on after an operator: end the line above with it"),
}


@dataclass(frozen=True, slots=True)
class Read:
    """A tree, what it defines, and the names whose definitions could not be read."""

    rules: Rules
    lost: frozenset[str]
    definitions: tuple[Named, ...] = ()


def read_rules(
    source: Source,
    faults: list[Fault],
    names: Mapping[str, Named],
    taken: Mapping[str, str] = MappingProxyType({}),
) -> Read:
    """The tree of a text; `names` are those that the domain defines, `taken` its others."""
    reader = _Reader(split_lines(source, faults), faults, dict(names), taken)
    statements = reader.block(-1, top=True)
    rules = Rules(tuple(statements), reader.domain)
    return Read(rules, frozenset(reader.lost), tuple(reader.definitions))


def domain_named(source: Source) -> tuple[str, Span | None]:
    """The domain that a file says it is written for, before anything else is read."""
    for line in split_lines(source, []):
        match [t.value for t in line.tokens]:
            case ["domain", text] if line.tokens[1].kind == "text":
                return text[1:-1], line.tokens[1].span
    return Rules(()).domain, None


def read_expression(
    source: Source, faults: list[Fault], names: Mapping[str, Named]
) -> Expression | None:
    """A single expression, such as one in a domain file."""
    lines = split_lines(source, faults)
    if len(lines) != 1:
        faults.append(Fault("expected one expression", Span(source, 0, len(source.text))))
        return None
    try:
        words = Words(lines[0], faults, names)
        return words.whole()
    except Stop:
        return None


@dataclass
class _Reader:
    """Mutable: where we are among the lines, and what has been defined."""

    lines: list[Line]
    faults: list[Fault]
    names: dict[str, Named]
    #: What other names of the domain are.
    taken: Mapping[str, str]
    lost: set[str] = field(default_factory=set)
    definitions: list[Named] = field(default_factory=list)
    domain: str = Rules(()).domain
    at: int = 0

    def block(self, above: int, *, top: bool = False) -> list[Statement]:
        """The statements that are indented further than what is above them."""
        statements: list[Statement] = []
        if self.at >= len(self.lines):
            return statements
        indent = self.lines[self.at].indent
        if top and indent > 0:
            self.fail("this line is indented, but nothing above opens a block", self.lines[self.at])
        before = dict(self.names)
        while self.at < len(self.lines):
            line = self.lines[self.at]
            if line.indent <= above:
                break
            if line.indent != indent and not (top and indent > 0):
                self.misplaced(line, indent)
            self.at += 1
            statement = self.statement(line)
            statements += [statement] if statement is not None else []
        if not top:
            self.names = before  # what a block defines is known inside it only
        return statements

    def misplaced(self, line: Line, indent: int) -> None:
        if line.indent > indent:
            message = "this line is indented, but nothing above opens a block"
            self.fail(message, line, "a block follows a line that ends with a colon")
        else:
            self.fail("this indentation matches no block above", line)

    def fail(self, message: str, line: Line, hint: str | None = None) -> None:
        self.faults.append(Fault(message, line.span, hint))

    def statement(self, line: Line) -> Statement | None:
        words = Words(line, self.faults, self.names)
        first = line.tokens[0]
        try:
            match first.value:
                case "require":
                    words.advance()
                    return self.requirement(line, words)
                case "domain":
                    words.advance()
                    self.domain = words.text("the name of a domain, in quotes")
                    words.end()
                    return None
                case "when" | "location":
                    return self.compound(line, words)
                case _:
                    self.definition(words)
                    return None
        except Stop:
            if len(line.tokens) > 1 and line.tokens[1].value == "=":
                self.lost.add(first.value)
            if first.value in ("when", "location", *_BEGINNINGS):
                self.block(line.indent)  # its errors count too
            return None

    def requirement(self, line: Line, words: Words) -> Statement:
        condition = words.expression()
        message, severity = "", ""
        while word := words.accept("else", "as"):
            if word.value == "else":
                message = words.text("what to say, in quotes")
            else:
                severity = words.word("how severe it is, such as advice")
        words.end()
        return Require(condition, message, line.span, severity)

    def compound(self, line: Line, words: Words) -> Statement:
        word = words.advance()
        head: Expression | tuple[Text, ...]
        head = words.places() if word.value == "location" else words.expression()
        if not words.accept(":"):
            words.fail("expected a colon", words.here, f'write "{word.value} ...:"')
        span = word.span.to(words.previous)
        if words.token is not None:
            body = [s for s in (self.statement(words.rest()),) if s is not None]
        else:
            has_body = self.at < len(self.lines) and self.lines[self.at].indent > line.indent
            if not has_body:
                words.fail("expected an indented block after this line", span)
            body = self.block(line.indent)
        if isinstance(head, tuple):
            return Location(head, tuple(body), span)
        return When(head, tuple(body), span)

    def definition(self, words: Words) -> None:
        first = words.advance()
        is_name = first.kind == "name" and first.value not in WORDS
        if not is_name or words.token is None or words.token.value != "=":
            known = suggest(first.value, KEYWORDS) if is_name else None
            usual = "a line begins with require, when, location, or a name and ="
            hint = _BEGINNINGS.get(first.value) or known or usual
            words.fail(f"expected a statement, got {first}", first.span, hint)
        words.advance()
        value = words.whole()
        if first.value in self.taken:
            words.fail(f'"{first.value}" is {self.taken[first.value]}', first.span,
                       "choose another name")  # fmt: skip
        if first.value in self.names:
            words.fail(f'"{first.value}" is already defined', first.span)
        if Word(first.value) in parts(value):
            words.fail(f'the definition of "{first.value}" reads itself', first.span,
                       "give what it is made of another name")  # fmt: skip
        self.names[first.value] = Named(first.value, value, first.span)
        self.definitions.append(self.names[first.value])
