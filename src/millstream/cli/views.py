"""Options of commands that belong to one language, and the views they ask for."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping

from millstream.api import Compiled
from millstream.cli.show import print_json
from millstream.errors import UsageError, listing
from millstream.languages import languages
from millstream.languages.language import Option, Shown, function_named


def language_options(command: str) -> Iterator[Option]:
    for language in languages().values():
        yield from (option for option in language.options if option.command == command)


def add_language_options(parser: argparse.ArgumentParser, command: str) -> None:
    for option in language_options(command):
        if option.metavar is None:
            parser.add_argument(*option.flags, action="store_true", help=option.help)
        else:
            parser.add_argument(*option.flags, metavar=option.metavar, help=option.help)


def asked_view(arguments: argparse.Namespace) -> Option | None:
    """The option that asks for a view instead of what the command does by itself."""
    given = (
        o for o in language_options(arguments.command) if o.view and getattr(arguments, o.name)
    )
    return next(given, None)


def refuse_without_view(arguments: argparse.Namespace) -> None:
    """An option that only says more about a view is none without it."""
    for language in languages().values():
        own = [o for o in language.options if o.command == arguments.command]
        views = [o.flags[0] for o in own if o.view]
        for option in own:
            is_detail = option.view is None and option.sets is None
            if is_detail and getattr(arguments, option.name) is not None:
                raise UsageError(f"{option.flags[0]} goes with {listing(views)}")


def rounds_asked(arguments: argparse.Namespace) -> int | None:
    """How often a program is to go round, by whatever word its language has for it."""
    for option in language_options(arguments.command):
        given = getattr(arguments, option.name) if option.sets == "rounds" else None
        if given is not None:
            if not given.isdigit():
                raise UsageError(f'expected {option.flags[0]} and a number, got "{given}"')
            return int(given)
    return None


def names_asked(arguments: argparse.Namespace) -> dict[str, str]:
    """Names that options of a language set."""
    given: dict[str, str] = {}
    for option in language_options(arguments.command):
        value = getattr(arguments, option.name.replace("-", "_"), None)
        if option.sets == "name" and value:
            given[option.name] = value if isinstance(value, str) else "true"
    return given


def show_view(
    option: Option,
    arguments: argparse.Namespace,
    inputs: Mapping[str, str],
    compiled: Callable[[], Compiled],
) -> int:
    assert option.view is not None
    shown: Shown | None = function_named(option.view)(arguments, inputs, compiled)
    if shown is None:
        sys.stdout.flush()
    elif arguments.format == "json":
        print_json(shown.records())
    else:
        sys.stdout.write(shown.text())
    return 0
