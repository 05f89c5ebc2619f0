"""`format`: C's verbs, and %b %c %k %p %q %t %T."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from millstream.values.records.intrinsic import Intrinsic, RecordSurroundings, Signature
from millstream.values.records.printing import general, quoted
from millstream.values.records.types import (
    BOOL,
    BYTES,
    FINGERPRINT,
    FLOAT,
    INT,
    STRING,
    TIME,
    UINT,
    RecordType,
    resolved,
    unsigned,
)
from millstream.values.records.zones import time_text
from millstream.values.undefined import Undefined

#: C's words for the size of a number say nothing here: all have 64 bits.
_VERB = re.compile(r"%(?P<flags>[-+ #0]*)(?P<width>\d*)(?:\.(?P<precision>\d*))?"
                   r"(?:(?:hh?|ll?|[jzL])(?=[diouxXeEfFgGaA]))?(?P<verb>.)?",
                   re.DOTALL)  # fmt: skip
_INTEGERS = (INT, UINT)
#: What each verb takes; None is anything.
_TAKES: dict[str, tuple[RecordType, ...] | None] = {
    **dict.fromkeys("diouxX", (*_INTEGERS,)), **dict.fromkeys("eEfFgGaA", (FLOAT,)),
    "b": (BOOL,), "c": _INTEGERS, "k": _INTEGERS, "s": (STRING,), "q": (STRING, BYTES),
    "p": (FINGERPRINT,), "t": (TIME,), "T": None,
}  # fmt: skip
_LARGEST = 100_000


@dataclass(frozen=True, slots=True)
class Verb:
    """What stands in a format for a value."""

    flags: str
    width: int
    precision: int | None
    letter: str
    #: As it is written.
    text: str

    @property
    def is_plain(self) -> bool:
        return not self.flags and not self.width and self.precision is None


@functools.lru_cache(maxsize=1024)
def _parts(form: str) -> tuple[str | Verb, ...] | str:
    """A format in pieces, or what is wrong with it."""
    parts: list[str | Verb] = []
    at = 0
    for match in _VERB.finditer(form):
        parts.append(form[at : match.start()])
        at = match.end()
        letter = match["verb"]
        if letter == "%":
            parts.append("%")
            continue
        if letter not in _TAKES:
            return f"{match[0]!r} is no verb"
        precision = match["precision"]
        verb = Verb(
            match["flags"], int(match["width"] or 0),
            None if precision is None else int(precision or 0), letter, match[0],
        )  # fmt: skip
        if max(verb.width, verb.precision or 0) > _LARGEST:
            return f"{match[0]!r} is too wide"
        parts.append(verb)
    parts.append(form[at:])
    return tuple(parts)


def complaint(form: str, types: tuple[RecordType, ...]) -> str | None:
    """What is wrong with a format and the types of what it formats; None if nothing is."""
    parts = _parts(form)
    if isinstance(parts, str):
        return parts
    verbs = [part for part in parts if isinstance(part, Verb)]
    if len(verbs) != len(types):
        counts = (f"{n} {word}{'s' * (n != 1)}" for n, word in
                  ((len(verbs), "verb"), (len(types), "value")))  # fmt: skip
        return "the format has {}, and is given {}".format(*counts)
    for verb, type_ in zip(verbs, types, strict=True):
        takes = _TAKES[verb.letter]
        if takes is not None and resolved(type_) not in takes:
            return f"%{verb.letter} takes {' or '.join(map(str, takes))}, got {type_}"
    return None


def pieces(form: str, types: tuple[RecordType, ...]) -> tuple[str | Verb, ...] | None:
    """A format in texts and verbs, one for each value; None if they do not go together."""
    parts = _parts(form)
    return None if isinstance(parts, str) or complaint(form, types) is not None else parts


def _rule(args: tuple[RecordType, ...]) -> Signature | str:
    if args and args[0] == STRING:
        return Signature(args, STRING)
    return "expected a format, then values"


def _bind(settings: RecordSurroundings, signature: Signature) -> Callable[..., str]:
    types = signature.params[1:]
    zone = settings.timezone

    def format_(form: str, *values: Any) -> str:
        wrong = complaint(form, types)
        parts = _parts(form)
        if wrong is not None or isinstance(parts, str):
            raise Undefined(f"format: {wrong}")
        following = iter(zip(values, types, strict=True))
        return "".join(
            part if isinstance(part, str) else _formatted(part, *next(following), zone)
            for part in parts
        )

    return format_


def _formatted(verb: Verb, value: Any, type_: RecordType, zone: str) -> str:
    match verb.letter:
        case "d" | "i" | "u":
            return _number(verb, _decimal(verb, value, type_))
        case "o" | "x" | "X":
            return _number(verb, f"{unsigned(value):{verb.letter}}", _prefix(verb, value))
        case "e" | "E" | "f" | "F" | "g" | "G":
            return _float(verb, value)
        case "a" | "A":
            text = float(value).hex()
            return _padded(verb, text if verb.letter == "a" else text.upper())
        case "c":
            return _padded(verb, _character(value))
        case "k":
            return _padded(verb, quoted(_character(value), "'"))
    text = _text(verb, value, type_, zone)
    return _padded(verb, text if verb.precision is None else text[: verb.precision])


def _text(verb: Verb, value: Any, type_: RecordType, zone: str) -> str:
    match verb.letter:
        case "b":
            return "true" if value else "false"
        case "q":
            return quoted(value.decode("latin-1") if isinstance(value, bytes) else value)
        case "p":
            return f"0x{value:016x}"
        case "t":
            return time_text(value, zone)
        case "T":
            return str(resolved(type_) if "#" in verb.flags else type_)
        case _:
            return str(value)


def _character(code: int) -> str:
    if not 0 <= code < 0x110000 or 0xD800 <= code < 0xE000:
        raise Undefined(f"{code} is no character")
    return chr(code)


def _decimal(verb: Verb, value: int, type_: RecordType) -> str:
    return str(unsigned(value) if verb.letter == "u" or type_ == UINT else value)


def _prefix(verb: Verb, value: int) -> str:
    if "#" not in verb.flags or value == 0:
        return ""
    return {"o": "0", "x": "0x", "X": "0X"}[verb.letter]


def _number(verb: Verb, digits: str, prefix: str = "") -> str:
    """With a sign, digits up to the precision, and zeros or spaces up to the width."""
    sign = "-" if digits.startswith("-") else ""
    digits = digits.removeprefix("-")
    if verb.letter in "di" and not sign:
        sign = "+" if "+" in verb.flags else " " if " " in verb.flags else ""
    if verb.precision is not None:
        digits = "" if verb.precision == 0 and digits == "0" else digits.rjust(verb.precision, "0")
    elif "0" in verb.flags and "-" not in verb.flags:
        digits = digits.rjust(verb.width - len(sign) - len(prefix), "0")
    return _padded(verb, sign + prefix + digits)


def _float(verb: Verb, value: float) -> str:
    flags = "".join(dict.fromkeys(verb.flags))
    if value != value or value in (float("inf"), float("-inf")):
        text = general(value)
        sign = "+" if "+" in flags and text[0] != "-" else ""
        return _padded(verb, sign + (text.upper() if verb.letter in "EFG" else text))
    precision = "" if verb.precision is None else f".{verb.precision}"
    # Python's formatting of floats with % is that of C.
    return f"%{flags}{verb.width or ''}{precision}{verb.letter}" % value


def _padded(verb: Verb, text: str) -> str:
    return text.ljust(verb.width) if "-" in verb.flags else text.rjust(verb.width)


FORMATS: tuple[Intrinsic, ...] = (Intrinsic("format", "format(form, values...)", _rule, _bind),)
