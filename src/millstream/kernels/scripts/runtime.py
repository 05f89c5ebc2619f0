"""What functions made of scripts call, and how their errors are told."""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from types import TracebackType
from typing import Any, NoReturn

from millstream.calculus.scripts import (
    Const,
    Convert,
    Declare,
    Expression,
    Function,
    Intrinsic,
    Quantifier,
    Saw,
    Script,
    Undefine,
    nodes_in,
)
from millstream.kernels.loop.cache import plain_module
from millstream.kernels.records.quick_patterns import LONGEST, cuts_alike, quick_pattern
from millstream.values.records import operators
from millstream.values.records.matching import WITHOUT_END, Rest, Take, matchstrs, sawn
from millstream.values.records.patterns import BadPattern, searched
from millstream.values.records.proto import is_present, with_field
from millstream.values.records.running import (
    ENDLESS_CALLS,
    ENDLESS_LOOP,
    MOST_CALLS,
    MOST_ROUNDS,
    NO_RETURN,
    Emitted,
    Rejected,
    Runtime,
    without_value,
)
from millstream.values.records.types import INT, STRING, resolved, wrapped
from millstream.values.undefined import Undefined

#: What it means that there is no value, in Python's own words.
UNDEFINED = (Undefined, KeyError, IndexError, NameError)
_NAMED = re.compile(r"'([vs]\d+)'")
#: The name of the file that generated functions seem to stand in.
FILE = "<script>"


class Nothing:
    """What a function gives back that has no value to return."""

    __slots__ = ("reason",)

    def __init__(self, reason: str) -> None:
        self.reason = reason


class Library:
    """Functions of the library as a script calls them."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.runtime = Runtime(script.timezone, script.folder)
        self._sure: frozenset[int] | None = None

    def intrinsic(self, node: Intrinsic) -> Callable[..., Any]:
        return self.runtime.intrinsic(node.name, tuple(a.type for a in node.arguments))

    def conversion(self, node: Convert) -> Callable[..., Any]:
        types = tuple(p.type for p in node.parameters)
        whole = self.runtime.conversion(node.value.type, node.type, types)
        is_number = resolved(node.value.type) == STRING and resolved(node.type) == INT
        return _quick_integers(whole) if is_number else whole

    @staticmethod
    def matcher(name: str, pattern: str) -> Callable[[str], Any] | None:
        """What looks for a pattern that is known; None if it is none."""
        try:
            slow = searched(pattern)
        except (Undefined, BadPattern):
            return None
        quick = quick_pattern(pattern)
        if name == "match":
            if quick is None:
                return slow.matches
            find = quick.search
            return lambda text: find(text) is not None if is_quick(text) else slow.matches(text)
        whole = partial(matchstrs, pattern)
        return whole if quick is None else _quick_strings(quick, whole)

    @staticmethod
    def saw(node: Saw) -> Callable[[int | None, str], tuple[str, ...]]:
        """What cuts texts by patterns that are known."""
        steps: list[Take | Rest] = []
        for cut in node.cuts:
            assert isinstance(cut.pattern, Const)
            kept = "skip" if cut.is_skipped else "submatch" if cut.is_submatch else "match"
            steps.append(Take(cut.pattern.value, kept))

        def cut_up(count: int | None, text: str) -> tuple[str, ...]:
            return sawn(WITHOUT_END if count is None else count, text, steps)[0]

        (only, *others) = steps
        is_one = not others and isinstance(only, Take) and only.kept == "match"
        if not is_one or not isinstance(only, Take) or not cuts_alike(only.pattern):
            return cut_up
        quick = quick_pattern(only.pattern)
        return cut_up if quick is None else _quick_pieces(quick, cut_up)

    def sure(self, is_sure: Callable[[Expression], bool]) -> frozenset[int]:
        """The variables that always have a value where they can be seen."""
        if self._sure is not None:
            return self._sure
        self._sure = known = frozenset({self.script.record.number})
        nodes = list(nodes_in((self.script.statics, self.script.body)))
        taken = {n.target.var.number for n in nodes if isinstance(n, Undefine)}
        numbers = {p.number for n in nodes if isinstance(n, Function) for p in n.parameters}
        numbers |= {n.var.number for n in nodes if isinstance(n, Quantifier) and n.word != "all"}
        self._sure = known | numbers
        for node in nodes:
            if isinstance(node, Declare) and node.value is not None and is_sure(node.value):
                self._sure |= {node.var.number}
        self._sure -= taken
        return self._sure


def is_quick(text: str) -> bool:
    """Whether a text is for Python's own `re`: not long, and no half of a character in it."""
    if len(text) > LONGEST:
        return False
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _quick_strings(
    pattern: re.Pattern[str], slow: Callable[[str], tuple[str, ...]]
) -> Callable[[str], tuple[str, ...]]:
    def strings(text: str) -> tuple[str, ...]:
        if not is_quick(text):
            return slow(text)
        match = pattern.search(text)
        return () if match is None else (match[0], *match.groups(""))

    return strings


def _quick_pieces(
    pattern: re.Pattern[str], slow: Callable[[int | None, str], tuple[str, ...]]
) -> Callable[[int | None, str], tuple[str, ...]]:
    def pieces(count: int | None, text: str) -> tuple[str, ...]:
        if not is_quick(text):
            return slow(count, text)
        if count is None and not pattern.groups:
            return tuple(pattern.findall(text))
        matches = pattern.finditer(text)
        if count is not None:
            matches = itertools.islice(matches, max(count, 0))
        return tuple(match[0] for match in matches)

    return pieces


