"""How a CSV file departs from RFC 4180: `trades.csv?separator=;&decimal=,&encoding=latin-1&skip=2`.

An encoding in which every byte is a character, and the first 128 are those of ASCII, is read as it
stands. Any other (UTF-16, Shift JIS) is made UTF-8 while the file is read, as a whole, as if it
were compressed.
"""

from __future__ import annotations

import codecs
import functools
import io
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast
from urllib.parse import unquote

from millstream.errors import UsageError, listing, suggest

#: What a person may write for characters that are hard to write.
_CHARACTERS = {
    "tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "pipe": "|", "space": " ",
    "colon": ":", "single": "'", "double": '"',
}  # fmt: skip
#: No byte is this one: a quote that never comes.
_NO_BYTE = 256
_PIECE_BYTES = 1 << 18
_GROUPED = r"[+-]?[0-9]{{1,3}}(?:{0}[0-9]{{3}})+(?:{1}[0-9]*)?"
#: Blanks that do not break lines, which are written where a blank is meant.
_BLANKS = str.maketrans("\u00a0\u202f", "  ")


@dataclass(frozen=True, slots=True)
class Dialect:
    """Characters of one byte; `quote` may be empty. So many lines are skipped before the header."""

    separator: str = ","
    quote: str = '"'
    decimal: str = "."
    encoding: str = "utf-8"
    skip: int = 0
    #: What may stand between groups of three digits.
    thousands: str = ""

    @property
    def separator_byte(self) -> int:
        return ord(self.separator)

    @property
    def quote_byte(self) -> int:
        return ord(self.quote) if self.quote else _NO_BYTE

    @property
    def is_told(self) -> bool:
        """Whether somebody has said that it is not the standard."""
        return self != STANDARD

    @property
    def is_utf8(self) -> bool:
        return self.encoding == "utf-8" or not _is_bytewise(self.encoding)

    @property
    def is_recoded(self) -> bool:
        """Whether a file must be made UTF-8 before anything is found in it."""
        return self.encoding != "utf-8" and not _is_bytewise(self.encoding)

    def decoded(self, raw: bytes) -> str:
        """The text of bytes as the scanners see them."""
        return raw.decode() if self.is_utf8 else raw.decode(self.encoding)

    def ungrouped(self, text: str) -> str:
        """A number without what stands between its groups of digits; any other text as it is."""
        if not self.thousands:
            return text
        plain = text.translate(_BLANKS) if self.thousands == " " else text
        groups = re.compile(_GROUPED.format(re.escape(self.thousands), re.escape(self.decimal)))
        return plain.replace(self.thousands, "") if groups.fullmatch(plain) else text


STANDARD = Dialect()
SETTINGS = tuple(Dialect.__dataclass_fields__)
_WRITTEN = re.compile(r"\?([a-z]+=[^?]*)$", re.DOTALL)


def split_dialect(text: str) -> tuple[str, Dialect | None]:
    """A location without its dialect, and that, if it has one."""
    match = _WRITTEN.search(text)
    if match is None:
        return text, None
    given: dict[str, object] = {}
    for part in re.split(r"&(?=[a-z]+=)", match[1]):
        key, _, value = part.partition("=")
        given[key] = unquote(value)
    return text[: match.start()], dialect_of(given, text)


def dialect_of(given: Mapping[str, object], place: str) -> Dialect:
    """The dialect that settings describe, all of them checked."""
    for key in given:
        if key not in SETTINGS:
            hint = f"settings are: {listing(SETTINGS)}. {suggest(key, SETTINGS) or ''}".strip()
            raise UsageError(f'unknown setting "{key}" of a CSV file', place=place, hint=hint)
    separator = _character("separator", given.get("separator", ","), place)
    quote = _character("quote", given.get("quote", '"'), place, can_be_none=True)
    decimal = _character("decimal", given.get("decimal", "."), place)
    if decimal not in (".", ","):
        raise UsageError(f"a decimal sign is . or , and not {decimal!r}", place=place)
    if separator == quote:
        raise UsageError(f"{separator!r} cannot be separator and quote", place=place)
    encoding = _encoding(str(given.get("encoding", "utf-8")), place)
    skip = str(given.get("skip", 0))
    if not re.fullmatch(r"[0-9]{1,9}", skip):
        raise UsageError(f'expected a number of lines to skip, got "{skip}"', place=place)
    thousands = _character("thousands", given.get("thousands", ""), place, can_be_none=True)
    if thousands == decimal:
        raise UsageError(f"{decimal!r} cannot be decimal sign and thousands", place=place)
    return Dialect(separator, quote, decimal, encoding, int(skip), thousands)


def _character(what: str, given: object, place: str, *, can_be_none: bool = False) -> str:
    written = str(given)
    if can_be_none and written in ("", "none"):
        return ""
    character = _CHARACTERS.get(written, written)
    is_plain = len(character) == 1 and character.isascii() and character not in "\r\n"
    if not is_plain or character.isalnum():
        raise UsageError(
            f"expected one character as {what}, no letter or digit, got {written!r}",
            place=place, hint="; and | are such, and tab, comma, semicolon, pipe and space",
        )  # fmt: skip
    return character


def _encoding(name: str, place: str) -> str:
    try:
        codec = codecs.lookup(name)
        "".encode(codec.name)  # not every codec is one of texts
    except (LookupError, ValueError):
        hint = "such as utf-8, latin-1, cp1252 or utf-16"
        raise UsageError(f'unknown encoding "{name}"', place=place, hint=hint) from None
    return "utf-8" if codec.name in ("utf-8", "utf-8-sig", "ascii") else codec.name


@functools.lru_cache
def _is_bytewise(encoding: str) -> bool:
    """Whether each byte is a character (or none), and the first 128 are those of ASCII."""
    ascii_ = bytes(range(128))
    if ascii_.decode(encoding, "replace") != ascii_.decode():
        return False
    return all(len(bytes([byte]).decode(encoding, "replace")) == 1 for byte in range(128, 256)) \
        and len(bytes(range(128, 256)).decode(encoding, "replace")) == 128  # fmt: skip


class Recoded(io.RawIOBase):
    """Mutable: a file of another encoding as UTF-8, from its beginning to its end."""

    def __init__(self, stream: BinaryIO, encoding: str) -> None:
        self._stream = stream
        self._encoding = encoding
        self._decoder = codecs.getincrementaldecoder(encoding)()
        self._rest = b""
        self._is_over = False

    def readable(self) -> bool:
        return True

    def readinto(self, into: Any) -> int:
        while not self._rest and not self._is_over:
            raw = self._stream.read(_PIECE_BYTES)
            self._is_over = not raw
            try:
                self._rest = self._decoder.decode(raw, final=not raw).encode()
            except UnicodeError as error:
                reason = getattr(error, "reason", error)
                raise OSError(0, f"it is not {self._encoding}: {reason}") from None
        size = min(len(into), len(self._rest))
        into[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size

    def close(self) -> None:
        self._stream.close()
        super().close()


def recoded(stream: BinaryIO, dialect: Dialect) -> BinaryIO:
    """The stream as UTF-8, or as it is if its bytes can be taken as they are."""
    if not dialect.is_recoded:
        return stream
    return cast("BinaryIO", io.BufferedReader(Recoded(stream, dialect.encoding)))


def is_read_whole(path: Path, dialect: Dialect) -> bool:
    """Whether there is no way into the middle of a file."""
    return path.suffix == ".gz" or dialect.is_recoded
