"""What is fused, what is kept together, and where stages are cut."""

from __future__ import annotations

from millstream.engine.local.run import plan_for
from millstream.languages.brook.load import load
from millstream.plan.stages import all_together, side_by_side, stages_of
from millstream.plan.steps import Plan
from millstream.source import Source

IN = "input in(k text, l text, x number);\n"


def planned(text: str) -> Plan:
    return plan_for(load(Source("test.brook", text)))


def shapes(plan: Plan) -> list[str]:
    return [" > ".join(op.function.name for op in step.operators) for step in plan.steps]


def keys(plan: Plan) -> list[object]:
    return [next(iter(dict(stage.keys).values())) for stage in stages_of(plan)]


def test_row_functions_that_follow_each_other_are_one_step() -> None:
    plan = planned(
        "output out;" + IN + "variable $v(n integer = 0);"
        "(a) <- Filter[x > 0.0](in); (b) <- Map[k, x](a);"
        "(out, $v) <- Fold[by k; set $v.n = $v.n + 1; emit k, n = $v.n](b, $v);"
    )
    assert ["Filter > Map > Fold"] == shapes(plan)
    assert [("k",)] == keys(plan)


def test_operators_that_share_a_variable_are_one_step_with_all_between_them() -> None:
    plan = planned(
        "output out;" + IN + "variable $v(n number = 0.0);"
        "(a, $v) <- Fold[set $v.n = x; emit x](in, $v);"
        "(w, $w) <- Range[1 s](a, $w); (i, $i) <- Istream(w, $i);"
        "(out) <- Fold[emit n = $v.n](i, $v);"
    )
    assert ["Fold > Range > Istream > Fold"] == shapes(plan)
    assert plan.steps[0].fallback is not None


def test_a_cycle_is_one_step() -> None:
    plan = planned(
        "output out;" + IN + "(a, $a, $b, $c) <- RoundRobinJoin(in, loop, $a, $b, $c);"
        "(out, loop) <- Duplicate(a);"
    )
    assert ["RoundRobinJoin > Duplicate"] == shapes(plan)


def test_stages_are_cut_where_the_key_changes() -> None:
    plan = planned(
        "output out;" + IN + "(w, $w) <- Range[unbounded](in, $w);"
        "(a, $a) <- Aggregate[by k, l; s = sum(x)](w, $a);"
        "(b, $b) <- Aggregate[by k; s = max(s)](a, $b);"
        "(out, $c) <- Aggregate[s = sum(s)](b, $c);"
    )
    # By k and l; rows of one k are in several partitions then, so by k; then all together.
    assert [("k", "l"), ("k",), ()] == keys(plan)


def test_a_coarser_key_serves_a_finer_one() -> None:
    plan = planned(
        "output out;" + IN + "(w, $w) <- Rows[3 by k](in, $w);"
        "(out, $a) <- Aggregate[by k, l; s = sum(x)](w, $a);"
    )
    assert [("k",)] == keys(plan)


def test_conditions_of_joins_and_terms_of_aggregates_become_steps_of_their_own() -> None:
    plan = planned(
        "output out; input a relation(k text, x number), b relation(k text, y number);"
        "(j, $a, $b) <- Join[on k; where x < y](a, b, $a, $b);"
        "(out, $c) <- Aggregate[by k; s = sum(x * y)](j, $c);"
    )
    assert ["Join", "Filter > Map", "Aggregate"] == shapes(plan)
    assert all(step.fallback is None for step in plan.steps)


def test_stages_that_do_not_need_each_other_run_side_by_side() -> None:
    plan = planned("""
    output one, two, three;
    input s(k text, j text, v integer);
    (a, b, c) <- Duplicate(s);
    (wa, $wa) <- Range[1 min](a, $wa);
    (ga, $ga) <- Aggregate[by k; n = count()](wa, $ga);
    (gaa, $gaa) <- Aggregate[by n; m = count()](ga, $gaa);
    (one, $one) <- Istream(gaa, $one);
    (wb, $wb) <- Range[1 min](b, $wb);
    (gb, $gb) <- Aggregate[by j; n = count()](wb, $gb);
    (two, $two) <- Istream(gb, $two);
    (wc, $wc) <- Range[1 min](c, $wc);
    (gc, $gc) <- Aggregate[n = count()](wc, $gc);
    (three, $three) <- Istream(gc, $three);
    """)
    stages = stages_of(plan)
    merged = side_by_side(stages, plan)
    assert len(merged) < len(stages)
    assert sorted(k for s in stages for k in s.keys) == sorted(k for s in merged for k in s.keys)
    assert len(plan.steps) == sum(len(s.steps) for s in merged)
    made: set[str] = set(plan.program.input_names)
    for stage in merged:
        assert set(stage.inputs) <= made
        made |= {q for step in stage.steps for q in step.outputs}


TWO = "output out; input a(k text, x integer), b(k text, l text, y integer);"


def test_windows_are_cut_by_the_key_of_the_join_behind_them() -> None:
    plan = planned(
        TWO + "(v, $v) <- Range[1 s](a, $v); (w, $w) <- Range[1 s](b, $w);"
        "(j, $i, $j) <- Join[on k](v, w, $i, $j); (out, $o) <- Istream(j, $o);"
    )
    (stage,) = stages_of(plan)
    assert {"a": ("k",), "b": ("k",)} == dict(stage.keys)


def test_a_join_by_columns_with_other_names_cuts_each_side_by_its_own() -> None:
    plan = planned(
        TWO + "(v, $v) <- Range[1 s](a, $v); (m) <- Map[l, y](b); (w, $w) <- Range[1 s](m, $w);"
        "(j, $i, $j) <- Join[on k = l](v, w, $i, $j); (out) <- Map[x, y](j);"
    )
    (stage,) = stages_of(plan)
    assert {"a": ("k",), "b": ("l",)} == dict(stage.keys)


