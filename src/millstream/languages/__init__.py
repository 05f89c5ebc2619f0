"""The languages, each translated to the calculus, known by the ending of their files.

A language lives whole in its folder: front end, Python embedding, views. Its `language.py`
has the one record by which it is known outside.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterable, Mapping
from pathlib import Path

from millstream.errors import UsageError, listing
from millstream.languages.language import NO_NAMES, Language, Translation
from millstream.source import Source

_NAMES = ("brook", "cql", "rules", "sheets", "streamit", "cube", "pipes", "sawzall", "smile")
#: The language of a text of which nothing else is said: the calculus itself.
DEFAULT = _NAMES[0]


@functools.cache
def languages() -> Mapping[str, Language]:
    """All languages by name."""
    modules = (importlib.import_module(f"millstream.languages.{name}.language") for name in _NAMES)
    return {module.LANGUAGE.name: module.LANGUAGE for module in modules}


def translate(source: Source, language: str) -> Translation:
    """What a text in a language means."""
    if language not in languages():
        raise UsageError(
            f'unknown language "{language}"', hint=f"languages are: {listing(languages())}"
        )
    return languages()[language].translated(source)


def require_taker(names: Mapping[str, str], takers: Iterable[Language]) -> None:
    """Values of names are for a program that takes some."""
    if names and not any(language.takes_names for language in takers):
        endings = [e for one in languages().values() if one.takes_names for e in one.endings]
        hint = f"names are set in files that end with {listing(endings)}"
        raise UsageError(f"no program here takes {listing(names)}", hint=hint)


def served_by(path: Path) -> Language | None:
    """The language of a file that a broker serves; None if it is none of these."""
    served = (one for one in languages().values() if one.served is not None)
    return next((one for one in served if path.suffix in one.endings), None)


def translate_file(
    path: Path, name: str | None = None, names: Mapping[str, str] = NO_NAMES
) -> Translation:
    """What a file means; its ending tells the language, and names in it may be set."""
    by_ending = {ending: one for one in languages().values() for ending in one.endings}
    language = by_ending.get(path.suffix)
    if language is None:
        raise UsageError(
            f'cannot tell the language of "{name or path}"',
            hint=f"languages are told by the ending of the file: {listing(by_ending)}",
        )
    require_taker(names, [language])
    return language.written(path, name or str(path), names=names).translate({})
