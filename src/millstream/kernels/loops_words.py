"""Compiled loops that put into words what rows do not meet, straight into a pool of texts.

A reason is made of pieces: what the requirement says, and the values that it shows. The
values differ from row to row, so a text is written where it would be kept, and kept only if
it is new.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from millstream.compiled import inlined, tight
from millstream.kernels.loops_numerals import LONGEST, UNSURE, put_number
from millstream.kernels.loops_text import USED, Texts, hash_text, intern_text
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


class Values(NamedTuple):
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
def _put(arena: Array, at: Any, data: Array, start: Any, end: Any) -> Any:
    for j in range(start, end):
        arena[at + j - start] = data[j]
    return at + end - start


@inlined
def _put_value(
    wording: Wording, piece: Any, values: Values, row: Any, arena: Array, places: Array, at: Any
) -> Any:
    pieces, letters = wording.pieces, wording.letters
    at = _put(arena, at, letters, pieces[piece, LABEL], pieces[piece, LABEL_END])
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
            at = _put(arena, at, arena, places[code, 0], places[code, 0] + places[code, 1])
    if not is_known:
        start, end = wording.between[NOT_KNOWN, 0], wording.between[NOT_KNOWN, 1]
        return _put(arena, at, letters, start, end)
    return _put(arena, at, letters, pieces[piece, UNIT], pieces[piece, UNIT_END])


@inlined
def _put_reasons(
    wording: Wording, unmet: Unmet, values: Values, row: Any, arena: Array, places: Array, at: Any
) -> Any:
    """Write the reasons of a row; where they end, or UNSURE."""
    letters, between = wording.letters, wording.between
    for i in range(unmet.first[row], unmet.first[row + 1]):
        one = unmet.requirements[i]
        if i > unmet.first[row]:
            at = _put(arena, at, letters, between[SEMICOLON, 0], between[SEMICOLON, 1])
        at = _put(arena, at, letters, wording.heads[one, 0], wording.heads[one, 1])
        for piece in range(wording.first[one], wording.first[one + 1]):
            at = _put_value(wording, piece, values, row, arena, places, at)
            if at == UNSURE:
                return UNSURE
    return at


@inlined
def _put_places(wording: Wording, unmet: Unmet, row: Any, arena: Array, at: Any) -> Any:
    letters, between = wording.letters, wording.between
    for i in range(unmet.first[row], unmet.first[row + 1]):
        one = unmet.requirements[i]
        if i > unmet.first[row]:
            at = _put(arena, at, letters, between[COMMA, 0], between[COMMA, 1])
        at = _put(arena, at, letters, wording.places[one, 0], wording.places[one, 1])
    return at


@inlined
def room_for(wording: Wording, unmet: Unmet, row: Any, longest: Any) -> Any:
    """How many bytes the reasons of a row take at most."""
    room = 0
    for i in range(unmet.first[row], unmet.first[row + 1]):
        one = unmet.requirements[i]
        shown = wording.first[one + 1] - wording.first[one]
        room += wording.most[one] + shown * max(LONGEST, longest)
    return room


@inlined
def _kept(at: Any, end: Any, texts: Texts) -> Any:
    length = end - at
    return intern_text(texts.arena, at, length, hash_text(texts.arena, at, length), texts)


@tight
def say_failures(
    wording: Wording,
    unmet: Unmet,
    values: Values,
    said: tuple[Array, Array],
    texts: Texts,
    start: int,
    longest: int,
) -> int:
    """The codes of the places and of the reasons of rows from `start` on.

    Stops where the pool must grow. The code of reasons that are not sure is UNSURE.
    """
    failed, reasons = said
    arena, places, counters = texts.arena, texts.places, texts.counters
    for row in range(start, failed.size):
        at = counters[USED]
        if at + room_for(wording, unmet, row, longest) > arena.size:
            return row
        code = _kept(at, _put_places(wording, unmet, row, arena, at), texts)
        if code < 0:
            return row
        failed[row] = code
        at = counters[USED]
        if at + room_for(wording, unmet, row, longest) > arena.size:
            return row
        end = _put_reasons(wording, unmet, values, row, arena, places, at)
        if end == UNSURE:
            reasons[row] = UNSURE
            continue
        code = _kept(at, end, texts)
        if code < 0:
            return row
        reasons[row] = code
    return failed.size
