"""`brokers.toml`, and how a file is cut by it."""

from __future__ import annotations

from pathlib import Path

import pytest

from millstream.broker.cutting import part_of
from millstream.broker.loading import load_part
from millstream.broker.placement import Placement, read_placement
from millstream.errors import MillstreamError, UsageError
from millstream.languages.served import BrokerPart, Served
from millstream.source import Source
from tests.broker.world import served

TEXT = """
    CREATE STREAM B (b: time -> k: integer, bid: shares) UNTIL '2026-12-31T17:00:00Z';
    CREATE STREAM M (t: time -> b: time, sold: shares) UNTIL '2026-12-31T17:00:00Z';
    CREATE VIEW Sold (SELECT b, SUM(sold) AS total FROM M GROUP BY b);
    CREATE VIEW Rest (SELECT b, k, bid - total AS rest FROM B JOIN Sold USING (b) WHERE rest > 0);
    CREATE VIEW Both (SELECT b, rest, total FROM Rest JOIN Sold USING (b));
    CREATE VIEW Kinds (SELECT DISTINCT k FROM B);
    subscriptions Sold, Rest, Both, Kinds;
"""
TWO = """
[broker.a]
address = "http://127.0.0.1:8101"
streams = ["B"]
[broker.b]
address = "http://127.0.0.1:8102"
streams = ["M"]
"""


def placed(text: str) -> Placement:
    return read_placement(Source("brokers.toml", text))


def part(text: str, broker: str) -> tuple[Served, BrokerPart]:
    made = part_of(served(TEXT), placed(text), broker)
    assert made.part is not None
    assert load_part(Source("part", made.text), {}) == made, "it can be read again elsewhere"
    return made, made.part


def test_views_live_with_their_largest_inputs() -> None:
    small, _ = part(TWO, "a")
    assert set(small.views) == {"Rest", "Both", "Kinds"}, "of equal ones, with the first"
    large, _ = part(TWO + "[size]\nM = 1000\n", "b")
    assert set(large.views) == {"Sold", "Rest", "Both"}


def test_only_what_another_reads_crosses() -> None:
    a, at_a = part(TWO, "a")
    _, at_b = part(TWO, "b")
    assert {one.sender for one in at_a.imports.values()} == {"b"}
    assert set(at_a.imports) == set(at_b.exports)
    assert not any(one.is_stream for one in at_a.imports.values()), "totals, and not the matches"
    assert set(a.streams) == {"B"} and at_a.elsewhere == {"M": "b", "Sold": "b"}
    assert at_a.place_of("Sold") == "b, http://127.0.0.1:8102" and at_a.place_of("B") is None
    assert not at_b.imports and not at_a.exports


def test_a_stream_is_known_as_far_as_all_ways_have_brought_it() -> None:
    text = TWO.replace('["B"]', '["B"]\nviews = ["Rest"]') + (
        '[broker.c]\naddress = "http://127.0.0.1:8103"\nviews = ["Both", "Kinds"]\n'
    )
    made, at_c = part(text, "c")
    ways = dict(at_c.horizons.values())
    assert len(ways["M"]) == 2, "by Rest and by Sold"
    assert at_c.imports["B"].is_stream and set(made.streams) == {"B"}, "Kinds needs the rows"


def test_what_has_no_link_of_its_own_is_passed_on() -> None:
    others = "".join(
        f'[broker.{n}]\naddress = "http://127.0.0.1:8{n}00"\n' for n in ("1", "2")
    ).replace("8100", "8103")  # fmt: skip
    views = '[broker.c]\naddress = "http://127.0.0.1:8109"\nviews = ["Sold", "Rest"]\n'
    links = [("b", "1"), ("1", "2"), ("2", "c"), ("2", "a"), ("a", "1")]
    text = TWO + others + views
    text += "".join(f'[link.{x}-{y}]\nfrom = "{x}"\nto = "{y}"\n' for x, y in links)
    parts = {name: part(text, name)[1] for name in "ab12c"}
    assert {one.sender for one in parts["c"].imports.values()} == {"2"}
    passed = {n: one for n, one in parts["2"].exports.items() if "c" in one.receivers}
    assert passed and all(one.is_passed_on for one in passed.values())
    assert passed.keys() <= parts["2"].imports.keys() and parts["2"].needs == {}
    for name in "a12c":
        for one in parts[name].imports.values():
            assert name in parts[one.sender].exports[one.name].receivers


WRONG = {
    "an unknown key": (TWO.replace("streams", "stream", 1), 'unknown key "stream"'),
    "no port": (TWO.replace(":8101", ""), "an address with its port"),
    "a stream twice": (TWO.replace('["M"]', '["M", "B"]'), "B is at a already"),
    "one address": (TWO.replace("8102", "8101"), "two brokers have this address"),
    "a link to nobody": (TWO + '[link.x]\nfrom = "a"\nto = "z"\n', 'no broker "z"'),
    "a link to itself": (TWO + '[link.x]\nfrom = "a"\nto = "a"\n', "from one broker to another"),
    "a lazy text": (TWO + '[link.x]\nfrom = "a"\nto = "b"\nlazy = "yes"\n', "true or false"),
    "no number": (TWO + '[size]\nM = "many"\n', "a number of rows"),
    "an unknown table": (TWO + "[brocker.c]\n", "unknown table"),
    "nothing": ("", "no brokers"),
    "a fault of TOML": (TWO + "[", "brokers.toml"),
    "an unknown stream": (TWO.replace('["M"]', '["M", "N"]'), 'no stream "N"'),
    "a stream nowhere": (TWO.replace('["M"]', "[]"), "no broker has the stream M"),
    "an unknown view": (TWO.replace('["M"]', '["M"]\nviews = ["Rset"]'), 'no view "Rset"'),
    "no way": (TWO + '[link.x]\nfrom = "a"\nto = "b"\n', "no link goes there"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_is_told_at_its_place(what: str) -> None:
    text, message = WRONG[what]
    with pytest.raises(MillstreamError) as caught:
        part_of(served(TEXT), placed(text), "a")
    assert message in str(caught.value)
    if what != "nothing":
        assert "brokers.toml:" in str(caught.value), "at its line"


def test_unknown_brokers_are_told() -> None:
    with pytest.raises(UsageError, match="there is no broker"):
        placed(TWO).check_broker("c")


def test_figure_6_is_shipped() -> None:
    folder = Path(__file__).parents[2] / "examples" / "smile" / "trade_floor"
    text = served((folder / "trade_floor.smile").read_text())
    placement = placed((folder / "brokers.toml").read_text())
    made = {name: part_of(text, placement, name) for name in placement.brokers}
    assert {name: sorted(one.views) for name, one in made.items()} == {
        "buys": ["RemainingBuy"], "sells": ["RemainingSell"], "matches": [], "floor": ["Matchable"],
    }  # fmt: skip
