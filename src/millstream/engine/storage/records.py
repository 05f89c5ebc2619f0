"""Records: states in files, read with the name of the file in every complaint."""

from __future__ import annotations

from typing import Any

from millstream.engine.storage.codec import DamagedState, decode, encode
from millstream.engine.storage.files import Files


def read_record(files: Files, name: str) -> Any:
    """The state in a file; `DamagedState` names the file if it is not there or not sound."""
    try:
        return decode(files.read(name))
    except FileNotFoundError:
        raise DamagedState(missing(name)) from None
    except DamagedState as reason:
        raise DamagedState(f"the file {name} of the checkpoint is damaged: {reason}") from None


def missing(name: str) -> str:
    return f"the file {name} of the checkpoint is missing"


def write_record(files: Files, name: str, state: Any) -> None:
    files.write(name, encode(state))
