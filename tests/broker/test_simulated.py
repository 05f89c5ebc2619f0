"""Crashes, duplicates and disorder from seeds; and bugs that are planted, which must be found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from millstream.broker import core, log, publishers, soft, views
from millstream.broker.env import Disk
from millstream.broker.evaluations import Evaluations
from millstream.broker.journal import Journal
from millstream.broker.ticks import TakenTicks, Ticks
from millstream.engine.storage import codec
from tests.broker.simulator import ACKNOWLEDGED, Simulation
from tests.broker.world import is_found_by
from tests.seeds import in_turn, of_the_day


#: Of 300 seeds, of one broker and of several, 30 are tried each day.
@pytest.mark.parametrize("seed", [*range(8), *in_turn(range(8, 150), 10)])
def test_nothing_is_lost_doubled_or_false(seed: int) -> None:
    first = Simulation(seed)
    assert first.run() == Simulation(seed).run(), "a seed tells one story"


def test_there_are_crashes() -> None:
    assert all(_run(seed).crashes for seed in range(4))


def test_some_begin_from_soft_checkpoints() -> None:
    assert sum(_run(seed).restored for seed in range(6)) >= 3


def _run(seed: int) -> Simulation:
    simulation = Simulation(seed)
    simulation.run()
    return simulation


@pytest.mark.proof
@pytest.mark.parametrize("start", of_the_day(range(0, 50_000, 20), days=50))
def test_nothing_is_lost_doubled_or_false_at_length(start: int) -> None:
    for seed in range(start, start + 20):
        Simulation(seed).run()


# --- planted bugs ---

Plant = Callable[[pytest.MonkeyPatch], None]


def acknowledged_before_durable(patch: pytest.MonkeyPatch) -> None:
    right = log.Log.sync

    def sync(self: log.Log) -> None:
        disk, self.disk = self.disk, cast("Disk", _Lazy(self.disk))
        right(self)
        self.disk = disk

    patch.setattr(log.Log, "sync", sync)


class _Lazy:
    """A disk that says that all is durable."""

    def __init__(self, disk: Any) -> None:
        self.append, self.cut = disk.append, disk.cut

    def sync(self, name: str) -> None:
        """It is not."""


def batches_are_not_recognised(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(publishers.Seen, "__contains__", lambda *_: False)


def shown_before_durable(patch: pytest.MonkeyPatch) -> None:
    right = core.Broker._write

    def write(self: core.Broker, content: Any) -> int:
        number = right(self, content)
        self.unseen.append(self.written.pop())
        if self.evaluations is not None:
            self.evaluate()
        return number

    patch.setattr(core.Broker, "_write", write)


def a_full_disk_takes_nothing_back(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Journal, "roll_back", Journal.commit)


def changes_of_one_position_too_few(patch: pytest.MonkeyPatch) -> None:
    right = views.ViewRows.since
    patch.setattr(views.ViewRows, "since", lambda self, position: right(self, position + 1))


def forgotten_changes_are_not_missed(patch: pytest.MonkeyPatch) -> None:
    right = views.ViewRows.since

    def since(self: views.ViewRows, position: int) -> Any:
        self.floor = 0
        return right(self, position)

    patch.setattr(views.ViewRows, "since", since)


def a_torn_record_is_left_there(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(log.Log, "_cut_off", lambda *_, **__: None)


def straggling_rows_are_settled(patch: pytest.MonkeyPatch) -> None:
    right = Evaluations._released

    def released(self: Evaluations, name: str) -> Any:
        made = right(self, name)
        self.waiting[name].clear()
        return made

    patch.setattr(Evaluations, "_released", released)


def a_later_record_of_a_torn_group_is_damage(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(log, "_GOES_ON", 0)


def a_damaged_checkpoint_is_believed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(codec, "zlib", SimpleNamespace(crc32=lambda *_: 0))


def a_checkpoint_forgets_who_has_published(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(publishers.Publisher, "snapshot", lambda _: publishers.Publisher())


def a_checkpoint_forgets_taken_ticks(patch: pytest.MonkeyPatch) -> None:
    right = Ticks.restore

    def restore(self: Ticks, state: Any) -> None:
        right(self, state)
        self.taken = TakenTicks()

    patch.setattr(Ticks, "restore", restore)


def a_checkpoint_forgets_what_waits(patch: pytest.MonkeyPatch) -> None:
    right = Evaluations.restore
    patch.setattr(Evaluations, "restore", lambda self, state: right(self, {**state, "waiting": {}}))


def a_checkpoint_is_older_than_it_says(patch: pytest.MonkeyPatch) -> None:
    right = core.Broker.frozen

    def frozen(self: core.Broker) -> Any:
        made = right(self)
        return made and replace(made, rows={name: {} for name in made.rows})

    patch.setattr(core.Broker, "frozen", frozen)


def a_checkpoint_counts_on_what_is_not_durable(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(soft, "checksum_at", lambda _, position: None if position else 0)
    right = codec.decode

    def decode(data: Any) -> Any:
        state = right(data)
        if "evaluations" in state:
            state["evaluations"]["checksum"] = None
            state["evaluations"]["position"] += 1
        return state

    patch.setattr(soft, "decode", decode)


AS_TOLD, GONE = "snapshot and changes are the view", "what goes was there"
#: What is planted, the statement that it breaks, and a seed in which it soon does.
PLANTED: dict[Plant, tuple[str, int]] = {
    a_later_record_of_a_torn_group_is_damage: ("a crash damages no log", 8),
    a_damaged_checkpoint_is_believed: ("a broker always starts", 0),
    a_checkpoint_forgets_who_has_published: (ACKNOWLEDGED, 0),
    a_checkpoint_forgets_taken_ticks: ("a tick has one row", 0),
    a_checkpoint_forgets_what_waits: (AS_TOLD, 1),
    a_checkpoint_is_older_than_it_says: (AS_TOLD, 0),
    a_checkpoint_counts_on_what_is_not_durable: ("nothing told is lost", 62),
    acknowledged_before_durable: (ACKNOWLEDGED, 0),
    batches_are_not_recognised: ("a batch has one place", 0),
    shown_before_durable: ("nothing told is lost", 0),
    a_full_disk_takes_nothing_back: (ACKNOWLEDGED, 13),
    changes_of_one_position_too_few: (GONE, 0),
    forgotten_changes_are_not_missed: (GONE, 1),
    a_torn_record_is_left_there: (ACKNOWLEDGED, 0),
    straggling_rows_are_settled: ("at rest a view is what plain Python says", 0),
}


@pytest.mark.parametrize("plant", PLANTED, ids=lambda p: p.__name__)
def test_planted_bugs_are_found_by_what_they_break(
    plant: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    statement, seed = PLANTED[plant]
    plant(monkeypatch)
    is_found_by(statement, lambda number: Simulation(number).run(), (seed, *range(40)))