def _quick_integers(convert: Callable[..., int]) -> Callable[..., int]:
    """Conversions of texts to integers: plain decimal digits need no closer look."""

    def quick(text: str, *bases: int) -> int:
        is_plain = text.isascii() and text.isdigit() and len(text) < 18
        if is_plain and (bases == (10,) or (not bases and (text[0] != "0" or text == "0"))):
            return int(text)
        return convert(text, *bases)

    return quick


def names_of(script: Script) -> dict[str, Any]:
    """What the text of a generated function mentions."""
    runtime = Runtime(script.timezone, script.folder)
    return {
        "UNDEFINED": UNDEFINED, "Nothing": Nothing, "NO_RETURN": Nothing(NO_RETURN),
        "OUT": sys.maxsize, "ONCE": (None,), "wrapped": wrapped, "defined": defined,
        "equals": equals, "ranged": ranged, "absent": absent, "nothing": nothing,
        "failed": failed, "endless": endless, "no_column": no_column, "cut": runtime.cut,
        "item": operators.item, "sliced": operators.sliced, "made": operators.made,
        "with_item": operators.with_item, "with_slice": operators.with_slice,
        "with_part": with_field, "repeated": operators.repeated, "is_present": is_present,
        "too_many": operators.too_many,
    }  # fmt: skip


def defined(value: Callable[[], Any]) -> bool:
    try:
        value()
    except UNDEFINED:
        return False
    return True


def equals(label: Callable[[], Any], tag: Any) -> bool:
    try:
        return bool(label() == tag)
    except UNDEFINED:
        return False


def ranged(*bases: tuple[bool, Callable[[], Any]]) -> list[Any]:
    """All indexes of some arrays, maps and texts."""
    keys: set[Any] = set()
    for is_map, base in bases:
        try:
            held = base()
        except UNDEFINED:
            continue
        keys.update(held if is_map else range(len(held)))
    return sorted(keys)


def absent(what: Nothing | str) -> NoReturn:
    raise Undefined(what.reason if isinstance(what, Nothing) else what)


def failed(place: str, said: str = "") -> NoReturn:
    raise Rejected(place, f"assertion failed{said}")


def endless(place: str) -> NoReturn:
    raise Rejected(place, ENDLESS_LOOP)


def no_column(name: str) -> NoReturn:
    raise Undefined(f'column "{name}" has nothing, which is no value')


def nothing(error: Exception) -> Nothing:
    return Nothing(str(error))


class Running:
    """Mutable: a generated function, and what it does to one record after the other."""

    def __init__(
        self, text: str, places: dict[int, str], names: dict[str, Any], variables: dict[str, str]
    ) -> None:
        self.places = places
        self.variables = variables
        self.emits: list[Emitted] = []
        self.depth = 0
        self.calls_left = 0
        self.rounds: Iterable[None] = ()
        #: Rounds that loops over ranges may still take.
        self.left = MOST_ROUNDS
        names["emit"] = self.emits.append
        names["rounds"] = lambda: self.rounds
        names["counted"] = self.counted
        names["rejected"] = self.rejected
        names["nothing"] = lambda error: Nothing(self.reason(error))
        names["enter"] = self.enter
        names["leave"] = self.leave
        self.begin()
        self.function = plain_module(text, FILE, names).run

    def begin(self, most: int | None = None) -> None:
        """A record is begun: it may go round, and call, so often."""
        rounds = MOST_ROUNDS if most is None else most
        self.depth = 0
        self.calls_left = self.left = rounds
        self.rounds = itertools.repeat(None, rounds)

    def run(self, record: bytes, row: Any) -> list[Emitted]:
        """What a record emits, or `Rejected`. The list is used again for the next one."""
        self.emits.clear()
        self.begin()
        try:
            self.function(record, row)
        except UNDEFINED as error:
            self.rejected(error)
        return self.emits

    def counted(self, start: int, stop: int) -> Iterable[int]:
        """The numbers that a loop goes over, as long as there are rounds left."""
        rounds = stop - start
        if rounds > self.left:
            return self._watched(start, stop)
        if rounds > 0:
            self.left -= rounds
        return range(start, stop)

    def _watched(self, start: int, stop: int) -> Iterator[int]:
        for number in range(start, stop):
            self.left -= 1
            if self.left < 0:
                endless("")
            yield number

    def enter(self) -> None:
        if self.depth >= MOST_CALLS or self.calls_left <= 0:
            calling = sys._getframe(2)  # noqa: SLF001 - the line of the script that calls
            raise Rejected(self.places.get(calling.f_lineno, ""), ENDLESS_CALLS)
        self.depth += 1
        self.calls_left -= 1

    def leave(self) -> None:
        self.depth -= 1

    def rejected(self, error: BaseException) -> NoReturn:
        raise self.rejection(error) from None

    def rejection(self, error: BaseException) -> Rejected:
        return Rejected(self.place(error.__traceback__), self.reason(error))

    def place(self, trace: TracebackType | None) -> str:
        """Where in the script an error came up: in its innermost statement."""
        place = ""
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == FILE:
                place = self.places.get(trace.tb_lineno, place)
            trace = trace.tb_next
        return place

    def reason(self, error: BaseException) -> str:
        match error:
            case Undefined(reason=reason):
                return str(reason)
            case NameError():
                # Python 3.11 tells the name of a local variable in its words only.
                named = _NAMED.search(str(error))
                if named is None or named[1] not in self.variables:
                    raise error
                return without_value(self.variables[named[1]])
            case KeyError():
                return "the map has no such key"
            case IndexError():
                return "the index is out of bounds"
            case _:
                raise error
