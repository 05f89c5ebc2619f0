"""Regular expressions, as PCRE reads them, in bounded time.

PCRE answers, with a limit on how often it may try. Where that does not suffice, RE2 is asked, which
takes time in proportion to the text; a pattern that only PCRE can read has no answer then.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

from millstream.values.undefined import Undefined

#: Some 20 ms of trying.
_TRIES = 1_000_000

#: Where the whole match and each group begin and end, in characters; -1 if it took no part.
Spans = list[tuple[int, int]]


class BadPattern(Exception):
    """The pattern cannot be read; the message says why."""


@dataclass(frozen=True, slots=True)
class Pattern:
    text: str
    groups: int
    #: What the libraries made of it; RE2's is None if it cannot read the pattern.
    pcre: Any
    re2: Any

    def spans(self, text: str) -> Spans | None:
        """The first match, or None."""
        import pcre2

        try:
            match = self.pcre.search(text)
        except pcre2.LibraryError as error:
            return self._without_trying(text, error)
        except UnicodeEncodeError:
            raise Undefined("half of a character in a string") from None
        return None if match is None else [match.span(n) for n in range(self.groups + 1)]

    def matches(self, text: str) -> bool:
        return self.spans(text) is not None

    def _without_trying(self, text: str, error: Exception) -> Spans | None:
        if self.re2 is None:
            raise Undefined(f"the pattern {self.text!r} gives up: {error}") from None
        match = self.re2.search(text)
        return None if match is None else [match.span(n) for n in range(self.groups + 1)]


@functools.lru_cache(maxsize=1024)
def compiled(pattern: str) -> Pattern:
    """The pattern, ready to search; raises BadPattern."""
    import pcre2

    try:
        # Classes such as \w are those of ASCII, as in PCRE if nothing else is said.
        code = pcre2.compile(f"(*LIMIT_MATCH={_TRIES}){pattern}", pcre2.ASCII)
    except pcre2.PatternError as error:
        raise BadPattern(_reason(pattern)) from error
    except UnicodeEncodeError as error:
        raise BadPattern("half of a character in a pattern") from error
    return Pattern(pattern, code.groups, code, _linear(pattern))


def _reason(pattern: str) -> str:
    """What PCRE says of the pattern alone, so that the place it tells is a place in it."""
    import pcre2

    try:
        pcre2.compile(pattern, pcre2.ASCII)
    except pcre2.PatternError as error:
        return str(error).removeprefix("compilation failed at ")
    return "it cannot be read"


def _linear(pattern: str) -> Any:
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error:
        return None


def searched(pattern: str) -> Pattern:
    """The same for a pattern that is only known while the program runs."""
    try:
        return compiled(pattern)
    except BadPattern as bad:
        raise Undefined(f"the pattern {pattern!r} cannot be read: {bad}") from None
