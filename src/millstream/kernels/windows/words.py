"""Compiled loops that put into words what rows do not meet, straight into a pool of texts.

A reason is made of pieces: what the requirement says, and the values that it shows. These
differ from row to row, so looking whether a text is there already would cost more than it
spares: each row has texts of its own.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from millstream.compiled import inlined, tight
from millstream.kernels.runtime.hashing import LIVE, TOP
from millstream.kernels.runtime.utf8 import USED, Texts, put_text
from millstream.kernels.windows.numerals import UNSURE, put_number
from millstream.plan.batch import Array

#: What a piece that is shown is made of: whether it is a number, which one, and where its
#: label and its unit begin and end among the letters.
IS_NUMBER, VALUE, LABEL, LABEL_END, UNIT, UNIT_END = range(6)


class Wording(NamedTuple):
    """All that can be said: heads and places of requirements, and what they show.

    Heads and places are beginnings and ends among the letters, and so are the words that stand
    between, and for what is not known. `first` says where the pieces of a requirement begin,
    and `most` how many bytes it takes at most, but for texts that it shows.
    """

    letters: Array
    heads: Array
    places: Array
    first: Array
    pieces: Array
    most: Array
    between: Array


class ShownValues(NamedTuple):
    """What is shown, a column per row: numbers, where they are known, and codes of texts."""

    numbers: Array
    known: Array
    codes: Array


class Unmet(NamedTuple):
    """What each row does not meet: where its requirements begin, and all of them."""

    first: Array
    requirements: Array


#: The words of `between`.
SEMICOLON, COMMA, NOT_KNOWN = range(3)


@inlined
def _put_value(
    wording: Wording,
    piece: Any,
    values: ShownValues,
    row: Any,
    arena: Array,
    places: Array,
    at: Any,
) -> Any:
    pieces, letters = wording.pieces, wording.letters
    at = put_text(arena, at, letters, pieces[piece, LABEL], pieces[piece, LABEL_END])
    which = pieces[piece, VALUE]
    if pieces[piece, IS_NUMBER]:
        is_known = values.known[which, row]
        if is_known:
            at = put_number(arena, at, values.numbers[which, row])
            if at == UNSURE:
                return UNSURE
    else:
        code = values.codes[which, row]
        is_known = code >= 0
        if is_known:
            at = put_text(arena, at, arena, places[code, 0], places[code, 0] + places[code, 1])
    if not is_known:
        start, end = wording.between[NOT_KNOWN, 0], wording.between[NOT_KNOWN, 1]
        return put_text(arena, at, letters, start, end)
    return put_text(arena, at, letters, pieces[piece, UNIT], pieces[piece, UNIT_END])


@inlined
def _put_reasons(
    wording: Wording,
    unmet: Unmet,
    values: ShownValues,
    row: Any,
    arena: Array,
    places: Array,
    at: Any,
) -> Any:
    """Write the reasons of a row; where they end, or UNSURE."""
    letters, between = wording.letters, wording.between
    for i in range(unmet.first[row], unmet.first[row + 1]):
        requirement = unmet.requirements[i]
        if i > unmet.first[row]:
            at = put_text(arena, at, letters, between[SEMICOLON, 0], between[SEMICOLON, 1])
        at = put_text(
            arena, at, letters, wording.heads[requirement, 0], wording.heads[requirement, 1]
        )
        for piece in range(wording.first[requirement], wording.first[requirement + 1]):
            at = _put_value(wording, piece, values, row, arena, places, at)
            if at == UNSURE:
                return UNSURE
    return at


@inlined
def _put_places(wording: Wording, unmet: Unmet, row: Any, arena: Array, at: Any) -> Any:
    letters, between = wording.letters, wording.between
    for i in range(unmet.first[row], unmet.first[row + 1]):
        requirement = unmet.requirements[i]
        if i > unmet.first[row]:
            at = put_text(arena, at, letters, between[COMMA, 0], between[COMMA, 1])
        at = put_text(
            arena, at, letters, wording.places[requirement, 0], wording.places[requirement, 1]
        )
    return at


@inlined
def _kept(at: Any, end: Any, texts: Texts) -> Any:
    """The code of a text that has been written behind all others; it may be there already."""
    code = texts.counters[TOP]
    texts.places[code, 0], texts.places[code, 1] = at, end - at
    texts.counters[TOP] += 1
    texts.counters[LIVE] += 1
    texts.counters[USED] = end
    return code


@tight
def say_failures(
    wording: Wording, unmet: Unmet, values: ShownValues, said: tuple[Array, Array], texts: Texts
) -> None:
    """The codes of the places and of the reasons of rows; the caller has made room.

    The code of reasons that are not sure is UNSURE.
    """
    failed, reasons = said
    arena, places, counters = texts.arena, texts.places, texts.counters
    for row in range(failed.size):
        at = counters[USED]
        failed[row] = _kept(at, _put_places(wording, unmet, row, arena, at), texts)
        at = counters[USED]
        end = _put_reasons(wording, unmet, values, row, arena, places, at)
        reasons[row] = UNSURE if end == UNSURE else _kept(at, end, texts)
