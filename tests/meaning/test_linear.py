"""The matrix of a filter does what the filter does."""

from __future__ import annotations

import numpy as np
import pytest

import millstream
from millstream.calculus.work import Work
from millstream.languages.streamit.load import load
from millstream.meaning.linear import Linear, linear_of
from millstream.source import Source
from tests.languages.streamit.test_meaning import out


def linear(text: str) -> Linear | None:
    operator = load(Source("test.str", text)).program.operators[0]
    assert isinstance(operator.function, Work)
    return linear_of(operator.function)


TAPS = """float->float filter Taps {
    float[4] h;
    init { for (int i = 0; i < 4; i++) h[i] = (i - 1) * 0.5; }
    float weighed(int i) { return h[i] * peek(i); }
    work peek 4 pop 2 push 2 {
        float sum = 0;
        for (int i = 0; i < 4; i++) sum += weighed(i);
        push(sum - 1.5);
        push(-(peek(0) + 2 * pop()) / 4 + 0.25);
        pop();
    }
}"""


def test_items_times_the_matrix_is_what_a_firing_gives() -> None:
    found = linear(TAPS)
    assert found is not None
    assert ((-0.5, 0.0, 0.5, 1.0), (-0.75, 0.0, 0.0, 0.0)) == found.matrix
    assert (-1.5, 0.25) == found.offset
    items = np.array([1.0, -2.0, 4.0, 0.5, 8.0, -0.25])
    firings = [np.array(found.matrix) @ items[n : n + 4] + found.offset for n in (0, 2)]
    assert np.concatenate(firings).tolist() == out(TAPS, items.tolist())


@pytest.mark.parametrize(
    "work",
    [
        "work pop 2 push 1 { push(pop() * pop()); }",
        "work pop 1 push 1 { float x = pop(); push(x > 0 ? x : 0); }",
        "work pop 1 push 1 { push(sin(pop())); }",
        "float s; work pop 1 push 1 { s += pop(); push(s); }",
        "work pop 1 push 1 { push(1 / pop()); }",
        "work pop 1 push 1 { push(pop() * iter()); }",
        "work pop 1 push 1 { println(peek(0)); push(pop()); }",
    ],
)
def test_what_is_not_linear_has_none(work: str) -> None:
    assert linear(f"float->float filter F {{ {work} }}") is None


def test_explain_shows_matrices() -> None:
    text = millstream.compile(text=TAPS, language="streamit").explain()
    assert "Taps is linear: of 4 items it makes" in text
    assert "(-0.5, 0, 0.5, 1) * items + -1.5" in text
