"""Objects of a store, as files: `s3://bucket/trades/*.parquet`, by Arrow's file systems.

Credentials are those of the environment, as the store's own programs find them. An object is
brought once, as a whole; one that is another by now is refused, because rows of it may have been
taken.
"""

from __future__ import annotations

import fnmatch
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any
from urllib.parse import quote

import pyarrow as pa
from pyarrow import fs

from millstream.connectors.elsewhere.address import Elsewhere, refuse_settings
from millstream.connectors.elsewhere.spool import Spool
from millstream.errors import RunError, UsageError, listing

_SETTINGS = {
    "s3": ("region", "endpoint", "access_key", "secret_key", "anonymous"),
    "gs": ("endpoint", "anonymous"),
    "az": ("account", "account_key", "endpoint"),
}
_PIECE_BYTES = 1 << 22

_PATIENCE = timedelta(seconds=20)


def file_system(place: Elsewhere, text: str) -> Any:
    """The file system of an address; what it does not say, the environment does."""
    given = place.settings
    refuse_settings(place, _SETTINGS[place.scheme], text)
    endpoint = given.get("endpoint", "")
    scheme, _, host = endpoint.rpartition("://")
    at = {"endpoint_override": host, "scheme": scheme or "https"} if host else {}
    is_anonymous = given.get("anonymous", "") in ("true", "1")
    with told(text):
        if place.scheme == "gs":
            # Of itself it would try for a quarter of an hour.
            return fs.GcsFileSystem(anonymous=is_anonymous, retry_time_limit=_PATIENCE, **at)
        if place.scheme == "az":
            account = given.get("account") or os.environ.get("AZURE_STORAGE_ACCOUNT")
            if not account:
                hint = "add ?account=NAME, or set AZURE_STORAGE_ACCOUNT"
                raise UsageError("the account of this store is not said", place=text, hint=hint)
            key = given.get("account_key") or os.environ.get("AZURE_STORAGE_KEY")
            return fs.AzureFileSystem(account_name=account, account_key=key, **_azure_host(at))
        settings: dict[str, Any] = {"anonymous": is_anonymous, **at}
        for key in ("region", "access_key", "secret_key"):
            if key in given:
                settings[key] = given[key]
        return fs.S3FileSystem(**settings)


def _azure_host(at: dict[str, str]) -> dict[str, str]:
    """What other stores call an endpoint: another cloud than Azure's own, or an emulator."""
    if not at:
        return {}
    host, scheme = at["endpoint_override"], at["scheme"]
    return {
        "blob_storage_authority": host, "blob_storage_scheme": scheme,
        "dfs_storage_authority": host, "dfs_storage_scheme": scheme,
    }  # fmt: skip


@contextmanager
def told(text: str) -> Iterator[None]:
    """Errors of a store in one sentence, without what it was asked with."""
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        reason = str(error).split("\n", 1)[0]
        raise RunError(f"the store says: {reason}", place=text) from None


class ObjectsBringer:
    """Mutable: what has been brought of the objects that a pattern takes."""

    def __init__(self, place: Elsewhere, spool: Spool, text: str, *, is_following: bool) -> None:
        self._system = file_system(place, text)
        self._bucket = place.host
        self._pattern = place.path
        self._text = text
        self._folder = spool.folder
        self._is_following = is_following

    def fetch(self) -> bool:
        with told(self._text):
            there = sorted(self._there(), key=lambda info: info.path)
        if not there and not self._is_following:
            raise UsageError("no object matches this address", place=self._text,
                             hint=self._near())  # fmt: skip
        changed = [fault for info in there if (fault := self._bring(info)) is not None]
        if changed:
            raise changed[0]
        return False

    def _there(self) -> list[Any]:
        pattern = f"{self._bucket}/{self._pattern}"
        if not any(sign in self._pattern for sign in "*?[") and not pattern.endswith("/"):
            info = self._system.get_file_info(pattern)
            if info.type is fs.FileType.File:
                return [info]
            pattern += "/"
        if pattern.endswith("/"):
            pattern += "*"
        base = os.path.dirname(pattern.partition("*")[0].partition("[")[0])  # noqa: PTH120 - no path here
        selector = fs.FileSelector(
            base, allow_not_found=True, recursive="/" in pattern[len(base) + 1 :]
        )
        return [
            info for info in self._system.get_file_info(selector)
            if info.type is fs.FileType.File and _matches(info.path, pattern)
        ]  # fmt: skip

    def _near(self) -> str | None:
        folder = f"{self._bucket}/{self._pattern}".rpartition("/")[0]
        with told(self._text):
            selector = fs.FileSelector(folder, allow_not_found=True)
            names = [info.base_name for info in self._system.get_file_info(selector)]
        return f"there are: {listing(sorted(names))}" if names else None

    def _bring(self, info: Any) -> RunError | None:
        """Bring an object, unless it is there; answers what is wrong with one that has changed."""
        key = info.path.removeprefix(f"{self._bucket}/")
        name = quote(key, safe="")
        target, record = self._folder / name, self._folder / f".{name}.seen"
        seen = f"{info.size} {info.mtime_ns}"
        if target.exists():
            if record.read_text() != seen:
                place = f"{self._text} ({key})"
                hint = "give it a new name"
                return RunError("this object has changed since it was read", place=place, hint=hint)
            return None
        record.write_text(seen)
        beside = self._folder / f".{name}.tmp"
        reading = self._system.open_input_stream
        with told(self._text), reading(info.path) as source, beside.open("wb") as file:
            shutil.copyfileobj(source, file, _PIECE_BYTES)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(target)
        return None

    def close(self) -> None:
        """Nothing is open between objects."""


def _matches(path: str, pattern: str) -> bool:
    """A star does not pass a slash, as in names of files."""
    parts, wanted = path.split("/"), pattern.split("/")
    return len(parts) == len(wanted) and all(map(fnmatch.fnmatchcase, parts, wanted))
