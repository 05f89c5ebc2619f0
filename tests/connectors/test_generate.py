from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from millstream.calculus.graph import Input
from millstream.calculus.types import NUMBER, TEXT, TIME, QueueType, Schema
from millstream.connectors.location import Format, Location, parse_location
from millstream.connectors.read import open_reader
from millstream.connectors.settings import settings_of
from millstream.errors import UsageError
from tests.connectors.inputs import ALL_CHANGES, ALL_TYPES, TRADES, Plain, everything, read_all


def generate(options: dict[str, Any], input_: Input = TRADES, chunk_rows: int = 1000) -> Plain:
    location = Location(Format.GENERATOR, generator=settings_of(options))
    chunks = read_all(open_reader(location, input_, chunk_rows=chunk_rows))
    plain, rejected = everything(chunks, input_)
    assert not rejected
    return plain


def prices(column: dict[str, Any], rows: int = 5000) -> Any:
    options = {"rows": rows, "seed": 1, "columns": {"price": column}}
    return np.array([row[2] for row in generate(options)[2]])


def failure(options: dict[str, Any], input_: Input = TRADES) -> str:
    with pytest.raises(UsageError) as caught:
        generate(options, input_)
    return str(caught.value)


@pytest.mark.parametrize("chunk_rows", [1, 7, 100, 1000])
def test_rows_do_not_depend_on_the_size_of_chunks(chunk_rows: int) -> None:
    options = {"rows": 100, "seed": 3, "columns": {"n": {"walk": 0.5, "max": 101}}}
    assert generate(options, ALL_TYPES) == generate(options, ALL_TYPES, chunk_rows)


def test_rows_that_stand_for_much_come_a_few_at_a_time() -> None:
    location = Location(Format.GENERATOR, generator=settings_of({"rows": 30, "size": 640}))
    chunks = read_all(open_reader(location, TRADES, chunk_rows=100))
    assert [10, 10, 10] == [len(chunk.batch) for chunk in chunks]


def test_a_seed_gives_always_the_same_rows_and_another_gives_others() -> None:
    assert generate({"seed": 3}) == generate({"seed": 3})
    assert generate({"seed": 3}) != generate({"seed": 4})


def test_a_column_does_not_depend_on_the_others() -> None:
    alone = Input("X", QueueType(Schema.of(price=NUMBER)))
    together = [row[2] for row in generate({"rows": 50})[2]]
    assert together == [row[0] for row in generate({"rows": 50}, alone)[2]]


def test_times_start_where_told_and_go_in_steps() -> None:
    times, weights, rows = generate({"rows": 3, "start": "1970-01-01T00:00:01", "interval": "2 s"})
    assert [1_000_000, 3_000_000, 5_000_000] == times
    assert times == [row[1] for row in rows]
    assert weights is None


def test_a_relation_gets_insertions() -> None:
    assert [1, 1, 1] == generate({"rows": 3}, ALL_CHANGES)[1]


def test_the_command_line_form_is_the_same(tmp_path: Path) -> None:
    location = parse_location("generator:rows=20,seed=7", tmp_path)
    plain, _ = everything(read_all(open_reader(location, TRADES)), TRADES)
    assert plain == generate({"rows": 20, "seed": 7})


def test_no_rows_can_be_asked_for() -> None:
    assert ([], None, []) == generate({"rows": 0})


def test_numbers_lie_between_their_bounds() -> None:
    found = prices({"min": 5, "max": 6.5})
    assert 5 <= found.min() < 5.01
    assert 6.49 < found.max() <= 6.5


def test_integers_and_durations_reach_both_bounds() -> None:
    columns = {"i": {"min": -1, "max": 2}, "d": {"min": "1 us", "max": 2}}
    _, _, rows = generate({"rows": 1000, "columns": columns}, ALL_TYPES)
    assert {-1, 0, 1, 2} == {row[1] for row in rows}
    assert {1, 2} == {row[5] for row in rows}


def test_a_walk_goes_in_small_steps_from_its_start() -> None:
    found = prices({"walk": 0.5, "start": 100.0})
    assert abs(found[0] - 100) <= 0.5
    assert 0.4 < np.abs(np.diff(found)).max() <= 0.5


def test_a_walk_stays_above_zero_and_within_its_bounds() -> None:
    assert prices({"walk": 5, "start": 1}).min() >= 0
    bounded = prices({"walk": 5, "start": 1, "min": -2, "max": 3})
    assert -2 <= bounded.min() < bounded.max() <= 3
    assert prices({"walk": 5, "start": -1, "max": 0}).max() <= 0


def test_texts_are_drawn_by_weight() -> None:
    columns = {"sym": {"values": ["A", "B", "C"], "weights": [8, 0, 2]}}
    _, _, rows = generate({"rows": 10_000, "columns": columns})
    found = [row[0] for row in rows]
    assert {"A", "C"} == set(found)
    assert 7_500 < found.count("A") < 8_500


def test_texts_are_dictionary_encoded() -> None:
    location = Location(Format.GENERATOR, generator=settings_of({}))
    chunk = next(open_reader(location, TRADES).chunks())
    assert pa.types.is_dictionary(chunk.batch.column("sym").values.type)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (
            {"columns": {"prise": {}}},
            (
                'input "Trades" has no column "prise"\n'
                '    it has: sym, ts, price. Did you mean "price"?'
            ),
        ),
        (
            {"columns": {"price": {"maxx": 1}}},
            (
                'unknown setting "maxx" of column "price"\n'
                '    settings are: min, max, values, weights, walk, start. Did you mean "max"?'
            ),
        ),
        (
            {"columns": {"sym": {"walk": 1}}},
            'column "sym" does not take "walk"\n    it takes: values, weights',
        ),
        (
            {"columns": {"ts": {"min": 1}}},
            'column "ts" does not take "min"\n    it takes: nothing',
        ),
        (
            {"columns": {"price": {"min": 2, "max": 1}}},
            'column "price": expected min <= max, got 2.0 and 1.0',
        ),
        (
            {"columns": {"price": {"min": "x"}}},
            'column "price": "min": expected a number, got "x"',
        ),
        (
            {"columns": {"price": {"walk": 1, "start": 5, "max": 4}}},
            'column "price": the walk starts outside its bounds',
        ),
        ({"columns": {"sym": {"values": []}}}, 'column "sym": expected a list of values'),
        (
            {"columns": {"sym": {"values": ["a"], "weights": [1, 2]}}},
            'column "sym": expected a weight for each of 1 values',
        ),
        (
            {"columns": {"sym": {"values": ["a"], "weights": [-1]}}},
            'column "sym": expected positive weights',
        ),
        ({"columns": 5}, "expected a table of columns in the generator's settings"),
        ({"columns": {"sym": 5}}, 'expected a table for the generated column "sym"'),
        (
            {"rows": 10, "interval": 2**62},
            "the generator's times do not fit 64-bit microseconds",
        ),
    ],
)
def test_settings_that_are_wrong_are_told(options: dict[str, Any], expected: str) -> None:
    assert expected == failure(options)


def test_other_times_are_the_event_time_too() -> None:
    input_ = Input("X", QueueType(Schema.of(a=TIME, t=TEXT)))
    times, _, rows = generate({"rows": 3}, input_)
    assert times == [row[0] for row in rows]
