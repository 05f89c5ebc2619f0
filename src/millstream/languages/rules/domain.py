"""A domain: whom rules are about, what is known of them, and how things find each other.

A domain is data: a TOML file that declares entities, their columns with units, and the
links between them. The `port` ships with Millstream; a rule file names another one by the
path of its file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from millstream.calculus.types import BOOLEAN, INTEGER, NUMBER, TEXT, TIME, Type
from millstream.languages.rules.ast import Expression, Named
from millstream.languages.rules.units import PLAIN, Unit

#: The kinds of warnings; `allowed` is for those who want to hear good news too.
RESTRICTED, CHANGED, LIFTED = "restricted", "reason changed", "lifted"
UNDECIDED, ALLOWED = "undecided", "allowed"
WARNINGS = (RESTRICTED, CHANGED, LIFTED, UNDECIDED, ALLOWED)
#: How much it matters that a requirement fails, the least first.
USUAL_SEVERITIES = ("advice", "warning", "critical")
USUAL_WARNINGS = (RESTRICTED, CHANGED, LIFTED, UNDECIDED)


@dataclass(frozen=True, slots=True)
class ColumnType:
    """What a column holds: a number in a unit, a member of an enumeration, and so on."""

    type: Type
    unit: Unit = PLAIN
    members: tuple[str, ...] = ()

    @property
    def is_number(self) -> bool:
        return self.type in (NUMBER, INTEGER)

    @property
    def spoken(self) -> str:
        if self.is_number:
            return self.unit.spoken
        if self.members:
            return f"one of {', '.join(self.members)}"
        return {TEXT: "a text", BOOLEAN: "true or false", TIME: "a time of day and date"}[self.type]


@dataclass(frozen=True, slots=True)
class ColumnPath:
    """`vessel.destination`: a column of an entity."""

    entity: str
    column: str

    def __str__(self) -> str:
        return f"{self.entity}.{self.column}"


@dataclass(frozen=True, slots=True)
class Nearest:
    """The one that lies nearest `to` an entity `among` others for which a condition holds."""

    to: str
    among: str
    where: Expression | None
    by: tuple[str, str] = ("latitude", "longitude")

    @property
    def is_on_globe(self) -> bool:
        return self.by == ("latitude", "longitude")


@dataclass(frozen=True, slots=True)
class Forecast:
    """The row that is valid at a time: the last at or before it, for so many microseconds."""

    valid: str
    at: ColumnPath
    lasts: int


@dataclass(frozen=True, slots=True)
class Entity:
    """A table. `of` is the column of another entity that holds this one's key."""

    name: str
    input: str
    key: str | None
    columns: Mapping[str, ColumnType]
    of: ColumnPath | None = None
    nearest: Nearest | None = None
    forecast: Forecast | None = None
    keep: int | None = None
    is_once: bool = False
    is_table: bool = False
    source: str | None = None
    time: str | None = None
    slack: int = 0

    @property
    def is_singleton(self) -> bool:
        return self.key is None

    def found_by(self) -> set[str]:
        """The entities through which a row of this one is found."""
        entities = {self.of.entity} if self.of is not None else set()
        if self.nearest is not None:
            entities.add(self.nearest.to)
        if self.forecast is not None:
            entities.add(self.forecast.at.entity)
        return entities


@dataclass(frozen=True, slots=True)
class Place:
    """A point that does not move: latitude and longitude in degrees, or x and y in a unit."""

    coordinates: tuple[float, float]
    is_on_globe: bool
    unit: Unit


@dataclass(frozen=True, slots=True)
class Area:
    """What edges enclose, each from one corner to the next: x, y, x, y."""

    edges: tuple[tuple[float, float, float, float], ...]


@dataclass(frozen=True, slots=True)
class Domain:
    """Entities by name; `subject` is the one that rules are about."""

    subject: str
    entities: Mapping[str, Entity]
    locations: tuple[ColumnPath, ...] = ()
    shown: tuple[str, ...] = ()
    departed: Expression | None = None
    names: Mapping[str, Named] = field(default_factory=dict)
    warn: tuple[str, ...] = USUAL_WARNINGS
    folder: Path | None = None
    #: What its users call verdicts and warnings, where it is not what they are called here.
    own_words: Mapping[str, str] = field(default_factory=dict)
    places: Mapping[str, Place] = field(default_factory=dict)
    areas: Mapping[str, Area] = field(default_factory=dict)
    #: Empty unless the domain names its own.
    severities: tuple[str, ...] = ()

    def column(self, path: ColumnPath) -> ColumnType:
        return self.entities[path.entity].columns[path.column]

    def is_reachable(self, name: str) -> bool:
        """Whether each subject has one such entity."""
        entity = self.entities[name]
        linked = entity.of is not None or entity.nearest is not None
        return name == self.subject or linked or entity.is_singleton

    def members(self) -> dict[str, list[ColumnPath]]:
        """The members of all enumerations, and where they occur."""
        places: dict[str, list[ColumnPath]] = {}
        for entity in self.entities.values():
            for name, column in entity.columns.items():
                for member in column.members:
                    places.setdefault(member, []).append(ColumnPath(entity.name, name))
        return places

    def words(self) -> dict[str, str]:
        """What the names of entities and of members are: no expression can have them."""
        meanings = dict.fromkeys(self.entities, "an entity of the domain")
        meanings |= dict.fromkeys(self.places, "a place of the domain")
        meanings |= dict.fromkeys(self.areas, "an area of the domain")
        for name, places in self.members().items():
            meanings[name] = f"a value of {places[0]}"
        return meanings
