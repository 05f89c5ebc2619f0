"""What a broker decides, and what it makes of its log."""

from __future__ import annotations

import random
from typing import Any

import pytest

from millstream.broker import publishers
from millstream.broker.asking import asked
from millstream.broker.core import Accepted, Broker, Refused, Silence
from millstream.broker.cursor import Subscriber
from millstream.broker.log import Log
from millstream.broker.ticks import FURTHEST
from millstream.errors import CheckError, PlanError, UsageError
from tests.broker.world import CrashingDisk, SetClock, batch, opened, served

STREAM = "CREATE STREAM S (t: time -> x: shares){};"
VIEW = "CREATE VIEW V (SELECT SUM(x) AS total, COUNT(*) AS n FROM S); subscriptions V;"


def broker_of(options: str = "", *, disk: CrashingDisk | None = None, now: int = 100) -> Broker:
    text = STREAM.format(f" {options}" if options else "") + VIEW
    return opened(served(text), disk or CrashingDisk(), SetClock(now))


def fates(answer: Any) -> list[tuple[str, int | None]]:
    assert isinstance(answer, Accepted), answer
    return [(j.fate.value, j.tick) for j in answer.judged]


def publish(broker: Broker, *rows: tuple[Any, ...], by: str = "", number: int = 0) -> Any:
    (answer,) = broker.commit([batch("S", rows, by, number)])
    return answer


def total(broker: Broker) -> tuple[Any, ...]:
    broker.evaluate()
    (row,) = broker.views["V"].rows
    names = broker.views["V"].view.schema.names
    return tuple(row[names.index(n)] for n in ("total", "n", "_final"))


def test_a_row_is_accepted_late_or_rejected() -> None:
    broker = broker_of("SLACK 5 MICROSECONDS")
    assert fates(publish(broker, (10, 1), (12, 2))) == [("accepted", 10), ("accepted", 12)]
    assert fates(publish(broker, (6, 1), (7, 1), (10, 5))) == [
        ("late", 6), ("accepted", 7), ("rejected", 10)]  # fmt: skip
    assert fates(publish(broker, (100 + FURTHEST + 1, 1))) == [("rejected", 100 + FURTHEST + 1)]
    assert total(broker) == (4, 3, False)


def test_a_row_without_a_tick_is_given_one() -> None:
    broker = broker_of()
    assert fates(publish(broker, (None, 1), (None, 1))) == [("accepted", 100), ("accepted", 101)]
    assert fates(publish(broker, (None, 1))) == [("accepted", 102)]


def test_ties_shift_to_the_next_free_tick() -> None:
    broker = broker_of("TIES SHIFT SLACK 1 SECOND")
    assert [t for _, t in fates(publish(broker, (5, 1), (5, 1), (6, 1), (5, 1)))] == [5, 6, 7, 8]


def test_a_batch_that_comes_again_is_counted_once() -> None:
    broker = broker_of("SLACK 1 SECOND")
    first = publish(broker, (10, 1), by="p", number=7)
    again = publish(broker, (10, 1), by="p", number=7)
    assert again.position == first.position and fates(again) == [("duplicate", 10)]
    other = publish(broker, (11, 1), by="p", number=7)
    assert isinstance(other, Refused) and other.status == 409
    publish(broker, (12, 1), by="p", number=9)
    assert broker.knowledge.publishers["p"].seen.gaps() == [(8, 8)]
    assert total(broker) == (2, 2, False)


def test_what_was_answered_long_ago_is_still_counted_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(publishers, "REMEMBERED_ROWS", 3)
    monkeypatch.setattr(publishers, "REMEMBERED", 3)
    broker = broker_of("SLACK 1 SECOND")
    for n in range(1, 7):
        publish(broker, (2 * n, 1), (2 * n + 1, 1), by="p", number=n)
    for n, expected in ((1, [None] * 2), (5, [None] * 2), (6, [12, 13])):
        again = publish(broker, (2 * n, 1), (2 * n + 1, 1), by="p", number=n)
        assert fates(again) == [("duplicate", tick) for tick in expected]
    assert isinstance(publish(broker, (1, 1), by="p", number=5), Refused)
    assert total(broker) == (12, 12, False)


