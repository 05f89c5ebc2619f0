"""Who may do what: tokens, of which only digests are kept."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import stat
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from millstream.errors import UsageError, listing
from millstream.server.quotas import UNBOUNDED, Allowance, Quota
from millstream.server.routes import TokenScope

_SHORTEST = 16
#: What a token can be given.
GIVEN = tuple(s for s in TokenScope if s is not TokenScope.OPEN)


class Tokens:
    """The scopes of tokens, by their digests, and what is left of their quotas."""

    def __init__(
        self, scopes: Mapping[str, frozenset[TokenScope]],
        quotas: Mapping[str, Quota] = MappingProxyType({}),
    ) -> None:  # fmt: skip
        self._scopes = {_digest(token): some for token, some in scopes.items()}
        self._allowances = {_digest(token): Allowance(quota) for token, quota in quotas.items()}

    def add(self, token: str, scopes: frozenset[TokenScope]) -> None:
        """One more, beside what it may do already."""
        digest = _digest(token)
        self._scopes[digest] = self._scopes.get(digest, frozenset()) | scopes

    def allowance(self, token: str) -> Allowance:
        """What a known token may still have; without a quota that is all."""
        return self._allowances.get(_digest(token), UNBOUNDED)

    def scopes(self, token: str) -> frozenset[TokenScope] | None:
        """What a token may do; None if it is unknown. Takes as long for every token."""
        digest, known = _digest(token), None
        for one, scopes in self._scopes.items():
            if hmac.compare_digest(one, digest):
                known = scopes
        return known


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def new_token() -> str:
    return secrets.token_urlsafe(24)


def read_tokens(path: Path) -> Tokens:
    """A file with a token and its scopes in each line, which only its owner can read."""
    try:
        mode = path.stat().st_mode
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        raise UsageError("this file of tokens cannot be read", place=str(path)) from None
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise UsageError("others can read this file of tokens", place=str(path),
                         hint=f"chmod 600 {path}")  # fmt: skip
    known = {s.value: s for s in GIVEN}
    made: dict[str, frozenset[TokenScope]] = {}
    quotas: dict[str, Quota] = {}
    for number, line in enumerate(lines, 1):
        words = line.split("#", 1)[0].replace(",", " ").split()
        if not words:
            continue
        token, *rest = words
        scopes = [word for word in rest if "=" not in word]
        quota = _quota([word for word in rest if "=" in word])
        strange = [s for s in scopes if s not in known] or quota is None
        if len(token) < _SHORTEST or not scopes or strange:
            hint = (
                f"a token of {_SHORTEST} characters or more, then some of: {listing(known)}; "
                "and perhaps requests=N or rows=N, so many a second"
            )
            raise UsageError(f"line {number} is no token with scopes", place=str(path), hint=hint)
        made[token] = frozenset(known[s] for s in scopes)
        if quota is not None and quota != Quota():
            quotas[token] = quota
    if not made:
        raise UsageError("there is no token in this file", place=str(path))
    return Tokens(made, quotas)


def _quota(words: list[str]) -> Quota | None:
    """What words such as rows=1000 allow; None if they are wrong."""
    given: dict[str, int] = {}
    for word in words:
        name, _, number = word.partition("=")
        if name not in ("requests", "rows") or not number.isascii() or not number.isdecimal():
            return None
        given[name] = int(number[:12])
    return Quota(**given) if all(given.values()) else None
