"""Several brokers under loss, disorder and crashes, from seeds; planted bugs must be found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from millstream.broker import evaluations, incoming, knowledge, outgoing
from millstream.broker.core import Broker
from millstream.calculus.types import START_OF_TIME
from tests.broker.network import Network
from tests.broker.world import is_found_by
from tests.seeds import in_turn, of_the_day


@pytest.mark.parametrize("start", range(0, 24, 6))
def test_nothing_is_false_and_all_is_complete_in_the_end(start: int) -> None:
    for seed in range(start, start + 6):
        Network(seed).run()


@pytest.mark.parametrize("seed", [*range(4), *in_turn(range(24, 150), 10)])
def test_a_seed_tells_one_story(seed: int) -> None:
    assert Network(seed).run() == Network(seed).run()


def test_everything_goes_wrong_somewhere() -> None:
    some = [Network(seed, turns=120) for seed in range(8)]
    for one in some:
        one.run()
    assert sum(one.crashes for one in some) > 5
    assert any(one.losses for one in some), "a broker has lost its disk"
    assert any(one.loss == 0.5 for one in some) and any(one.twice == 0.5 for one in some)
    assert any(p.part.part and any(e.is_passed_on for e in p.part.part.exports.values())
               for one in some for p in one.places.values())  # fmt: skip
    assert any(p.part.part and any(i.is_lazy for i in p.part.part.imports.values())
               for one in some for p in one.places.values())  # fmt: skip


@pytest.mark.proof
@pytest.mark.parametrize("start", of_the_day(range(0, 50_000, 20), days=50))
def test_nothing_is_false_and_all_is_complete_at_length(start: int) -> None:
    for seed in range(start, start + 20):
        Network(seed).run()


# --- planted bugs ---

Plant = Callable[[pytest.MonkeyPatch], None]


def progress_overtakes_rows(patch: pytest.MonkeyPatch) -> None:
    def known(self: outgoing.Outgoing, broker: Broker) -> dict[str, int]:
        there = broker.knowledge  # and not that of what has been worked out
        return {
            stream: min(there.known_through(source, stream) for source in sources)
            for stream, sources in self.one.known.items()
        }

    patch.setattr(outgoing.Outgoing, "_known", known)


def progress_of_early_messages_counts(patch: pytest.MonkeyPatch) -> None:
    right = incoming.Incoming.taken

    def taken(self: incoming.Incoming, held: knowledge.HeldRelation, known: Any) -> Any:
        known = list(known)
        ready = right(self, held, known)
        early = [one for one in self.early if one in known]
        if early and not ready:
            told = max(early, key=lambda one: one.through)
            number = held.through
            ready = [replace(told, after=number, through=number + 1, changes=())]
        return ready

    patch.setattr(incoming.Incoming, "taken", taken)


def the_gap_list_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    right = knowledge.HeldRelation.fits

    def fits(self: knowledge.HeldRelation, known: Any) -> bool:
        is_later = known.through > self.through and known.after >= self.through
        return right(self, known) or (known.incarnation == self.incarnation and is_later)

    patch.setattr(knowledge.HeldRelation, "fits", fits)


def what_comes_twice_counts_twice(patch: pytest.MonkeyPatch) -> None:
    right = knowledge.HeldRelation.fits

    def fits(self: knowledge.HeldRelation, known: Any) -> bool:
        is_again = known.incarnation == self.incarnation and known.through == self.through
        return right(self, known) or (is_again and known.after > 0 and known.after != known.through)

    patch.setattr(knowledge.HeldRelation, "fits", fits)


def numbers_are_used_again_after_a_restart(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Network, "_identity", lambda _: "always the same")


def another_incarnation_may_go_back(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(knowledge.HeldRelation, "covers", lambda *_: True)


def a_gap_is_answered_from_one_number_too_late(patch: pytest.MonkeyPatch) -> None:
    right = outgoing.Outgoing.between

    def between(self: outgoing.Outgoing, broker: Broker, after: int, mark: Any) -> Any:
        made = right(self, broker, after + 1 if after else 0, mark)
        return replace(made, after=after) if made.after else made

    patch.setattr(outgoing.Outgoing, "between", between)


def a_whole_relation_is_added_to_what_is_there(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(evaluations, "difference", lambda _, told: told)


def a_checkpoint_is_newer_than_what_it_holds(patch: pytest.MonkeyPatch) -> None:
    right = evaluations.Evaluations.snapshot

    def snapshot(self: evaluations.Evaluations) -> Any:
        empty = {name: evaluations.blob_of(self._schema(name), {}) for name in self.held}
        return {**right(self), "held": empty}

    patch.setattr(evaluations.Evaluations, "snapshot", snapshot)


def a_checkpoint_forgets_how_far_it_is(patch: pytest.MonkeyPatch) -> None:
    right = knowledge.Knowledge.restore
    patch.setattr(
        knowledge.Knowledge, "restore", lambda self, state: right(self, {**state, "held": {}})
    )


def nobody_asks_twice(patch: pytest.MonkeyPatch) -> None:
    right = incoming.Incoming.question

    def question(self: incoming.Incoming, held: knowledge.HeldRelation, now: int) -> Any:
        made = right(self, held, now)
        self.next_ask = 1 << 62
        return made

    patch.setattr(incoming.Incoming, "question", question)
    patch.setattr(incoming.Incoming, "_ask_by", lambda *_: None)


def one_way_is_enough_to_be_known(patch: pytest.MonkeyPatch) -> None:
    right = knowledge.Knowledge.known_through

    def known_through(self: knowledge.Knowledge, source: str, stream: str) -> int:
        ways = [right(self, one, stream) for one in (*self.held, source)]
        return max(ways, default=START_OF_TIME)

    patch.setattr(knowledge.Knowledge, "known_through", known_through)


def a_relation_is_final_with_one_of_its_streams(patch: pytest.MonkeyPatch) -> None:
    def is_over(self: incoming.Imports, one: Any, held: knowledge.HeldRelation) -> bool:
        return any(held.progress.get(s, START_OF_TIME) >= 200 for s in one.streams)

    patch.setattr(incoming.Imports, "_is_over", is_over)


HELD = "what is held is what was sent"
COMPLETE = "is complete in the end"
#: What is planted, the statement that it breaks, and a seed in which it soon does.
PLANTED: dict[Plant, tuple[str, int]] = {
    progress_overtakes_rows: ("progress does not overtake rows", 4),
    progress_of_early_messages_counts: (HELD, 0),
    the_gap_list_is_forgotten: (HELD, 0),
    what_comes_twice_counts_twice: (HELD, 0),
    numbers_are_used_again_after_a_restart: ("a number means one thing", 30),
    another_incarnation_may_go_back: ("what is known remains so", 30),
    a_gap_is_answered_from_one_number_too_late: (HELD, 0),
    a_whole_relation_is_added_to_what_is_there: (HELD, 0),
    a_checkpoint_is_newer_than_what_it_holds: (HELD, 6),
    a_checkpoint_forgets_how_far_it_is: ("what is known remains so", 20),
    nobody_asks_twice: (COMPLETE, 0),
    one_way_is_enough_to_be_known: ("what is final never changes", 0),
    a_relation_is_final_with_one_of_its_streams: (COMPLETE, 0),
}


@pytest.mark.parametrize("plant", PLANTED, ids=lambda p: p.__name__)
def test_planted_bugs_are_found_by_what_they_break(
    plant: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    statement, seed = PLANTED[plant]
    plant(monkeypatch)
    is_found_by(statement, lambda number: Network(number).run(), (seed, *range(60)))
