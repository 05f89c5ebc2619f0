"""What brokers tell each other.

*Knowledge* flows down: a `KnownRecord` has what has changed in a relation behind one number up to
another, and `Numbers` only says up to where there is something. *Curiosity* flows up: what is here
and what is missing. Messages may be lost, come twice, late, and in any order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from millstream.broker.records import KnownRecord, known_record, read_known
from millstream.languages.served import BrokerPart


class Wish(Enum):
    """What a broker wants to be told of a relation."""

    ROWS = "rows"
    #: Only up to where there is something.
    NUMBERS = "numbers"
    #: It is final here, or nobody reads it.
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Numbers:
    """There is something in a relation up to a number."""

    relation: str
    edition: str
    incarnation: str
    through: int
    #: Logs that it is made of and that are gone, so that nothing will come any more.
    lost: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Curiosity:
    """All up to `through` is here, and something up to `heard` apart from the gaps.

    A gap is behind its first number, up to its second.
    """

    relation: str
    edition: str
    incarnation: str
    through: int
    heard: int
    gaps: tuple[tuple[int, int], ...]
    wish: Wish


Message = KnownRecord | Numbers | Curiosity


def written(message: Message) -> dict[str, Any]:
    match message:
        case KnownRecord():
            return {"kind": "known", **known_record(message)}
        case Numbers(relation, edition, incarnation, through, lost):
            return {"kind": "numbers", "relation": relation, "edition": edition,
                    "incarnation": incarnation, "through": through, "lost": lost}  # fmt: skip
        case Curiosity():
            return {
                "kind": "curiosity", "relation": message.relation, "edition": message.edition,
                "incarnation": message.incarnation, "through": message.through,
                "heard": message.heard, "gaps": message.gaps, "wish": message.wish.value,
            }  # fmt: skip


def read_message(record: Mapping[str, Any], part: BrokerPart) -> Message:
    """What was written so; KeyError, TypeError or ValueError if it was not."""
    relation, edition = str(record["relation"]), str(record["edition"])
    match record["kind"]:
        case "known":
            of = part.imports.get(relation)
            return read_known(record, None if of is None else of.schema)
        case "numbers":
            lost = tuple(str(log) for log in record["lost"])
            return Numbers(relation, edition, str(record["incarnation"]), int(record["through"]),
                           lost)  # fmt: skip
        case "curiosity":
            gaps = tuple((int(after), int(through)) for after, through in record["gaps"])
            return Curiosity(relation, edition, str(record["incarnation"]), int(record["through"]),
                             int(record["heard"]), gaps, Wish(record["wish"]))  # fmt: skip
        case other:
            raise ValueError(f'"{str(other)[:40]}" is no message')
