"""Where the rows of inputs from elsewhere lie for a run: in its checkpoint, if there is one."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from millstream.connectors.location import Location
from millstream.engine.scratch import checkpoint_folder

FOLDER = "incoming"


def bring(
    places: Mapping[str, Location],
    stack: ExitStack,
    *,
    is_following: bool,
    options: Mapping[str, Any],
) -> dict[str, Location]:
    """Begin to bring the rows of these inputs, until the stack is left; where they can be read."""
    from millstream.connectors.elsewhere.bring import Bringing

    if not places:
        return {}
    folder = stack.enter_context(checkpoint_folder(options.get("checkpoint"))) / FOLDER
    locations: dict[str, Location] = {}
    for name, place in places.items():
        if options.get("rebuild"):
            _forget(folder / name, place)
        bringing = Bringing(place, folder / name, is_following=is_following)
        stack.callback(bringing.close)
        locations[name] = bringing.location
    return locations


def _forget(folder: Path, place: Location) -> None:
    """Everything is brought again; not what another run is bringing at this moment."""
    from millstream.connectors.elsewhere.spool import Spool

    if folder.exists():
        spool = Spool(folder, place.text)
        try:
            shutil.rmtree(folder)
        finally:
            spool.close()
