"""What an engine runs is what `explain` shows."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path

import pytest

from millstream import api
from millstream.errors import UsageError

TWO_STAGES = """
output out; input in(k text, l text, x number);
(w, $w) <- Range[1 s](in, $w);
(a, $a) <- Aggregate[by k; s = sum(x)](w, $a);
(out, $b) <- Aggregate[s = max(s)](a, $b);
"""


def explained(text: str, format_: str = "text") -> str:
    return api.compile(text=text).explain("plan", format_, "spark")


def test_the_plan_of_spark_shows_stages_with_their_buckets_and_what_changes_places() -> None:
    lines = [line for line in explained(TWO_STAGES).splitlines() if not line.startswith("  ")]
    assert [
        "exchange: in, by k",
        "stage 1, on buckets, two for each worker",
        "exchange: out.parts, all rows to one place",
        "stage 2, on one bucket",
        "to the driver, by time: out",
    ] == lines


def test_the_plan_of_the_local_engine_shows_what_threads_share(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MILLSTREAM_THREADS", "8")
    grouped = (
        "output out; input in(k text, x number);"
        "(w, $w) <- Range[1 s](in, $w); (out, $a) <- Aggregate[by k; s = sum(x)](w, $a);"
    )
    shown = api.compile(text=grouped).explain("plan", "text", "local").splitlines()
    assert "# from 262,144 rows on, on as many threads as there are cores; else on one" == shown[0]
    assert ["exchange: in, by k", "stage 1, on buckets, one for each thread"] == shown[1:3]
    assert "put together, by time: out" == shown[-1]
    (tmp_path / "few.csv").write_text("_time,k,x\n1,a,1\n")
    few = api.compile(text=grouped).explain(
        "plan", "text", "local", inputs={"in": str(tmp_path / "few.csv")}
    )
    assert few.startswith("in one process, all rows in one place")


def test_a_chain_that_is_too_long_is_shown_in_one_place() -> None:
    text = ["output q12; input q0(a integer, b integer);"]
    for n in range(12):
        by, other = ("a", "b") if n % 2 else ("b", "a")
        made = f"(w{n}, $w{n}) <- Range[1 s](q{n}, $w{n});" if n == 0 else ""
        window = f"w{n}" if n == 0 else f"q{n}"
        text.append(f"{made}(q{n + 1}, $g{n}) <- "
                    f"Aggregate[by {by}; {other} = sum({other})]({window}, $g{n});")  # fmt: skip
    shown = explained("\n".join(text))
    assert shown.startswith("# run in one place")
    assert 1 == shown.count("stage 1, on one bucket") and "stage 2" not in shown


def test_a_small_table_is_shown_as_copied() -> None:
    shown = explained(
        "output out; input in(k text, x number), names relation (j number, name text) once;"
        "(w, $w) <- Latest[by k](in, $w);"
        "(out, $a, $b) <- Join[on x = j](w, names, $a, $b);"
    )
    assert [
        "exchange: in, by k",
        "exchange: names, copied to every bucket",
        "stage 1, on buckets, one for each worker",
    ] == [line for line in shown.splitlines() if not line.startswith("  ")][:3]


def test_the_plan_of_the_local_engine_has_one_place() -> None:
    shown = api.compile(text=TWO_STAGES).explain("plan")
    assert shown.startswith("in one process, all rows in one place")


def test_what_is_made_in_one_place_for_its_order_is_named() -> None:
    text = explained(
        "output out; input in(k text, x number);"
        "(w, $w) <- Range[1 s](in, $w); (i, $i) <- Istream(w, $i); (out) <- Map[x](i);"
    )
    assert "so that the rows of an instant keep their order: out\n" in text


def test_json_has_the_exchanges_of_each_stage() -> None:
    records = json.loads(explained(TWO_STAGES, "json"))
    first, last = records[0], records[-1]
    assert (1, "two for each worker", {"in": "k"}) == (
        first["stage"], first["buckets"], first["exchanges"],
    )  # fmt: skip
    assert (2, 1, {"out.parts": "nothing: all rows together"}) == (
        last["stage"], last["buckets"], last["exchanges"],
    )  # fmt: skip


def test_the_picture_has_a_box_for_each_exchange() -> None:
    picture = explained(TWO_STAGES, "svg")
    assert 2 == picture.count(">exchange<")
    assert "stage 1, buckets, two for each worker" in picture


def test_an_input_that_is_an_output_passes_through_a_stage_without_steps() -> None:
    text = "output in; input in(x number);"
    assert "exchange: in, as it comes" in explained(text)
    assert ">exchange<" in explained(text, "svg")
    (record,) = json.loads(explained(text, "json"))
    assert {"in": "any columns"} == record["exchanges"]


def test_the_local_engine_moves_no_rows() -> None:
    text = api.compile(text=TWO_STAGES).explain("plan")
    assert "exchange" not in text and "bucket" not in text


def test_an_engine_without_a_plan_is_refused() -> None:
    with pytest.raises(UsageError, match='unknown engine "reference"'):
        api.compile(text=TWO_STAGES).explain("plan", engine="reference")


SELECTED_LATE = """
output out; input in(k text, x number);
(w, $w) <- Range[1 s](in, $w);
(out) <- Filter[k == "<b>"](w);
"""


def test_a_page_steps_through_the_rewrites() -> None:
    page = api.compile(text=SELECTED_LATE).explain("calculus", "html")
    titles = re.findall(r"<h2>(.*?)</h2>", page)
    assert ["As it is written", "Rewrite 1: hoist_select (O-HoistSelect)"] == titles[:2]
    assert ["Optimised", "Plan: local", "Plan: spark"] == [t for t in titles if t in LAST]
    removed, added = (re.findall(f"<{tag}>(.*?)</{tag}>", page) for tag in ("del", "ins"))
    assert any("Filter[k == &quot;&lt;b&gt;&quot;](w)" in line for line in removed)
    assert any("Filter[k == &quot;&lt;b&gt;&quot;](in)" in line for line in added)
    pictures = [base64.b64decode(one).decode() for one in re.findall(r"base64,([^\"]*)", page)]
    assert len(titles) - titles.count("What stays as it is") - 2 == len(pictures)
    assert all(picture.startswith("<svg") for picture in pictures)
    assert "<b>" not in page


LAST = ("Optimised", "Plan: local", "Plan: spark")
