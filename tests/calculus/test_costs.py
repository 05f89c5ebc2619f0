"""What terms cost: texts are dear where something is made of them or asked of them."""

from __future__ import annotations

from millstream.calculus.costs import cost_of
from millstream.calculus.terms import Call, Column, Literal, Term
from millstream.calculus.types import BOOLEAN, INTEGER, TEXT

NUMBER_IS_LARGE = Call("<", (Column("x", INTEGER), Literal(7, INTEGER)), BOOLEAN)


def chosen(one: Term, other: Term) -> Term:
    return Call("if", (NUMBER_IS_LARGE, one, other), TEXT)


def test_texts_that_are_always_the_same_cost_no_more_than_numbers() -> None:
    texts = chosen(Literal("small", TEXT), Literal("large", TEXT))
    numbers = Call("if", (NUMBER_IS_LARGE, Literal(1, INTEGER), Literal(2, INTEGER)), INTEGER)
    assert cost_of(texts) == cost_of(numbers)


def test_texts_of_rows_are_dear_where_they_are_compared_and_not_where_they_are_handed_on() -> None:
    name = Column("name", TEXT)
    assert cost_of(name) < cost_of(NUMBER_IS_LARGE)
    with_literal = Call("==", (name, Literal("a", TEXT)), BOOLEAN)
    with_column = Call("==", (name, Column("other", TEXT)), BOOLEAN)
    assert 5 * cost_of(NUMBER_IS_LARGE) < cost_of(with_literal) < cost_of(with_column)