def test_a_key_is_known_under_its_new_name() -> None:
    plan = planned(
        "output out; input a(k text, x integer); (m) <- Map[who = k, x](a);"
        "(t, $t) <- Latest[by who](m, $t); (n) <- Map[name = who, x](t);"
        "(g, $g) <- Aggregate[by name; s = sum(x)](n, $g); (out) <- Map[s](g);"
    )
    (stage,) = stages_of(plan)
    assert {"a": ("k",)} == dict(stage.keys)


def test_a_key_in_another_order_is_another_key() -> None:
    plan = planned(
        "output out; input a(k text, l text, x integer), b(k text, l text, y integer);"
        "(v, $v) <- Latest[by k, l](a, $v); (w, $w) <- Latest[by l, k](b, $w);"
        "(j, $i, $j) <- Join[on k, l](v, w, $i, $j); (out) <- Map[x, y](j);"
    )
    assert [("k", "l")] * 2 == [key for s in stages_of(plan)[-1:] for _, key in s.keys]


def test_columns_that_two_ways_have_exchanged_are_no_key() -> None:
    plan = planned(
        "output out; input a(k text, l text, x integer);"
        "(v, $v) <- Latest[by k, l](a, $v); (one, other) <- Duplicate(v);"
        "(turned) <- Map[k = l, l = k, x](other); (m, $m1, $m2) <- Merge(one, turned, $m1, $m2);"
        "(out, $o) <- Aggregate[by k, l; s = sum(x)](m, $o);"
    )
    assert [("a",), ("m",)] == [s.inputs for s in stages_of(plan)]


def test_two_windows_with_different_keys_are_not_cut_by_one_of_them() -> None:
    plan = planned(
        TWO + "(v, $v) <- Rows[2 by x](a, $v); (w, $w) <- Range[1 s](b, $w);"
        "(j, $i, $j) <- Join[on k](v, w, $i, $j); (out, $o) <- Istream(j, $o);"
    )
    assert [("x",), None, ("k",)] == keys(plan)


def test_what_only_grows_is_a_stream_without_a_key() -> None:
    grows = "(w, $w) <- Range[unbounded](a, $w); (m) <- Map[x](w); (out, $o) <- Istream(m, $o);"
    shrinks = grows.replace("unbounded", "1 s")
    inputs = "output out; input a(k text, x integer);"
    assert [None] == keys(planned(inputs + grows))
    assert [("x",)] == keys(planned(inputs + shrinks))


def test_all_stages_together_see_all_rows_of_the_inputs_of_the_program() -> None:
    plan = planned("""
    output out;
    input s(k text, j text, v integer), t(j text, w integer);
    (ws, $ws) <- Rows[1 by k](s, $ws);
    (wt, $wt) <- Rows[1 by j](t, $wt);
    (gs, $gs) <- Aggregate[by j; n = count()](ws, $gs);
    (m) <- Map[j2 = j, n](gs);
    (pairs, $a, $b) <- Join[on j2 = j](m, wt, $a, $b);
    (out, $out) <- Aggregate[by w; n = sum(n)](pairs, $out);
    """)
    stages = stages_of(plan)
    together = all_together(stages, plan)
    assert len(stages) > 2
    assert {("s", ()), ("t", ())} == set(together.keys)
    assert plan.steps == together.steps


def distributed(tail: str) -> list[object]:
    plan = planned(
        "output out;" + IN + "(t, $t) <- Latest[by k](in, $t); (c, $c) <- Istream(t, $c);" + tail
    )
    return [next(iter(dict(s.keys).values())) for s in stages_of(plan)]


def test_what_is_made_of_the_rows_of_an_instant_comes_out_in_their_order() -> None:
    """The rows that a relation sets free are put into order by values, so by those they had."""
    assert [("k",), ()] == distributed("(out) <- Map[x, k](c);")
    assert [("k",), ()] == distributed("(f) <- Filter[x > 0.0](c); (out) <- Map[y = neg(x)](f);")
    # Where the order is that of the key, or nobody sees it, nothing has to be together.
    assert [("k",)] == distributed("(out) <- Map[k, y = neg(x)](c);")
    assert [("k",)] == distributed("(out) <- Map[k, l, x, y = neg(x)](c);")
    assert [("k",)] == distributed("(m) <- Map[x, k](c); (out, $n) <- Range[1 s](m, $n);")


def test_a_sheet_that_remembers_nothing_runs_anywhere_and_else_where_its_key_is() -> None:
    sheet = '"S!A1 <- 1.k", "S!B1 <- 1.x", "S!C1 = S!B1*2"'
    text = f"output out; {IN} (out, $w) <- Sheet[{sheet}, %s](in, $w);"
    for more in ("", '"per instant", '):
        for by, key in (("", ()), ('"by k", ', ("k",))):
            plan = planned(text % f'{more}{by}"output c number = S!C1"')
            wanted = key if more else None
            assert [wanted] == [dict(s.keys)["in"] for s in stages_of(plan)]


def test_a_sheet_behind_items_in_turn_is_made_in_one_place() -> None:
    plan = planned(
        "output out; input in(k text, x number), other(k text, x number);"
        "(r, $j1, $j2, $j3) <- RoundRobinJoin(in, other, $j1, $j2, $j3);"
        '(out, $w) <- Sheet["S!B1 <- 1.x", "output c number = S!B1"](r, $w);'
    )
    assert {()} == {k for s in stages_of(plan) for _, k in s.keys}
