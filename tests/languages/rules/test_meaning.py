"""The meaning of rules on single rows of facts, without any engine: quick, so often.

Checked terms mean what the tree means; what reduction leaves decides as the whole does.
"""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from millstream.calculus.judging import Requirement
from millstream.languages.rules.check import Checker
from millstream.languages.rules.domain_file import load_domain
from millstream.languages.rules.read import read_rules
from millstream.languages.rules.reduce import reduced
from millstream.languages.rules.resolve import Resolver, Rule, rules_in
from millstream.meaning.judging import outcome
from millstream.source import Source
from tests.languages.rules.direct import outcomes
from tests.languages.rules.generate import rule_texts
from tests.languages.rules.test_laws import HERE

DOMAIN = load_domain("toy.toml", HERE.parent)
LENGTHS = st.sampled_from((-1.0, 0.0, 0.5, 1.0, 2.0, 3.0, None))
ROWS = st.fixed_dictionaries(
    {
        "vessel.id": st.sampled_from((1, 2)),
        "vessel.kind": st.sampled_from(("Barge", "Tanker", None)),
        "vessel.draught": LENGTHS, "vessel.length": LENGTHS, "berth.depth": LENGTHS,
        "tide.height": LENGTHS, "wind.velocity": LENGTHS,
        "vessel.destination": st.sampled_from(("east", "west", None)),
        "berth.name": st.sampled_from(("east", None)),
        "berth.basin": st.sampled_from(("north", "east", None)),
        "tugs.available": st.sampled_from((0, 1, 2, None)),
    }
)  # fmt: skip
SETTINGS = settings(max_examples=300, deadline=None, derandomize=True, database=None,
                    suppress_health_check=[HealthCheck.too_slow])  # fmt: skip


def read(text: str) -> tuple[Any, list[Rule]]:
    rules = read_rules(Source(str(HERE), text), [], DOMAIN.names).rules
    faults: list[Any] = []
    nodes = Resolver(DOMAIN, Checker(DOMAIN, faults)).nodes(rules.statements)
    assert not faults
    return rules, list(rules_in(nodes))


def status(requirements: list[Requirement], row: dict[str, Any]) -> Any:
    found = [outcome(one, row) for one in requirements]
    return False if False in found else None if None in found else True


@SETTINGS
@given(rule_texts(), st.lists(ROWS, min_size=1, max_size=5))
def test_terms_mean_what_the_tree_means(text: str, rows: list[dict[str, Any]]) -> None:
    tree, rules = read(text)
    for row in rows:
        facts: dict[str, dict[str, Any]] = {}
        for name, value in row.items():
            entity, _, column = name.partition(".")
            facts.setdefault(entity, {})[column] = value
        expected = [met for _, met in outcomes(tree.statements, facts)]
        assert expected == [outcome(rule.requirement(), row) for rule in rules]


@SETTINGS
@given(rule_texts(), st.lists(ROWS, min_size=1, max_size=20))
def test_what_is_left_decides_as_the_whole_does(text: str, rows: list[dict[str, Any]]) -> None:
    _, rules = read(text)
    left = reduced(rules)
    assume(left.notes)
    whole = [rule.requirement() for rule in rules]
    for row in rows:
        assert status(whole, row) == status(list(left.requirements), row), left.notes
