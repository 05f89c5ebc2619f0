"""What the language finds in the library of values: functions, conversions and tables."""

from __future__ import annotations

from millstream.languages.sawzall.scope import COMPOSITE, UNKNOWN, VOID, an
from millstream.values.records.conversions import conversion
from millstream.values.records.intrinsic import RecordSurroundings, Signature
from millstream.values.records.table import INTRINSICS
from millstream.values.records.types import STRING, TIME, RecordType
from millstream.values.undefined import Undefined

#: Functions of the language that are left out, each with what to do instead.
REFUSED = {
    "dbconnect": "programs reach no databases; give the rows as an input",
    "dbquery": "programs reach no databases; give the rows as an input",
    "getadditionalinput": "a record is all that a program gets",
    "setadditionalinput": "a record is all that a program gets",
    "lockadditionalinput": "a record is all that a program gets",
    "getresourcestats": "what a program uses is in its report",
    "print": "what is emitted to stdout is printed: emit stdout <- ...",
    "printf": "what is emitted to stdout is printed: emit stdout <- format(...)",
    "proc": "programs start no others",
}


def signature(name: str, types: tuple[RecordType, ...]) -> Signature | str:
    """What a function takes and gives, or a sentence on what is wrong."""
    if name == "regex":
        return Signature(types, STRING)
    return INTRINSICS[name].rule(types)


def conversion_fault(
    given: RecordType, wanted: RecordType, parameters: tuple[RecordType, ...]
) -> str | None:
    """Why a value cannot be converted, or None if it can."""
    if {given, wanted} & {UNKNOWN, VOID, COMPOSITE}:
        return None if UNKNOWN in (given, wanted) else f"{an(given)} cannot become {an(wanted)}"
    found = conversion(wanted, given, parameters)
    return found if isinstance(found, str) else None


def literal_time(text: str) -> int | str:
    """The time that is written after `T`, or what is wrong with it."""
    found = conversion(TIME, STRING)
    assert not isinstance(found, str)
    try:
        time: int = found.bind(RecordSurroundings())(text)
    except Undefined as undefined:
        return undefined.reason
    return time


__all__ = ["INTRINSICS", "REFUSED", "conversion_fault", "literal_time", "signature"]
