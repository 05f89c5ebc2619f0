"""The two rule files by hand: dictionaries, indexes both ways, and the words for each verdict.

It is what somebody would write who has these rules and no others. Each event is an instant:
those that it concerns are judged anew, and what has changed is told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

Row = dict[str, Any]
Verdict = tuple[str, str, str]
#: A time, a weight, and a row of the status.
Change = tuple[int, int, tuple[Any, ...]]


def simple(vessel: Row, _: Hand) -> Verdict:
    length, beam, draught = vessel["length"], vessel["beam"], vessel["draught"]
    failed, reasons = [], []
    if length > 350:
        failed.append("3")
        reasons.append(f"line 3: vessel.length <= 350 m, but vessel.length = {length:.10g} m")
    if beam > 55:
        failed.append("4")
        reasons.append(f"line 4: vessel.beam <= 55 m, but vessel.beam = {beam:.10g} m")
    if draught >= 15 and length > 300:
        failed.append("6")
        reasons.append(f"line 6: vessel.length <= 300 m, but vessel.length = {length:.10g} m")
    if failed:
        return "restricted", ", ".join(failed), "; ".join(reasons)
    return "allowed", "", ""


def joined(vessel: Row, hand: Hand) -> Verdict:
    berth = hand.tables["berths"][vessel["berth"]]
    height = hand.tables["tides"][berth["gauge"]]["height"]
    velocity = hand.tables["winds"][berth["vane"]]["velocity"]
    depth, draught = berth["depth"], vessel["draught"]
    ukc = depth + height - draught
    failed, reasons = [], []
    if ukc < 0.5:
        failed.append("5")
        reasons.append(
            f"line 5: ukc >= 0.5 m, but ukc = {ukc:.10g} m, berth.depth = {depth:.10g} m, "
            f"tide.height = {height:.10g} m, vessel.draught = {draught:.10g} m"
        )
    if vessel["length"] >= 200 and velocity > 20:
        failed.append("7")
        reasons.append(f"line 7: wind.velocity <= 20 m/s, but wind.velocity = {velocity:.10g} m/s")
    if failed:
        return "restricted", ", ".join(failed), "; ".join(reasons)
    return "allowed", "", ""


KEYS = {"vessels": "mmsi", "berths": "id", "tides": "gauge", "winds": "vane"}


@dataclass
class Hand:
    """Mutable: the tables, who refers to whom, and the verdicts."""

    judge: Callable[[Row, Hand], Verdict]
    tables: dict[str, dict[int, Row]] = field(default_factory=dict)
    #: The vessels of a berth, and the berths of a gauge and of a vane.
    users: dict[str, dict[int, set[int]]] = field(
        default_factory=lambda: {"berth": {}, "gauge": {}, "vane": {}}
    )
    verdicts: dict[int, Verdict] = field(default_factory=dict)

    def fill(self, name: str, rows: list[Row]) -> None:
        self.tables[name] = {row[KEYS[name]]: row for row in rows}
        for row in rows:
            self._refer(name, row, None)

    def begin(self) -> None:
        """Judge everybody once all tables are there."""
        self.verdicts = {k: self.judge(v, self) for k, v in self.tables["vessels"].items()}

    def take(self, name: str, time: int, row: Row) -> Iterator[Change]:
        key = row[KEYS[name]]
        before = self.tables[name].get(key)
        self.tables[name][key] = row
        self._refer(name, row, before)
        for vessel in self._concerned(name, key):
            old = self.verdicts[vessel]
            new = self.judge(self.tables["vessels"][vessel], self)
            if new != old:
                self.verdicts[vessel] = new
                yield time, -1, (vessel, *old)
                yield time, 1, (vessel, *new)

    def _refer(self, name: str, row: Row, before: Row | None) -> None:
        if name not in ("vessels", "berths"):
            return
        for column in ("berth",) if name == "vessels" else ("gauge", "vane"):
            key = row[KEYS[name]]
            if column not in row or (before is not None and before[column] == row[column]):
                continue
            if before is not None:
                self.users[column][before[column]].discard(key)
            self.users[column].setdefault(row[column], set()).add(key)

    def _concerned(self, name: str, key: int) -> list[int]:
        if name == "vessels":
            return [key]
        if name == "berths":
            return list(self.users["berth"].get(key, ()))
        berths = self.users["gauge" if name == "tides" else "vane"].get(key, ())
        return [v for b in berths for v in self.users["berth"].get(b, ())]
