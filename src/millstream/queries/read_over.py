"""`OVER (PARTITION BY ... ORDER BY ... ROWS ...)`: from tokens to our tree."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from millstream.calculus.functions import Frame
from millstream.calculus.types import DURATION, INTEGER
from millstream.queries import ast
from millstream.queries.tokens import Cursor
from millstream.source import Span

#: Functions that only stand before OVER, and how many arguments they may have.
OF_PLACES: dict[str, tuple[int, int]] = {
    "row_number": (0, 0),
    "rank": (0, 0),
    "dense_rank": (0, 0),
    "percent_rank": (0, 0),
    "cume_dist": (0, 0),
    "ntile": (1, 1),
    "lag": (1, 3),
    "lead": (1, 3),
    "first_value": (1, 1),
    "last_value": (1, 1),
}
USAGE = "ROW_NUMBER() OVER (PARTITION BY symbol ORDER BY _time)"
_FRAME = "such as ROWS BETWEEN 2 PRECEDING AND CURRENT ROW"


@dataclass(frozen=True, slots=True)
class Specified:
    """What stands in the parentheses."""

    by: tuple[ast.Expression, ...]
    order: tuple[ast.Ordering, ...]
    frame: Frame


class OverReader:
    """Mutable: reads what stands behind OVER with a cursor."""

    def __init__(
        self,
        cursor: Cursor,
        term: Callable[[], ast.Expression],
        ordering: Callable[[], ast.Ordering],
    ) -> None:
        self.cursor = cursor
        self.term = term
        self.ordering = ordering
        #: The windows of a clause that has been read, for what follows it.
        self.known: dict[str, Specified] = {}

    def comes(self) -> bool:
        return self.cursor.text() == "over" and (
            self.cursor.text(1) == "(" or self.cursor.kind(1) in ("word", "quoted")
        )

    def placed(self, word: ast.Word, args: Sequence[ast.Expression], start: Span) -> ast.Expression:
        """A function of the place of a row, which has its arguments."""
        name = word.name.lower()
        least, most = OF_PLACES[name]
        if not least <= len(args) <= most:
            message = f"{word.name} is given {len(args)} argument{'s' * (len(args) != 1)}"
            self.cursor.fail(message, self.cursor.since(start))
        if not self.comes():
            self.cursor.fail(f"{word.name} needs OVER", self.cursor.since(start), f"write {USAGE}")
        return self.over(ast.Word(name, word.span), tuple(args), start)

    def over(
        self, function: ast.Word, args: tuple[ast.Expression, ...], start: Span,
        where: ast.Expression | None = None,
    ) -> ast.Over:  # fmt: skip
        self.cursor.next()
        given = self.specified() if self.cursor.take("(") else self.named()
        span = self.cursor.since(start)
        return ast.Over(function, args, given.by, given.order, given.frame, span, where)

    def specified(self) -> Specified:
        """What stands behind an opening parenthesis, up to the one that closes it."""
        cursor = self.cursor
        by: tuple[ast.Expression, ...] = ()
        order: tuple[ast.Ordering, ...] = ()
        if cursor.take("partition"):
            cursor.require("by", "BY")
            by = cursor.separated(self.term)
        if cursor.take("order"):
            cursor.require("by", "BY")
            order = cursor.separated(self.ordering)
        frame = self.frame(is_ordered=bool(order))
        cursor.require(")", 'PARTITION BY, ORDER BY, ROWS, RANGE or ")"')
        return Specified(by, order, frame)

    # --- windows with names ---

    def clause(self) -> None:
        """`WINDOW w AS (...), v AS (...)`, which stands behind most of those that use it."""
        for word, given in self.cursor.separated(self._definition):
            if word.name.lower() in self.known:
                self.cursor.fail(f'there are two windows "{word.name}"', word.span)
            self.known[word.name.lower()] = given

    def _definition(self) -> tuple[ast.Word, Specified]:
        word = self.cursor.word("the name of a window")
        self.cursor.require("as", "AS")
        self.cursor.require("(")
        return word, self.specified()

    def named(self) -> Specified:
        """`OVER w`: what the clause behind says of it."""
        cursor = self.cursor
        word = cursor.word("the name of a window")
        if word.name.lower() in self.known:
            return self.known[word.name.lower()]
        back = cursor.at
        cursor.at = next(self._defined(word.name), -1)
        if cursor.at < 0:
            cursor.at = back
            hint = f"write WINDOW {word.name} AS (PARTITION BY ... ORDER BY ...) behind HAVING"
            cursor.fail(f'there is no window "{word.name}"', word.span, hint)
        given = self.specified()
        cursor.at = back
        return given

    def _defined(self, name: str) -> Iterator[int]:
        """Where a window of that name begins: in no parentheses that are opened from here on."""
        depth, in_clause = 0, False
        tokens = self.cursor.tokens
        for at in range(self.cursor.at, len(tokens) - 3):
            text = tokens[at].text.lower() if tokens[at].kind in ("word", "symbol") else ""
            depth += (text == "(") - (text == ")")
            if text == ";":
                return
            if depth < 0:
                depth, in_clause = 0, False
            in_clause = in_clause or (depth == 0 and text == "window")
            after = [token.text.lower() for token in tokens[at : at + 3]]
            if in_clause and depth == 0 and after == [name.lower(), "as", "("]:
                yield at + 3

    def frame(self, *, is_ordered: bool) -> Frame:
        """The rows around a row; those up to it and its equals, if nothing is said."""
        cursor = self.cursor
        start = cursor.span()
        if cursor.text() not in ("rows", "range"):
            if cursor.text() == "groups":
                cursor.fail("frames of GROUPS are not part of CQL", hint="use ROWS or RANGE")
            return Frame("range", None, 0 if is_ordered else None)
        unit = cursor.next().text.lower()
        if cursor.take("between"):
            first = self.end(unit)
            cursor.require("and", "AND and the end of the frame")
            last = self.end(unit)
        else:
            first, last = self.end(unit), (0, "current")
        span = cursor.since(start)
        if (first[1] == "following" and first[0] is None) or (
            last[1] == "preceding" and last[0] is None
        ):
            cursor.fail("this frame has its ends the wrong way round", span, _FRAME)
        if first[0] is not None and last[0] is not None and first[0] > last[0]:
            cursor.fail("the start of a frame must not be after its end", span, _FRAME)
        if (
            not is_ordered
            and unit == "range"
            and any(e not in (None, 0) for e in (first[0], last[0]))
        ):
            cursor.fail("a RANGE needs ORDER BY", span)
        return Frame(unit, first[0], last[0])

    def end(self, unit: str) -> tuple[int | None, str]:
        """How far an end of a frame is, and where."""
        cursor = self.cursor
        if cursor.take("current"):
            cursor.require("row", "ROW")
            return 0, "current"
        distance = None if cursor.take("unbounded") else self.distance(unit)
        if cursor.take("preceding"):
            return (None if distance is None else -distance), "preceding"
        if not cursor.take("following"):
            cursor.expected("PRECEDING or FOLLOWING", _FRAME)
        return distance, "following"

    def distance(self, unit: str) -> int:
        cursor = self.cursor
        start = cursor.span()
        value = self.term()
        wanted = (INTEGER, DURATION) if unit == "range" else (INTEGER,)
        if isinstance(value, ast.Constant) and value.type in wanted:
            assert isinstance(value.value, int)
            if value.value >= 0:
                return value.value
        what = "a number or an interval" if unit == "range" else "a number of rows"
        cursor.fail(f"expected {what} that is not negative", cursor.since(start), _FRAME)
