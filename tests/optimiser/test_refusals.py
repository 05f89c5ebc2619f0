"""What passes look at and leave as it is, each with the guard that keeps it so."""

from __future__ import annotations

from pathlib import Path

import pytest

from millstream.languages.brook.load import load
from millstream.optimiser.optimise import (
    ON_REQUEST,
    PASSES,
    RELAXED,
    TOLD_BY,
    passes_named,
    refusals,
)
from millstream.source import Source

FOLDER = Path(__file__).parent / "cases"
TOLD = {
    "fuse/not_by_different_keys": "the two keep their state by different keys",
    "fuse/not_several_rows_for_one": "of one row several would come to the variables",
    "fuse/not_what_keeps_rows_that_are_dropped": "keeps something of rows that the second drops",
    "fuse/not_what_others_read": "another operator reads or writes $v",
    "fuse/not_what_would_fail_twice": "the second asks for what the first sets",
    "first_in_groups/not_by_rank": None,  # ranks are no numbers: nothing to look at
    "index_joins/not_where_nulls_match": "keys of this join match if they are null",
    "index_joins/not_within_one_side": "it compares columns of one side",
    "look_up_joins/not_equal_keys_alone": "nothing is compared with",
    "look_up_joins/not_several_rows": "several rows of",
    "look_up_joins/not_several_rows_of_which_two_things_are_asked": "several rows of",
    "look_up_joins/not_what_takes_both_to_compute": "takes a row of both sides",
    "look_up_joins/not_while_what_nobody_needs_is_read": "behind it",
    "order_joins/not_all_pairs": "nothing is equal in the rows that would meet first",
    "order_joins/not_by_a_column_of_the_other": "c is a column of m",
    "order_joins/not_if_about_as_many": None,
    "order_joins/not_what_can_fail": "a condition can fail",
    "order_joins/not_what_others_read": None,  # what comes of a copy is no join
    "order_joins/not_what_reads_the_other": "its condition reads b of m",
    "share_common/not_different_windows": None,
    "share_common/not_folds": "others may share its variables",
    "combine_linear/not_what_would_take_more": "has more numbers than both",
    "combine_linear/not_where_items_would_leave_later": "does not take what whole firings",
    "narrow_columns/not_where_whole_rows_are_read": None,
}


@pytest.mark.parametrize(("case", "why"), TOLD.items(), ids=list(TOLD))
def test_a_match_that_is_not_applied_is_told_with_its_guard(case: str, why: str | None) -> None:
    name, _, _ = case.partition("/")
    text = (FOLDER / f"{case}.brook").read_text().partition("# becomes")[0]
    told = list(refusals(load(Source(case, text)), passes_named([name])))
    assert bool(told) == (why is not None), told
    assert why is None or all(why in words for _, _, words in told), told


def test_numbers_that_nobody_bounds_are_told() -> None:
    text = """
        output out; input in relation(k text, x integer);
        (a, $a) <- Ordered[by k; on x; emit n = row_number()](in, $a);
        (out) <- Filter[n >= 3](a);
    """
    ((_, _, why),) = refusals(load(Source("numbered", text)), passes_named(["first_in_groups"]))
    assert "does not say how many rows" in why


def test_every_pass_but_that_which_always_applies_tells_what_it_refuses() -> None:
    everything = {one.__name__ for one in (*PASSES, *ON_REQUEST, *RELAXED)}
    assert {"merge_selects"} == everything - {one.__name__ for one in TOLD_BY}
