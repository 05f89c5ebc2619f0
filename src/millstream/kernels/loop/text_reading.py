"""Regular expressions, parts, JSON and clocks, as kernels compute them."""

from __future__ import annotations

import datetime as dt
import functools
import json
import math
import re
import zoneinfo
from collections.abc import Callable
from typing import Any

from millstream.calculus.types import Kind
from millstream.values.instants import render_time


class CannotRead(Exception):
    """The number of what is wrong, among the faults of a function."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@functools.lru_cache(maxsize=512)
def _pattern(written: str) -> re.Pattern[str]:
    try:
        return re.compile(written)
    except (re.error, OverflowError, RecursionError):
        raise CannotRead(0) from None


def _like(text: str, pattern: str) -> bool:
    return _pattern(pattern).search(text) is not None


def _extract(text: str, pattern: str, group: int = 0) -> Any:
    match = _pattern(pattern).search(text)
    return match[group] if match and 0 <= group <= _pattern(pattern).groups else None


def _replace(text: str, pattern: str, new: str) -> str:
    try:
        return _pattern(pattern).sub(new, text)
    except (re.error, IndexError):
        raise CannotRead(0) from None


def _split(text: str, separator: str) -> list[str]:
    return text.split(separator) if separator else [text]


def _split_part(text: str, separator: str, number: int) -> str:
    parts = _split(text, separator)
    if number == 0 or abs(number) > len(parts):
        return ""
    return parts[number - 1 if number > 0 else number]


def _dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _refuse(constant: str) -> Any:
    raise ValueError(constant)


@functools.lru_cache(maxsize=512)
def _path(written: str) -> tuple[str | int, ...]:
    """The names and numbers of a path, read from left to right."""
    if written[:1] != "$":
        raise CannotRead(1)
    steps: list[str | int] = []
    at = 1
    while at < len(written):
        quoted = re.compile(r'\."([^"]*)"').match(written, at)
        number = re.compile(r"\[([0-9]+)\]").match(written, at)
        name = re.compile(r'\.([^.\[\]"\s]+)').match(written, at)
        step = quoted or number or name
        if step is None:
            raise CannotRead(1)
        steps.append(int(step[1]) if number else step[1])
        at = step.end()
    return tuple(steps)


def _at(text: str, path: str) -> Any:
    try:
        value = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise CannotRead(0) from None
    for step in _path(path):
        match value:
            case list() if isinstance(step, int):
                value = value[step] if step < len(value) else None
            case dict() if isinstance(step, str):
                value = value.get(step)
            case _:
                value = None
    return value


def _whole(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise CannotRead(0) from None
    return text


def _json_value(text: str, path: str) -> Any:
    match _at(text, path):
        case None | dict() | list():
            return None
        case str(value):
            return _whole(value)
        case bool(value):
            return str(value).lower()
        case value:
            return repr(value)


def _json_query(text: str, path: str) -> Any:
    value = _at(text, path)
    return None if value is None else _whole(_dumped(value))


def _json_text(text: str, path: str) -> Any:
    value = _at(text, path)
    return _whole(_dumped(value)) if isinstance(value, (dict, list)) else _json_value(text, path)


@functools.lru_cache(maxsize=64)
def _zone(name: str) -> zoneinfo.ZoneInfo:
    try:
        return zoneinfo.ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise CannotRead(0) from None


_START = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def _local_time(time: int, zone: str) -> int:
    there = _zone(zone)
    try:
        moment = _START + dt.timedelta(microseconds=time)
        offset = moment.astimezone(there).utcoffset() or dt.timedelta()
    except OverflowError:
        raise CannotRead(1) from None
    return time + offset // dt.timedelta(microseconds=1)


def _zoned_time(shown: int, zone: str) -> int:
    there = _zone(zone)
    try:
        clock = (_START + dt.timedelta(microseconds=shown)).replace(tzinfo=there)
        offset = clock.utcoffset() or dt.timedelta()
        (_START + dt.timedelta(microseconds=shown)).astimezone(dt.UTC)
    except OverflowError:
        raise CannotRead(1) from None
    return shown - offset // dt.timedelta(microseconds=1)


def _json_of_time(time: int) -> str:
    text = render_time(time)
    if text is None:
        raise CannotRead(0)
    return _dumped(text)


READING: dict[str, Callable[..., Any]] = {
    "regexp_like": _like,
    "regexp_extract": _extract,
    "regexp_replace": _replace,
    "split_part": _split_part,
    "split": lambda text, separator: _dumped(_split(text, separator)),
    "json_value": _json_value,
    "json_query": _json_query,
    "json_text": _json_text,
    "local_time": _local_time,
    "zoned_time": _zoned_time,
}

AS_JSON: dict[Kind, Callable[[Any], Any]] = {
    Kind.TEXT: _dumped,
    Kind.INTEGER: str,
    Kind.BOOLEAN: lambda value: "true" if value else "false",
    Kind.NUMBER: lambda number: repr(number + 0.0) if math.isfinite(number) else "null",
    Kind.TIME: _json_of_time,
    Kind.DURATION: lambda duration: _dumped(f"{duration}us"),
}
