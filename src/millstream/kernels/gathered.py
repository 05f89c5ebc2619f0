"""What comes in pieces, gathered until whole instants can be handed on."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from millstream.kernels.consolidate import summed
from millstream.plan.batch import Array, Batch, concat_batches

_MOST = 1 << 16


class Gathered:
    """Mutable: what pieces have made, by queue.

    Of an instant that goes on and on, equal changes of a relation are summed.
    """

    def __init__(self) -> None:
        self.size = 0
        #: Of how much something should be handed on.
        self.most = _MOST
        self._batches: dict[str, list[Batch]] = {}

    def add(self, made: Mapping[str, Batch]) -> None:
        for queue, batch in made.items():
            self._batches.setdefault(queue, []).append(batch)
            self.size += len(batch)

    def up_to(self, until: int) -> dict[str, Batch]:
        """All that is not later, which is let go."""
        whole = {q: concat_batches(some, some[0].type) for q, some in self._batches.items()}
        early, rest = cut_queues(whole, until)
        if sum(map(len, early.values())) == 0 and self.size > self.most:
            rest = {q: summed(b) if b.type.is_relation else b for q, b in rest.items()}
        self._batches = {q: [batch] for q, batch in rest.items()}
        self.size = sum(map(len, rest.values()))
        self.most = 2 * self.size + _MOST
        return early


def cut_queues(
    queues: Mapping[str, Batch], until: int
) -> tuple[dict[str, Batch], dict[str, Batch]]:
    """What is not later than a time, and what is, of each queue."""
    early, late = {}, {}
    for queue, batch in queues.items():
        cut = _count(batch.time, until)
        early[queue], late[queue] = batch.slice(0, cut), batch.slice(cut, len(batch))
    return early, late


def cut_ticks(ticks: Mapping[str, Array], until: int) -> tuple[dict[str, Array], dict[str, Array]]:
    cuts = {name: _count(some, until) for name, some in ticks.items()}
    return (
        {name: some[: cuts[name]] for name, some in ticks.items()},
        {name: some[cuts[name] :] for name, some in ticks.items()},
    )


def _count(times: Array, until: int) -> int:
    """How many times are not later; `until` may be before all that can be written."""
    return int(np.searchsorted(times, until, "right")) if len(times) and until >= times[0] else 0
