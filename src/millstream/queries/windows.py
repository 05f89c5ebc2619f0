"""Windows: what stands in brackets after a stream."""

from __future__ import annotations

from dataclasses import replace

from millstream.queries.ast import Reference, Window
from millstream.queries.tokens import Cursor, Stop

USAGE = (
    "windows are: [Now], [Range 5 Minutes], [Range 5 Minutes Slide 1 Minute], "
    "[Range Unbounded], [Rows 10], [Partition By a, b Rows 10], "
    "[Partition By a Rows 10 Range 5 Minutes]"
)


def read_window(cursor: Cursor) -> Window | None:
    """The window that comes next, if one does; a faulty one stands for an unbounded one."""
    if cursor.text() != "[":
        return None
    start = cursor.next().span
    coming = [cursor.text(n) for n in range(len(cursor.tokens) - cursor.at)]
    if "]" not in coming:
        cursor.fail("this bracket is never closed", start)
    end = cursor.at + coming.index("]") + 1
    try:
        window = _inside(cursor)
        if cursor.at < end - 1:
            cursor.expected("]", USAGE)
    except Stop:
        window = Window()  # its fault is noted; the rest of the statement is read too
    cursor.at = end
    if cursor.text() == "[":
        hint = "for a window on what comes to another: (SELECT Istream(*) FROM s [Now]) [Rows 2]"
        cursor.fail("a stream has one window, but here is a second one", hint=hint)
    return replace(window, span=cursor.since(start))


def _inside(cursor: Cursor) -> Window:
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


def _partition(cursor: Cursor) -> tuple[Reference, ...]:
    if not cursor.take("partition", "by"):
        return ()
    return cursor.separated(lambda: _column(cursor))


def _column(cursor: Cursor) -> Reference:
    """A column, perhaps after the name of the stream."""
    word = cursor.word("a column")
    if not cursor.take("."):
        return Reference(None, word, word.span)
    name = cursor.word("a column")
    return Reference(word, name, word.span.to(name.span))