def test_silence_makes_what_ends_final_and_later_rows_late() -> None:
    broker = broker_of("UNTIL 50 SLACK 1 SECOND")
    publish(broker, (50, 3))
    assert total(broker) == (3, 1, False)
    broker.commit([Silence("S", 49)])
    assert total(broker) == (3, 1, True)
    assert fates(publish(broker, (20, 3))) == [("late", 20)]
    assert isinstance(broker.commit([Silence("S", 101)])[0], Refused)
    assert isinstance(broker.commit([Silence("T", 1)])[0], Refused)


def test_a_heartbeat_declares_silence() -> None:
    broker = broker_of("HEARTBEAT 30 MICROSECONDS UNTIL 60")
    broker.beat()
    assert fates(publish(broker, (70, 1), (71, 1))) == [("rejected", None)] * 2
    assert fates(publish(broker, (60, 1))) == [("late", 60)]
    assert broker.knowledge.ticks["S"].is_over


def test_numbers_of_all_kinds_outlast_a_restart() -> None:
    text = """CREATE STREAM S (t: time -> x: number, y: text, z: boolean);
        CREATE VIEW V (SELECT t, x, y, z FROM S); subscriptions V;"""
    disk = CrashingDisk()
    first = opened(served(text), disk, SetClock())
    values = [1.0, 0.1, -0.0, float("inf"), float("-inf"), 5e-324, 2.0**53 + 2]
    first.commit([batch("S", [(n, x, "ü\n\0", True) for n, x in enumerate(values, 1)])])
    first.evaluate()
    second = opened(served(text), disk, SetClock())
    assert repr(second.views["V"].rows) == repr(first.views["V"].rows)


def test_a_full_disk_is_told_and_passes() -> None:
    disk = CrashingDisk(3)
    broker = broker_of(disk=disk)
    disk.full_at = disk.calls + 1
    full = publish(broker, (10, 1), by="p", number=1)
    assert isinstance(full, Refused) and full.status == 507
    assert fates(publish(broker, (10, 1), by="p", number=1)) == [("accepted", 10)]
    assert total(broker_of(disk=disk)) == (1, 1, False)


def test_a_log_that_could_not_be_made_durable_is_not_trusted() -> None:
    disk = CrashingDisk()
    broker = broker_of(disk=disk)
    disk.fails_to_sync_at = disk.calls + 2
    for _ in range(2):
        answer = publish(broker, (10, 1))
        assert isinstance(answer, Refused) and answer.status == 503
    assert total(broker) == (0, 0, False)


def written(seed: int = 1) -> CrashingDisk:
    disk = CrashingDisk(seed)
    broker = broker_of(disk=disk)
    for n in range(6):
        publish(broker, (n + 1, n))
    return disk


def rows_in(data: bytes) -> int:
    disk = CrashingDisk()
    disk.files = {"0000000000000001.log": data}
    return int(total(broker_of(disk=disk))[1])


def test_a_torn_end_is_cut_off_at_any_byte() -> None:
    (data,) = written().files.values()
    last = len(list(Log(written()).open())[-1].data) + 20
    for size in range(len(data) - last, len(data)):
        assert rows_in(data[:size]) == 5
    assert rows_in(data) == 6
    assert rows_in(data[: len(data) - last - 1]) == 4


def test_a_flipped_bit_is_never_served() -> None:
    (data,) = written().files.values()
    last = len(list(Log(written()).open())[-1].data) + 20
    chance = random.Random(5)
    for _ in range(60):
        at = chance.randrange(len(data))
        flipped = data[:at] + bytes([data[at] ^ (1 << chance.randrange(8))]) + data[at + 1 :]
        if at >= len(data) - last:
            # Damage at the very end cannot be told from a write that was never finished.
            assert rows_in(flipped) == 5
            continue
        with pytest.raises(PlanError, match="damaged at byte"):
            rows_in(flipped)


