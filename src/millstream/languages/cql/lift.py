"""Window brackets: taken out of the tokens, so that a stock SQL parser can read the rest.

A bracket stands after the name of a stream or after a closing parenthesis. It is found
again by the place of what it stands after.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import TokenType

from millstream.errors import Fault
from millstream.languages.cql.ast import Window, Word
from millstream.languages.cql.tokens import Cursor, Stop, Token, span_of_token
from millstream.source import Source

USAGE = (
    "windows are: [Now], [Range 5 Minutes], [Range 5 Minutes Slide 1 Minute], "
    "[Range Unbounded], [Rows 10], [Partition By a, b Rows 10], "
    "[Partition By a Rows 10 Range 5 Minutes]"
)


@dataclass(frozen=True, slots=True)
class Lifted:
    """Tokens without brackets, and windows by the last character they stand after.

    `after_name` is keyed by the end of a name, `after_query` by where the parentheses
    before the bracket begin and end.
    """

    tokens: tuple[Token, ...]
    after_name: Mapping[int, Window]
    after_query: Mapping[tuple[int, int], Window]


def lift_windows(source: Source, tokens: Sequence[Token], faults: list[Fault]) -> Lifted:
    """Take all brackets out; a bracket that is no window is a fault."""
    kept: list[Token] = []
    after_name: dict[int, Window] = {}
    after_query: dict[tuple[int, int], Window] = {}
    open_parens: list[Token] = []
    closed: dict[int, int] = {}
    at = 0
    while at < len(tokens):
        token = tokens[at]
        if token.token_type is TokenType.L_PAREN:
            open_parens.append(token)
        elif token.token_type is TokenType.R_PAREN and open_parens:
            closed[token.start] = open_parens.pop().start
        if token.token_type is not TokenType.L_BRACKET:
            kept.append(token)
            at += 1
            continue
        end = _closing(tokens, at)
        if end is None:
            faults.append(Fault("this bracket is never closed", span_of_token(source, token)))
            raise Stop
        window = _window(source, tokens[at : end + 1], faults)
        if kept and kept[-1].start in closed:
            after_query[closed[kept[-1].start], kept[-1].end] = window
        elif kept:
            after_name[kept[-1].end] = window
        else:
            faults.append(Fault("a window stands after a stream", window.span))
        at = end + 1
    return Lifted(tuple(kept), after_name, after_query)


def _closing(tokens: Sequence[Token], start: int) -> int | None:
    return next(
        (n for n in range(start + 1, len(tokens)) if tokens[n].token_type is TokenType.R_BRACKET),
        None,
    )


def _window(source: Source, tokens: Sequence[Token], faults: list[Fault]) -> Window:
    """The window of a bracket; a faulty one stands for an unbounded one."""
    span = span_of_token(source, tokens[0]).to(span_of_token(source, tokens[-1]))
    cursor = Cursor(source, tokens[1:-1], faults)
    try:
        window = _read(cursor)
        if not cursor.is_done:
            cursor.expected("]", USAGE)
    except Stop:
        window = Window()
    return Window(window.length, window.slide, window.rows, window.by, window.is_now, span)


def _read(cursor: Cursor) -> Window:
    if cursor.take("now"):
        return Window(is_now=True)
    if cursor.take("unbounded"):
        return Window()
    if cursor.take("range"):
        length = None if cursor.take("unbounded") else cursor.duration("the range of a window")
        return Window(length, _slide(cursor))
    by = _partition(cursor)
    if not cursor.take("rows"):
        cursor.expected("Rows" if by else "a window", USAGE)
    span = cursor.span()
    count = cursor.number("a number of rows")
    if count < 1 or count != int(count):
        cursor.fail("a window of rows needs at least one whole row", span)
    length = None
    if by and cursor.take("range") and not cursor.take("unbounded"):
        length = cursor.duration("the range of a window")
    return Window(length, None, int(count), by)


def _slide(cursor: Cursor) -> int | None:
    if not cursor.take("slide"):
        return None
    span = cursor.span()
    slide = cursor.duration("the slide of a window")
    if slide < 1:
        cursor.fail("a slide must be longer than nothing", span)
    return slide


def _partition(cursor: Cursor) -> tuple[Word, ...]:
    # The tokenizer makes one token of the two words.
    if not (cursor.take("partition by") or cursor.take("partition", "by")):
        return ()
    return cursor.words("a column")
