"""Vertices are numbered as in table 1 of the paper, and never listed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.calculus.lattice import Lattice, is_as_fine

TABLE_1 = ["", "C", "P", "S", "T", "CP", "CS", "CT", "PS", "PT", "ST", "CPS", "CPT", "CST", "PST",
           "CPST"]  # fmt: skip


def test_vertices_are_numbered_as_in_table_1() -> None:
    lattice = Lattice((1, 1, 1, 1))
    named = [
        "".join(n for n, level in zip("CPST", lattice.vertex(i), strict=True) if level is not None)
        for i in range(len(lattice))
    ]
    assert TABLE_1 == named


def test_appendix_a_has_48_vertices() -> None:
    assert 48 == len(Lattice((2, 3, 3)))


@given(st.lists(st.integers(1, 3), min_size=1, max_size=4))
def test_numbers_and_vertices_are_one_to_one(heights: list[int]) -> None:
    lattice = Lattice(tuple(heights))
    vertices = [lattice.vertex(n) for n in range(len(lattice))]
    assert len(set(vertices)) == len(lattice)
    assert list(range(len(lattice))) == [lattice.number(v) for v in vertices]


def test_a_lattice_of_2_to_the_40_is_not_listed() -> None:
    lattice = Lattice((1,) * 40)
    assert 2**40 == len(lattice) and 2**40 - 1 == lattice.number((0,) * 40)
    assert 2**39 == lattice.number(lattice.vertex(2**39))
    with pytest.raises(IndexError):
        lattice.vertex(2**40)


def test_a_vertex_answers_what_is_as_coarse_in_every_dimension() -> None:
    assert is_as_fine((0, 1), (1, None))
    assert not is_as_fine((1, 0), (0, None))
    assert not is_as_fine((None, 0), (0, 0))