def test_a_group_that_was_not_finished_is_cut_off_wherever_it_is_damaged() -> None:
    disk = CrashingDisk()
    broker = broker_of(disk=disk)
    publish(broker, (1, 1))
    (before,) = disk.files.values()
    broker.commit([batch("S", [(n, n)]) for n in (2, 3, 4)])
    (data,) = disk.files.values()
    length = (len(data) - len(before)) // 3
    for number in range(3):
        at = len(before) + number * length + 30
        assert rows_in(data[:at] + bytes(8) + data[at + 8 :]) == 1 + number
    publish(broker, (5, 5))
    (data,) = disk.files.values()
    with pytest.raises(PlanError, match="damaged at byte"):
        rows_in(data[:at] + bytes(8) + data[at + 8 :])


def test_after_a_start_only_what_is_short_is_taken_one_by_one() -> None:
    """Who comes back goes on behind the last small records; large ones begin anew."""
    text = "CREATE STREAM S (t: time -> x: string);" + VIEW.replace("SUM(x)", "MAX(x)")
    program, disk = served(text), CrashingDisk()
    broker = opened(program, disk, SetClock(100))
    tokens = []
    for tick, x in ((1, "small"), (2, "x" * 200_000), (3, "z"), (4, "y")):
        publish(broker, (tick, x))
        broker.evaluate()
        tokens.append(Subscriber(broker, asked(program.views["V"])).next()[-1].token)
    again = opened(program, disk, SetClock(100))
    told = [Subscriber(again, asked(program.views["V"]), token).next()[0].kind for token in tokens]
    assert ["reset", "changes", "changes", "live"] == told


def test_nobody_is_told_less_while_a_broker_that_begins_again_catches_up() -> None:
    broker = broker_of()
    wanted = asked(broker.views["V"].view)
    publish(broker, (10, 1))
    broker.evaluate()
    token = Subscriber(broker, wanted).next()[-1].token
    publish(broker, (20, 2))
    ahead = token.rpartition(".")[0] + f".{broker.log.number}"
    beyond = token.rpartition(".")[0] + f".{broker.log.number + 1}"
    assert Subscriber(broker, wanted, beyond).next()[0].kind == "reset"
    subscriber = Subscriber(broker, wanted, ahead)
    assert subscriber.next() == [], "what it has heard of is not shown yet"
    broker.evaluate()
    assert [message.kind for message in subscriber.next()] == ["live"]


def test_streams_keep_their_columns() -> None:
    disk = written()
    other = STREAM.format("").replace("shares", "text") + VIEW.replace("SUM(x)", "COUNT(x)")
    with pytest.raises(UsageError, match="the log has rows of S"):
        opened(served(other), disk, SetClock())


def test_a_token_of_another_question_or_program_begins_anew() -> None:
    disk = written()
    broker = broker_of(disk=disk)
    plain, ranges = asked(broker.views["V"].view), asked(broker.views["V"].view, has_ranges=True)
    token = Subscriber(broker, plain).next()[-1].token
    assert [m.kind for m in Subscriber(broker, plain, token).next()] == ["live"]
    assert [m.kind for m in Subscriber(broker, ranges, token).next()][:2] == ["reset", "state"]
    changed = served(STREAM.format("") + VIEW.replace("COUNT(*)", "MAX(x)"))
    again = opened(changed, disk, SetClock())
    wanted = asked(again.views["V"].view)
    assert [m.kind for m in Subscriber(again, wanted, token).next()][:2] == ["reset", "state"]
    for strange in ("", "x", token + "0", token.replace(".", "/"), "é" * 40):
        assert Subscriber(broker, plain, strange).next()[0].kind == "reset"


@pytest.mark.parametrize(("where", "wrong"), [
    ("totl > 1", "unknown column"), ("total >", "expected"), ("total > 1; DROP", "expected"),
    ("EXISTS (SELECT * FROM S)", "cannot ask"), ("total", "expected"),
])  # fmt: skip
def test_conditions_that_are_wrong_are_told(where: str, wrong: str) -> None:
    with pytest.raises((CheckError, UsageError), match=wrong):
        asked(broker_of().views["V"].view, where)


def test_final_only_is_refused_where_nothing_can_become_final() -> None:
    with pytest.raises(UsageError, match="can ever become final"):
        asked(broker_of().views["V"].view, final="only")
    assert asked(broker_of("UNTIL 50").views["V"].view, final="only").final_only
