"""Reading the file of a domain: what it says, checked, with all faults at their lines."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from millstream.calculus.expressions import parse_expression
from millstream.calculus.syntax import Constant
from millstream.calculus.types import BOOLEAN, DURATION, INTEGER, NUMBER, TEXT, TIME
from millstream.errors import CheckError, Fault, ParseError, UsageError, listing, suggest
from millstream.languages.language import read_source
from millstream.languages.rules.areas import AreaError, area_of_file, area_of_wkt
from millstream.languages.rules.ast import Expression, Named
from millstream.languages.rules.domain import (
    USUAL_WARNINGS,
    WARNINGS,
    Area,
    ColumnPath,
    ColumnType,
    Domain,
    Entity,
    Forecast,
    Nearest,
    Place,
)
from millstream.languages.rules.domain_check import misfits
from millstream.languages.rules.read import read_expression
from millstream.languages.rules.units import UnknownUnitError, parse_unit
from millstream.source import Source, Span

_SHIPPED = Path(__file__).parent / "domains"
_TYPES = {"number": NUMBER, "integer": INTEGER, "text": TEXT, "boolean": BOOLEAN, "time": TIME}
_TOP = ("extends", "subject", "locations", "warn", "words", "severities", "define", "place",
        "area", "entity")  # fmt: skip
_KEYS = ("input", "key", "columns", "of", "nearest", "forecast", "keep", "once", "table",
         "source", "time", "slack", "shown", "departed")  # fmt: skip


def load_domain(name: str, folder: Path, span: Span | None = None) -> Domain:
    """The domain of a name that ships with us, or of a file seen from a folder."""
    source, document, home = _document(name, folder, span, ())
    reader = _Reader(source)
    domain = reader.domain(document, home)
    if reader.faults or domain is None:
        raise CheckError(reader.faults)
    return domain


def shipped_domains() -> list[str]:
    return sorted(p.stem for p in _SHIPPED.glob("*.toml"))


def _document(
    name: str, folder: Path, span: Span | None, seen: tuple[str, ...]
) -> tuple[Source, dict[str, Any], Path]:
    """The document of a domain, laid over the one it extends."""
    shipped = _SHIPPED / f"{name}.toml"
    path = folder / name if name.endswith(".toml") else shipped
    if not path.exists() or name in seen:
        known = shipped_domains()
        near = suggest(name, known) or ""
        hint = f"there are: {listing(known)}, or the path of a .toml file. {near}".strip()
        message = f'domains extend each other: "{name}"' if name in seen else f'no domain "{name}"'
        raise (
            UsageError(message, hint=hint)
            if span is None
            else CheckError(message, span=span, hint=hint)
        )
    shown = f"{name}.toml" if path == shipped else str(path)
    source = read_source(path, shown)
    try:
        document = tomllib.loads(source.text)
    except tomllib.TOMLDecodeError as error:
        raise _syntax_error(source, str(error)) from None
    base = document.get("extends")
    if base is not None and not isinstance(base, str):
        raise CheckError('"extends" must be the name of a domain, as a text',
                         span=_Reader(source).place("extends"))  # fmt: skip
    if base is not None:
        _, below, _ = _document(base, path.parent, _Reader(source).place("extends"), (*seen, name))
        document = _over(below, document)
    return source, document, path.parent


def _over(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """Tables are laid over each other; all else replaces what was there."""
    merged = dict(below)
    for key, value in above.items():
        old = merged.get(key)
        both = isinstance(old, dict) and isinstance(value, dict)
        merged[key] = _over(old, value) if both else value  # type: ignore[arg-type]
    return merged


def _syntax_error(source: Source, message: str) -> ParseError:
    place = re.search(r"\(at line (\d+), column (\d+)\)", message)
    text = message.split(" (at ", maxsplit=1)[0]
    if place is None:
        return ParseError(text, span=Span(source, len(source.text), len(source.text)))
    lines = source.text.split("\n")
    offset = sum(len(one) + 1 for one in lines[: int(place[1]) - 1]) + int(place[2]) - 1
    return ParseError(text, span=Span(source, offset, offset + 1))


@dataclass
class _Reader:
    """Mutable: collects faults while the document is read."""

    source: Source
    faults: list[Fault] = field(default_factory=list)

    def place(self, *words: str) -> Span:
        """Where some words stand one after the other; tomllib does not tell."""
        start, end = 0, 0
        for word in words:
            pattern = re.compile(
                rf"(?<![\w.]){re.escape(word)}(?!\w)|(?<=\.){re.escape(word)}(?!\w)"
            )
            match = pattern.search(self.source.text, end)
            if match is not None:
                start, end = match.span()
        return Span(self.source, start, end)

    def fail(self, message: str, *words: str, hint: str | None = None) -> None:
        self.faults.append(Fault(message, self.place(*words), hint))

    def unknown(
        self, name: str, known: Mapping[str, object] | tuple[str, ...], *words: str
    ) -> None:
        hint = f"there are: {listing(known)}. {suggest(name, known) or ''}".strip()
        self.fail(f'unknown "{name}"', *words, name, hint=hint)

    def domain(self, document: dict[str, Any], folder: Path) -> Domain | None:
        for key in document:
            if key not in _TOP:
                self.unknown(key, _TOP)
        tables = document.get("entity", {})
        if not isinstance(tables, dict) or not all(isinstance(t, dict) for t in tables.values()):
            self.fail("expected tables such as [entity.vessel]", "entity")
            return None
        subject = document.get("subject")
        if not isinstance(subject, str) or subject not in tables:
            self.fail('"subject" must name an entity', "subject",
                      hint=f"entities are: {listing(tables)}")  # fmt: skip
            return None
        columns = {n: self.columns(n, t) for n, t in tables.items()}
        self.entities = {n: self.entity(n, t, columns) for n, t in tables.items()}
        mine = tables[subject]
        shown = tuple(
            c for c in self.texts(mine, "shown") or () if self.has_column(subject, c, "shown")
        )
        names = self.names(document.get("define", {}))
        departed = self.expression(mine.get("departed"), names, subject, "departed")
        paths = tuple(self.path(p, "locations") for p in self.texts(document, "locations") or ())
        warn = self.texts(document, "warn")
        warn = USUAL_WARNINGS if warn is None else warn
        for one in warn:
            if one not in WARNINGS:
                self.unknown(one, WARNINGS, "warn")
        if self.entities[subject].key is None:
            self.fail(f'the subject "{subject}" needs a key', "entity", subject)
        located = tuple(p for p in paths if p is not None)
        own = self.own_words(document)
        places, areas = self.places(document), self.areas(document, folder)
        severities = self.texts(document, "severities") or ()
        if len(set(severities)) < len(severities) or not all(s.isidentifier() for s in severities):
            self.fail('severities are different words, such as ["advice", "alarm"]', "severities")
        domain = Domain(subject, self.entities, located, shown, departed, names, warn, folder, own,
                        places, areas, severities)  # fmt: skip
        if not self.faults:
            self.faults += misfits(domain, self.place)
        return domain

    def own_words(self, document: dict[str, Any]) -> dict[str, str]:
        given = self.table(document, "words", WARNINGS) or {}
        for word, own in given.items():
            if not isinstance(own, str) or not own:
                self.fail("expected a word, in quotes", "words", word)
        said = [str(given.get(word, word)) for word in WARNINGS]
        if len(set(said)) < len(said):
            self.fail("two things cannot be called the same", "words")
        return {word: str(own) for word, own in given.items()}

    # --- where things are ---

    def described(self, document: dict[str, Any], kind: str) -> dict[str, dict[str, Any]]:
        """The tables of a kind, such as [place.pilot]."""
        tables = document.get(kind, {})
        if not isinstance(tables, dict) or not all(isinstance(t, dict) for t in tables.values()):
            self.fail(f"expected tables such as [{kind}.name]", kind)
            return {}
        for name in tables:
            if name in self.entities:
                self.fail(f'"{name}" is an entity already', kind, name)
        return tables

    def places(self, document: dict[str, Any]) -> dict[str, Place]:
        places: dict[str, Place] = {}
        for name, table in self.described(document, "place").items():
            pair = ("latitude", "longitude") if "latitude" in table else ("x", "y")
            given = {k: v for k, v in table.items() if k != "unit"}
            is_number = [isinstance(v, (int, float)) and not isinstance(v, bool)
                         for v in given.values()]  # fmt: skip
            if set(given) != set(pair) or not all(is_number):
                self.fail("a place has latitude and longitude in degrees, or x, y and unit",
                          "place", name)  # fmt: skip
                continue
            unit = "degrees" if "latitude" in table else self.text(table, "unit", "place", name)
            try:
                known = parse_unit(unit or "")
            except UnknownUnitError as error:
                self.fail(str(error), "place", name, "unit", hint=error.hint)
                continue
            numbers = (float(given[pair[0]]), float(given[pair[1]]))
            places[name] = Place(numbers, "latitude" in table, known)
        return places

    def areas(self, document: dict[str, Any], folder: Path) -> dict[str, Area]:
        areas: dict[str, Area] = {}
        for name in self.described(document, "area"):
            known = ("wkt", "file", "name")
            table = self.table(document["area"], name, known, "area") or {}
            wkt, file, feature = (self.text(table, key, "area", name) for key in known)
            if (wkt is None) == (file is None):
                self.fail("an area has an outline: wkt, or a GeoJSON file", "area", name)
                continue
            try:
                areas[name] = (
                    area_of_wkt(wkt) if file is None else area_of_file(folder / file, feature)  # type: ignore[arg-type]
                )
            except AreaError as error:
                self.fail(str(error), "area", name, hint=error.hint)
        return areas

    # --- entities ---

    def columns(self, name: str, table: dict[str, Any]) -> dict[str, ColumnType]:
        given = table.get("columns", {})
        if not isinstance(given, dict) or not given:
            self.fail(f'the entity "{name}" needs columns', "entity", name)
            return {}
        return {c: self.column(name, c, what) for c, what in given.items()}

    def column(self, entity: str, name: str, what: object) -> ColumnType:
        if isinstance(what, list) and what and all(isinstance(m, str) for m in what):
            return ColumnType(TEXT, members=tuple(what))
        if not isinstance(what, str):
            self.fail("expected a type, a unit or a list of names", "entity", entity, name)
            return ColumnType(TEXT)
        if what in _TYPES:
            return ColumnType(_TYPES[what])
        try:
            return ColumnType(NUMBER, parse_unit(what))
        except UnknownUnitError as error:
            hint = f"types are: {listing(_TYPES)}, or a unit. {error.hint or ''}".strip()
            self.fail(str(error), "entity", entity, name, what, hint=hint)
            return ColumnType(NUMBER)

    def entity(
        self, name: str, table: dict[str, Any], columns: dict[str, dict[str, ColumnType]]
    ) -> Entity:
        for word in table:
            if word not in _KEYS:
                self.unknown(word, _KEYS, "entity", name)
        self.known = columns
        mine = columns[name]
        here = ("entity", name)
        key = self.text(table, "key", *here)
        if key is not None and key not in mine:
            self.unknown(key, mine, *here, "key")
            key = next(iter(mine), None)
        of = self.text(table, "of", *here)
        near = self.table(table, "nearest", ("to", "among", "where", "by"), *here)
        foreseen = self.table(table, "forecast", ("valid", "at", "lasts"), *here)
        return Entity(
            name,
            self.text(table, "input", *here) or name,
            key,
            mine,
            None if of is None else self.path(of, *here, "of"),
            None if near is None else self.nearest(name, near),
            None if foreseen is None else self.forecast(name, foreseen),
            self.duration(table, name, "keep"),
            self.truth(table, "once", *here),
            self.truth(table, "table", *here),
            self.text(table, "source", *here),
            self.text(table, "time", *here),
            self.duration(table, name, "slack") or 0,
        )

    # --- values of the kinds that are wanted ---

    def given(self, table: Mapping[str, Any], key: str, kind: type, what: str, *words: str) -> Any:
        """What a key holds, or None with a fault if it is not of its kind."""
        value = table.get(key)
        if value is None or isinstance(value, kind):
            return value
        self.fail(f'"{key}" must be {what}, got {json.dumps(value, default=str)}', *words, key)
        return None

    def text(self, table: Mapping[str, Any], key: str, *words: str) -> str | None:
        text: str | None = self.given(table, key, str, "a text", *words)
        return text

    def truth(self, table: Mapping[str, Any], key: str, *words: str) -> bool:
        return bool(self.given(table, key, bool, "true or false, without quotes", *words))

    def texts(self, table: Mapping[str, Any], key: str, *words: str) -> tuple[str, ...] | None:
        what = 'a list of texts, such as ["a", "b"]'
        texts = self.given(table, key, list, what, *words)
        if texts is None or all(isinstance(text, str) for text in texts):
            return None if texts is None else tuple(texts)
        self.fail(f'"{key}" must be {what}', *words, key)
        return None

    def table(
        self, table: Mapping[str, Any], key: str, known: tuple[str, ...], *words: str
    ) -> dict[str, Any] | None:
        what = f"a table of {listing(known)}"
        inner: dict[str, Any] | None = self.given(table, key, dict, what, *words)
        for word in inner or ():
            if word not in known:
                self.unknown(word, known, *words, key)
        return inner

    def path(self, text: str, *words: str) -> ColumnPath | None:
        entity, _, column = text.partition(".")
        if entity in self.known and self.has_column(entity, column, *words):
            return ColumnPath(entity, column)
        if entity not in self.known:
            self.unknown(entity, self.known, *words)
        return None

    def has_column(self, entity: str, column: str, *words: str) -> bool:
        if column in self.known[entity]:
            return True
        self.unknown(column, self.known[entity], *words)
        return False

    def nearest(self, name: str, table: dict[str, Any]) -> Nearest | None:
        here = ("entity", name, "nearest")
        to, among = (self.text(table, key, *here) for key in ("to", "among"))
        by = self.texts(table, "by", *here) if "by" in table else ("latitude", "longitude")
        if to is None or among is None:
            self.fail('"nearest" needs `to` and `among`, the names of two entities', *here)
            return None
        if by is None:
            return None
        if len(by) != 2:
            self.fail('"by" must name two columns, such as ["x", "y"]', *here, "by")
            return None
        for one in (to, among):
            if one not in self.known:
                self.unknown(one, self.known, "entity", name, "nearest")
                return None
            for column in by:
                if not self.has_column(one, column, "entity", name, "nearest"):
                    return None
        where = self.expression(table.get("where"), {}, "entity", name, "where")
        return Nearest(to, among, where, (by[0], by[1]))

    def forecast(self, name: str, table: dict[str, Any]) -> Forecast | None:
        valid = self.text(table, "valid", "entity", name, "forecast") or "valid"
        when = self.text(table, "at", "entity", name, "forecast")
        if when is None:
            self.fail('a forecast needs "at", a column of time such as "vessel.eta"',
                      "entity", name, "forecast")  # fmt: skip
            return None
        at = self.path(when, "entity", name, "forecast")
        lasts = self.duration(table, name, "lasts")
        if at is None or not self.has_column(name, valid, "entity", name, "forecast"):
            return None
        if self.known[name][valid].type != TIME or self.known[at.entity][at.column].type != TIME:
            self.fail("a forecast needs columns of type time", "entity", name, "forecast")
        if lasts is None:
            self.fail('a forecast needs "lasts", such as "1 h"', "entity", name, "forecast")
            return None
        return Forecast(valid, at, lasts)

    def duration(self, table: dict[str, Any], name: str, key: str) -> int | None:
        given = table.get(key)
        if given is None:
            return None
        try:
            parsed = parse_expression(Source(self.source.name, str(given)))
        except ParseError:
            parsed = None
        if isinstance(parsed, Constant) and parsed.type == DURATION:
            assert isinstance(parsed.value, int)
            return parsed.value
        self.fail('expected a duration, such as "1 h"', "entity", name, key)
        return None

    # --- expressions ---

    def names(self, table: object) -> dict[str, Named]:
        names: dict[str, Named] = {}
        if not isinstance(table, dict):
            self.fail("expected a table of names", "define")
            return names
        for name, text in table.items():
            value = self.expression(text, names, "define", name)
            if value is not None:
                names[name] = Named(name, value)
        return names

    def expression(
        self, text: object, names: Mapping[str, Named], *words: str
    ) -> Expression | None:
        """An expression of the rule language; its faults point at the line of the file."""
        if text is None:
            return None
        if not isinstance(text, str):
            self.fail("expected an expression, as a text in quotes", *words)
            return None
        faults: list[Fault] = []
        parsed = read_expression(Source(self.source.name, text), faults, names)
        for fault in faults:
            self.fail(fault.message, *words, hint=fault.hint)
        return parsed
