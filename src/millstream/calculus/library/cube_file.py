"""The configuration of a cube: `key = value`, a line each, `#` to the end of the line.

    Dimensions = productID, productName | customerID    # fine to coarse
    MVertices = productID, Minute | productName, Hour   # kept up to date beside the finest
    TimeGrain = Minute
    CWindow = 500                                       # so many grains
    OutputVertices = productName, customerID | all
    Measures = sum(amount), n: count()

What is wrong is collected, each fault at its place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from millstream.calculus.grains import GRAINS, UNITS, Grain
from millstream.calculus.library.cube_choice import (
    BUDGETS,
    FREQUENCIES,
    METHODS,
    MODES,
    Choosing,
)
from millstream.errors import Fault, listing, suggest
from millstream.source import Source, Span

_LINE = re.compile(r"[^\n]*")
_WORD = re.compile(r"""\s*(?:"([^"]*)"|`([^`]*)`|([^\s"`,|():#=]+))""")
_MEASURE = re.compile(
    r"(?:(?P<name>[^:()]*):)?\s*(?P<function>\w+)\s*"
    r"\(\s*(?:(?P<all>\*)\s*|(?P<column>[^(),]*)(?:,(?P<at>[^(),]*))?)\)\s*"
)
_CHANGE = re.compile(
    r"(?:(?P<name>\w+)\s*:\s*)?(?P<source>\w+)\s*\(\s*(?P<key>\w+)\s*\)\s*type\s*(?P<type>[12])",
    re.IGNORECASE,
)
#: A comma that is in no parentheses.
_BETWEEN = re.compile(r",(?![^()]*\))")


@dataclass(frozen=True, slots=True)
class Word:
    """A name where it stands."""

    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class WrittenVertex:
    """Attributes, and the grain if one is written; the span is that of all of it."""

    words: tuple[Word, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class WrittenMeasure:
    """`name: function(column)`; a count may be of no column, a quantile is `at` some part."""

    function: Word
    column: Word | None
    name: Word | None
    at: Word | None
    span: Span


@dataclass(frozen=True, slots=True)
class WrittenChanging:
    """`name: SOURCE(key) type 1`, or 2."""

    name: Word | None
    source: Word
    key: Word
    keeps_versions: bool
    span: Span


@dataclass
class Configuration:
    """Mutable: what a file says so far, and the place of each key."""

    source: Source
    faults: list[Fault]
    places: dict[str, Span] = field(default_factory=dict)
    dimensions: tuple[tuple[Word, ...], ...] = ()
    dimension_names: tuple[Word, ...] | None = None
    sizes: tuple[tuple[int, ...], ...] | None = None
    kept: tuple[WrittenVertex, ...] = ()
    outputs: tuple[WrittenVertex, ...] = ()
    grain: Grain | None = None
    window: int | None = None
    measures: tuple[WrittenMeasure, ...] | None = None
    is_live: bool = False
    history: int = 0
    changing: tuple[WrittenChanging, ...] = ()
    choosing: Choosing = field(default_factory=Choosing)

    def fail(self, message: str, span: Span | None, hint: str | None = None) -> None:
        self.faults.append(Fault(message, span, hint))

    def place(self, key: str) -> Span:
        """Where a key stands, or the end of the file."""
        end = len(self.source.text)
        return self.places.get(key, Span(self.source, end, end))


def read_configuration(source: Source, faults: list[Fault]) -> Configuration:
    """What a file says; `faults` gets what is wrong with it."""
    made = Configuration(source, faults)
    written: dict[str, Span] = {}
    for key, value in _entries(made):
        name = next((k for k in _KEYS if k.lower() == key.text.lower()), None)
        if name is None:
            near = suggest(key.text, _KEYS) or ""
            made.fail(
                f'unknown key "{key.text}"', key.span, f"keys are: {listing(_KEYS, 30)}. {near}"
            )
        elif (same := _SAME.get(name, name)) in written:
            before = written[same].place
            made.fail(f'"{same}" is said twice', key.span, f"first at {before}")
        else:
            written[same] = made.places[same] = key.span
            _KEYS[name](made, value)
    for needed, example in _EXAMPLES.items():
        if needed not in written:
            made.fail(f'there is no "{needed}"', made.place(needed), f"write {needed} = {example}")
    _separate_by_names(made)
    if "OptMethod" not in written and "MVerticesNum" not in written:
        method = next((BUDGETS[key] for key in BUDGETS if key in written), "NumVertices")
        made.choosing = replace(made.choosing, method=method)
    return made


def _entries(made: Configuration) -> Iterator[tuple[Word, Span]]:
    """The keys and what is said of each."""
    for line in _LINE.finditer(made.source.text):
        text = line[0].split("#", maxsplit=1)[0]
        if not text.strip():
            continue
        key, equals, value = text.partition("=")
        start = line.start()
        span = _stripped(Span(made.source, start, start + len(key)))
        if not equals or not span.text:
            made.fail("expected `key = value`", span, "a comment begins with #")
            continue
        begin = start + len(key) + 1
        yield Word(span.text, span), _stripped(Span(made.source, begin, begin + len(value)))


def _stripped(span: Span) -> Span:
    """Without the blanks around it."""
    text = span.text
    start = span.start + len(text) - len(text.lstrip())
    return Span(span.source, start, max(start, span.start + len(text.rstrip())))


def _pieces(span: Span, separator: str) -> Iterator[Span]:
    start = span.start
    for piece in span.text.split(separator):
        yield _stripped(Span(span.source, start, start + len(piece)))
        start += len(piece) + 1


def _words(made: Configuration, span: Span, what: str) -> tuple[Word, ...]:
    """Names between commas."""
    words: list[Word] = []
    for piece in _pieces(span, ","):
        match = _WORD.fullmatch(piece.text)
        if match is not None:
            words.append(Word(match[1] or match[2] or match[3] or "", piece))
        elif " " in piece.text and re.fullmatch(r"\d+\s+\w+", piece.text):
            words.append(Word(piece.text, piece))
        else:
            made.fail(f"expected {what}", piece, 'write names between commas; odd ones in "quotes"')
    return tuple(words)


# --- the keys --------------------------------------------------------------------------


def _dimensions(made: Configuration, value: Span) -> None:
    parts = [_words(made, part, "an attribute") for part in _pieces(value, "|")]
    made.dimensions = tuple(part for part in parts if part)


def _names(made: Configuration, value: Span) -> None:
    made.dimension_names = _words(made, value, "the name of a dimension")


def _sizes(made: Configuration, value: Span) -> None:
    parts = [_whole_numbers(made, part) for part in _pieces(value, "|")]
    made.sizes = tuple(part for part in parts if part)


def _whole_numbers(made: Configuration, value: Span) -> tuple[int, ...]:
    numbers = [_whole_number(made, piece) for piece in _pieces(value, ",")]
    return tuple(n for n in numbers if n is not None)


def _whole_number(
    made: Configuration, value: Span, what: str = "a whole number above 0"
) -> int | None:
    text = value.text.replace("_", "")
    if text.isdecimal() and int(text) > 0:
        return int(text)
    made.fail(f"expected {what}", value)
    return None


def _vertices(made: Configuration, value: Span) -> tuple[WrittenVertex, ...]:
    if value.text.lower() in ("", "none"):
        return ()
    parts = [(_words(made, part, "an attribute or a grain"), part) for part in _pieces(value, "|")]
    return tuple(WrittenVertex(words, part) for words, part in parts if words)


def _kept(made: Configuration, value: Span) -> None:
    made.kept = _vertices(made, value)


def _outputs(made: Configuration, value: Span) -> None:
    made.outputs = _vertices(made, value)


def grain_of(text: str) -> Grain | None:
    """`Minute`, `5 Minutes`; None if it is no grain."""
    match = re.fullmatch(r"(?:(\d+)\s+)?([A-Za-z]+)", text)
    if match is None or (match[1] and int(match[1]) < 1):
        return None
    return Grain.named(match[2], int(match[1] or 1))


def _grain(made: Configuration, value: Span) -> None:
    made.grain = grain_of(value.text)
    if made.grain is None:
        near = suggest(value.text, [g for g in GRAINS if g.lower() in UNITS]) or ""
        hint = f"grains are: {listing(GRAINS)}, or several such as 5 Minutes. {near}".strip()
        made.fail(f'unknown grain "{value.text}"', value, hint)


def _window(made: Configuration, value: Span) -> None:
    made.window = _whole_number(made, value)


def _history(made: Configuration, value: Span) -> None:
    made.history = 0 if value.text == "0" else _whole_number(made, value, "a whole number") or 0


def _measures(made: Configuration, value: Span) -> None:
    made.measures = tuple(
        measure for piece in _measured(value) if (measure := _measure(made, piece)) is not None
    )


def _measured(value: Span) -> Iterator[Span]:
    """What stands between commas that are in no parentheses."""
    start = value.start
    for piece in _BETWEEN.split(value.text):
        yield _stripped(Span(value.source, start, start + len(piece)))
        start += len(piece) + 1


def _measure(made: Configuration, piece: Span) -> WrittenMeasure | None:
    match = _MEASURE.fullmatch(piece.text)
    if match is None:
        hint = "measures are: sum(x), count(), total: sum(x)"
        made.fail("expected a measure", piece, hint)
        return None

    def word(group: str) -> Word | None:
        if not (match[group] or "").strip():
            return None
        start = piece.start + match.start(group)
        return _words(
            made, _stripped(Span(piece.source, start, start + len(match[group]))), "a name"
        )[0]

    function = word("function")
    assert function is not None
    if match["all"] and function.text.lower() != "count":
        made.fail(f"{function.text} is of a column", piece, "count(*) counts rows")
        return None
    return WrittenMeasure(function, word("column"), word("name"), word("at"), piece)


def _changing(made: Configuration, value: Span) -> None:
    changes = [_change(made, piece) for piece in _pieces(value, "|")]
    made.changing = tuple(change for change in changes if change is not None)


def _change(made: Configuration, piece: Span) -> WrittenChanging | None:
    match = _CHANGE.fullmatch(piece.text)
    if match is None:
        hint = "write customer: CUSTOMER(customerID) type 2"
        made.fail("expected a source of versions", piece, hint)
        return None

    def word(group: str) -> Word:
        span = Span(piece.source, piece.start + match.start(group), piece.start + match.end(group))
        return Word(match[group], span)

    name = word("name") if match["name"] else None
    return WrittenChanging(name, word("source"), word("key"), match["type"] == "2", piece)


def _output(made: Configuration, value: Span) -> None:
    made.is_live = value.text.lower() == "live"
    if value.text.lower() not in ("live", "steps"):
        near = suggest(value.text, ("live", "steps")) or ""
        made.fail(f'unknown output "{value.text}"', value, f"write live or steps. {near}".strip())


def _word_of(
    made: Configuration, value: Span, known: tuple[str, ...], elsewhere: str = ""
) -> str | None:
    """One of some words, in any case; `elsewhere` says where one is written that is not of them."""
    word = next((k for k in known if k.lower() == value.text.lower()), None)
    if word is None:
        near = elsewhere or suggest(value.text, known) or ""
        made.fail(f'unknown word "{value.text}"', value, f"write {listing(known)}. {near}".strip())
    return word


def _mode(made: Configuration, value: Span) -> None:
    method = next((m for m in METHODS if m.lower() == value.text.lower()), None)
    elsewhere = f"For {method} write MMode = Optimized and OptMethod = {method}." if method else ""
    mode = _word_of(made, value, MODES, elsewhere)
    made.choosing = replace(made.choosing, mode=mode or "Custom")


def _method(made: Configuration, value: Span) -> None:
    method = _word_of(made, value, METHODS)
    made.choosing = replace(made.choosing, method=method or METHODS[0])


def _number(made: Configuration, value: Span) -> None:
    made.choosing = replace(made.choosing, number=_whole_number(made, value))


def _storage(made: Configuration, value: Span) -> None:
    made.choosing = replace(made.choosing, cells=_whole_number(made, value))


_UNITS = {"": 1, "KB": 2**10, "MB": 2**20, "GB": 2**30}


def _memory(made: Configuration, value: Span) -> None:
    match = re.fullmatch(r"([\d_]+)\s*([KMG]B)?", value.text, re.IGNORECASE)
    if match is None or int(match[1].replace("_", "") or 0) == 0:
        made.fail("expected an amount of memory", value, "write 64 MB")
        return
    size = int(match[1].replace("_", "")) * _UNITS[(match[2] or "").upper()]
    made.choosing = replace(made.choosing, memory=size)


def _asked(made: Configuration, value: Span) -> None:
    made.choosing = replace(made.choosing, asked=_word_of(made, value, FREQUENCIES))


def _frequencies(made: Configuration, value: Span) -> None:
    made.choosing = replace(made.choosing, frequencies=_whole_numbers(made, value))


def _seed(made: Configuration, value: Span) -> None:
    made.choosing = replace(made.choosing, seed=_whole_number(made, value) or 0)


_KEYS: dict[str, Callable[[Configuration, Span], None]] = {
    "Dimensions": _dimensions, "DimensionNames": _names, "DimensionSizes": _sizes,
    "MVertices": _kept, "TimeGrain": _grain, "CWindow": _window, "IoA": _window,
    "OutputVertices": _outputs, "LatticeOutputVertices": _outputs, "Measures": _measures,
    "Output": _output, "MMode": _mode, "OptMethod": _method, "MVerticesNum": _number,
    "MaxStorageNumTuples": _storage, "RFMode": _asked, "RefFrequencies": _frequencies,
    "Seed": _seed, "History": _history, "Changing": _changing, "MaxMemory": _memory,
}  # fmt: skip
#: Keys of other files that mean the same.
_SAME = {"IoA": "CWindow", "LatticeOutputVertices": "OutputVertices"}
_EXAMPLES = {"Dimensions": "productID, productName | customerID", "TimeGrain": "Minute",
             "CWindow": "60"}  # fmt: skip


def _separate_by_names(made: Configuration) -> None:
    """Where as many names or sizes are given as attributes, each is a dimension of its own."""
    sizes = made.sizes
    if len(made.dimensions) == 1:
        (words,) = made.dimensions
        counts = [len(made.dimension_names or ()), len(sizes[0]) if sizes else 0]
        if len(words) > 1 and len(words) in counts:
            made.dimensions = tuple((word,) for word in words)
    if sizes is not None and len(sizes) == 1 and len(sizes[0]) == len(made.dimensions):
        made.sizes = tuple((size,) for size in sizes[0])
    _check_counts(made)


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _check_counts(made: Configuration) -> None:
    wanted = len(made.dimensions)
    if made.dimension_names is not None and len(made.dimension_names) != wanted:
        count = len(made.dimension_names)
        message = f"here are {_counted(count, 'name')} for {_counted(wanted, 'dimension')}"
        hint = "give one for each dimension; | is between dimensions, a comma between levels"
        made.fail(message, made.place("DimensionNames"), hint)
    if made.sizes is not None:
        levels = [len(d) for d in made.dimensions]
        given = [len(s) for s in made.sizes]
        if given not in (levels, [1] * wanted):
            message = f"here are {_counted(sum(given), 'size')} for {_counted(wanted, 'dimension')}"
            hint = "give one for each dimension, or one for each level, with | as in Dimensions"
            made.fail(message, made.place("DimensionSizes"), hint)
