"""Workbooks as they are met at work, beside programs written by hand with NumPy and numba.

The programs by hand get columns as arrays, texts as codes of a dictionary, and write columns of
the same kind into memory that is there already; tables are arrays that the codes of texts lead
into, and texts that are put together are made by pyarrow. They know nothing of nulls, errors or
late rows. Both take the best of several runs by processor time, after one that compiles.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numba import njit

import millstream
from millstream.calculus.types import NUMBER, TEXT, TIME, QueueType, Type
from millstream.plan.batch import Batch, Vector
from sheets_data import ROOT
from sheets_engine import Record, best, through

ROWS = 1_000_000
KEYS = 1_000
SECOND = 1_000_000


def texts(words: list[str], codes: Any) -> Vector:
    return Vector(TEXT, pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), words))


def orders(random: Any, rows: int) -> dict[str, Vector]:
    symbols = [f"S{n:04d}" for n in range(1, KEYS + 1)]
    return {
        "symbol": texts(symbols, random.integers(0, KEYS, rows)),
        "side": texts(["bid", "ask"], random.integers(0, 2, rows)),
        "price": Vector(NUMBER, np.round(random.uniform(9, 11, rows), 3)),
        "quantity": Vector(NUMBER, random.integers(1, 500, rows).astype(float)),
    }


def readings(random: Any, rows: int) -> dict[str, Vector]:
    devices = [f"D{n:03d}" for n in range(KEYS)]
    values = np.round(random.normal(20, 1, rows) + 9 * (random.random(rows) < 0.02), 2)
    return {
        "device": texts(devices, random.integers(0, KEYS, rows)),
        "value": Vector(NUMBER, values),
    }


def usage(random: Any, rows: int) -> dict[str, Vector]:
    meters = [f"M{n:04d}" for n in range(1, KEYS + 1)]
    start = 1_767_225_600 * SECOND
    return {
        "meter": texts(meters, random.integers(0, KEYS, rows)),
        "used": Vector(NUMBER, np.round(random.uniform(0, 4, rows), 3)),
        "at": Vector(TIME, start + np.arange(rows) * 5 * SECOND),
    }


# --- by hand ----------------------------------------------------------------------------


@njit(cache=True)
def order_loop(symbols: Any, sides: Any, prices: Any, counts: Any, ticks: Any, sent: Any) -> None:
    ring = np.zeros((ticks.size, 2, 20, 2))
    seen = np.zeros((ticks.size, 2), np.int64)
    state = np.zeros(ticks.size, np.int64)
    for n in range(symbols.size):
        k, side, tick = symbols[n], sides[n], ticks[symbols[n]]
        place = seen[k, side] % 20
        ring[k, side, place, 0] = np.floor(prices[n] / tick * (1.0 + 2.0**-50) + 0.5) * tick
        ring[k, side, place, 1] = counts[n]
        seen[k, side] += 1
        bids, asks = min(seen[k, 0], 20), min(seen[k, 1], 20)
        bid, ask, bought, sold = 0.0, 0.0, 0.0, 0.0
        for j in range(bids):
            bid = ring[k, 0, j, 0] if j == 0 or ring[k, 0, j, 0] > bid else bid
            bought += ring[k, 0, j, 1]
        for j in range(asks):
            ask = ring[k, 1, j, 0] if j == 0 or ring[k, 1, j, 0] < ask else ask
            sold += ring[k, 1, j, 1]
        imbalance = (bought - sold) / (bought + sold)
        pressure = 1 if imbalance > 0.5 else (2 if imbalance < -0.5 else 0)
        sent[0, n], sent[1, n], sent[2, n] = bid, ask, np.round((ask - bid) / tick)
        sent[3, n], sent[4, n], sent[5, n] = imbalance, pressure, pressure != state[k]
        state[k] = pressure


@njit(cache=True)
def sensor_loop(devices: Any, values: Any, sent: Any) -> None:
    ring = np.zeros((KEYS, 30))
    seen = np.zeros(KEYS, np.int64)
    state = np.zeros(KEYS, np.int64)
    alarms = np.zeros(KEYS)
    for n in range(devices.size):
        k, value = devices[n], values[n]
        ring[k, seen[k] % 30] = value
        seen[k] += 1
        count = min(seen[k], 30)
        total = 0.0
        for j in range(count):
            total += ring[k, j]
        mean, squares = total / count, 0.0
        for j in range(count):
            squares += (ring[k, j] - mean) ** 2
        spread = np.sqrt(squares / (count - 1)) if count > 1 else 0.0
        score = (value - mean) / spread if spread != 0.0 else 0.0
        before = state[k]
        now = 1 if score > 2.5 else (2 if score < -2.5 else (0 if abs(score) < 1.5 else before))
        alarms[k] += now != before
        state[k] = now
        sent[0, n], sent[1, n], sent[2, n], sent[3, n] = score, alarms[k], now, before


@njit(cache=True)
def billing_loop(
    meters: Any, used: Any, weekdays: Any, hours: Any, months: Any, prices: Any, plans: Any,
    taxes: Any, sent: Any,
) -> None:  # fmt: skip
    month = np.zeros(KEYS, np.int64)
    total = np.zeros(KEYS)
    for n in range(meters.size):
        k, plan = meters[n], plans[meters[n]]
        is_night = hours[n] >= 22 or hours[n] < 6
        factor = 1.0
        if plan == 2:
            factor = 0.7 if is_night else 1.1
        elif plan == 3:
            factor = 0.8 if weekdays[n] > 5 else 1.05
        elif plan == 4:
            factor = 0.95
        near = 1.0 + 2.0**-50
        net = np.floor(used[n] * prices[k] * factor * 1e4 * near + 0.5) / 1e4
        gross = np.floor(net * (1.0 + taxes[k]) * 1e4 * near + 0.5) / 1e4
        total[k] = (total[k] if month[k] == months[n] else 0.0) + gross
        month[k] = months[n]
        sent[0, n], sent[1, n], sent[2, n] = net, gross, total[k]


def codes_of(vector: Vector) -> Any:
    return vector.values.indices.to_numpy()


def orders_by_hand(columns: dict[str, Vector], sent: Any) -> tuple[float, list[Any]]:
    ticks = np.array([(0.01, 0.05, 0.5)[n % 3] for n in range(1, KEYS + 1)])
    names = pa.array([f"Company {n}" for n in range(1, KEYS + 1)])
    symbols, sides = codes_of(columns["symbol"]), codes_of(columns["side"])
    order_loop(symbols, sides, columns["price"].values, columns["quantity"].values, ticks, sent)
    named = pa.DictionaryArray.from_arrays(columns["symbol"].values.indices, names)
    return float(sent[:4].sum() + sent[5].sum()), [named]


def readings_by_hand(columns: dict[str, Vector], sent: Any) -> tuple[float, list[Any]]:
    values = columns["value"].values
    sensor_loop(codes_of(columns["device"]), values, sent)
    alarm = np.flatnonzero(sent[2] != sent[3])
    states = pa.array(["OK", "HIGH", "LOW"])
    words = [pa.array([f"{x:.{places}f}" for x in some[alarm]])
             for some, places in ((values, 2), (sent[0], 1))]  # fmt: skip
    before, now = (states.take(pa.array(sent[n][alarm].astype(np.int32))) for n in (3, 2))
    device = columns["device"].values.take(pa.array(alarm)).cast(pa.string())
    parts = (device, ": ", before, " -> ", now, ", ", words[0], " (score ", words[1], ")", "")
    messages = pc.binary_join_element_wise(*parts)
    return float(sent[:2].sum()), [messages]


def usage_by_hand(columns: dict[str, Vector], sent: Any) -> tuple[float, list[Any]]:
    n = np.arange(1, KEYS + 1)
    prices, plans = np.round(0.11 + n % 37 / 500, 4), n % 4 + 1
    taxes = np.array([0.19, 0.16, 0.07])[n % 3]
    at = columns["at"].values
    days, seconds = at // (86_400 * SECOND), at // SECOND % 86_400
    date = days.astype("datetime64[D]")
    month = date.astype("datetime64[M]")
    months = month.astype(np.int64)
    meters = codes_of(columns["meter"])
    billing_loop(meters, columns["used"].values, (days + 3) % 7 + 1, seconds // 3600, months,
                 prices, plans, taxes, sent)  # fmt: skip
    calendar, place = np.unique(months, return_inverse=True)
    due = ((calendar + 1).astype("datetime64[M]").astype("datetime64[D]") + 13).astype(str)
    shown = pa.DictionaryArray.from_arrays(pa.array(place.astype(np.int32)), pa.array(due))
    regions = pa.array([("NORTH", "SOUTH", "ISLANDS")[k % 3] for k in n])
    region = pa.DictionaryArray.from_arrays(columns["meter"].values.indices, regions)
    numbers = (calendar // 12 + 1970) * 100 + calendar % 12 + 1
    month_texts = pa.array(numbers.astype(str)).take(pa.array(place))
    bills = pc.binary_join_element_wise(columns["meter"].values.cast(pa.string()), month_texts, "-")
    return float(sent[:3].sum()), [shown, region, bills]


WORKBOOKS: dict[str, tuple[str, Any, Any, tuple[str, ...]]] = {
    "orderbook": ("Orders", orders, orders_by_hand,
                  ("bid", "ask", "spread", "imbalance", "turned")),
    "sensors": ("Readings", readings, readings_by_hand, ("score", "alarms")),
    "billing": ("Usage", usage, usage_by_hand, ("net", "gross", "total")),
}  # fmt: skip


def workbook(name: str, rows: int = ROWS) -> Record:
    stream, make, by_hand, _ = WORKBOOKS[name]
    program = millstream.compile(ROOT / name).program
    (queue,) = program.inputs
    columns = make(np.random.default_rng(20), rows)
    ordered = tuple(columns[f] for f in queue.type.schema.names)
    inputs = {stream: batch_of_columns(queue.type, ordered, rows)}
    sent = np.zeros((6, rows))
    seconds, _ = best(lambda: through(program, inputs))
    hand_seconds, (total, _) = best(lambda: by_hand(columns, sent))
    counter = through(program, inputs, adds=True)
    assert counter.rows == rows
    assert np.isclose(total, counter.total, rtol=1e-6), (name, total, counter.total)
    ratio = hand_seconds / seconds
    return {
        "workbook": name, "rows": rows, "rows_per_s": round(rows / seconds),
        "by_hand_rows_per_s": round(rows / hand_seconds), "ratio": round(ratio, 2), "bar": 0.3,
        "is_met": ratio >= 0.3 and rows / seconds >= 1e6,
    }  # fmt: skip


def batch_of_columns(type_: QueueType, columns: tuple[Vector, ...], rows: int) -> Batch:
    typed: list[Type] = [field.type for field in type_.schema]
    assert [c.type for c in columns] == typed
    return Batch(type_, np.arange(rows, dtype=np.int64) * 1000, columns)


if __name__ == "__main__":
    for each in WORKBOOKS:
        print(workbook(each))
