"""Linear filters that follow each other, or stand side by side, become one.

Law: a matrix times a matrix is a matrix. If F makes y = A x + a, and G makes z = B y + b of several
firings of F, then z = (B A) x + (B a + b), where A stands once for each firing, shifted by what F
takes off. Filters that are given the same items, and whose items are joined in turns, are one
filter that has the rows of all.

    before  (q) <- Work[... push 2 * peek(0)](in); (out) <- Work[... push peek(0) + peek(1)](q);
    after   (out) <- Work[... push 2 * peek(0) + 2 * peek(1)](in);

Sums in another order are rounded in another way, so this is made only if somebody asks for it.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from millstream.calculus.functions import Duplicate, RoundRobinJoin
from millstream.calculus.graph import Operator, Program, in_dependency_order, rewritten
from millstream.calculus.library.linear import linear_work
from millstream.calculus.work import Work
from millstream.meaning.linear import Linear, linear_of

#: A larger matrix would take longer to make than most runs take.
_MOST_CELLS = 1 << 14


def combine_linear(program: Program) -> Program:
    """Combine all linear filters that become cheaper by it; the same program if there are none."""
    made: dict[str, Operator] = {}
    instead: dict[int, list[Operator]] = {}
    for op in in_dependency_order(program):
        before = [made.get(queue) for queue in op.inputs]
        known = [one for one in before if one is not None]
        combined = None
        if len(known) == len(before):
            combined = _combined(op, known, made)
        if isinstance(combined, tuple):
            new, gone = combined
            instead.update({id(one): [] for one in gone})
            instead[id(op)] = [new]
            made.update(dict.fromkeys(new.outputs, new))
        else:
            made.update(dict.fromkeys(op.outputs, op))
    return rewritten(program, instead)


def refusals(program: Program) -> Iterator[tuple[Operator, str]]:
    """The filters that stay beside others, and the guard of each."""
    producers = program.producers()
    for op in in_dependency_order(program):
        known = [producers[queue] for queue in op.inputs if queue in producers]
        if len(known) == len(op.inputs):
            why = _combined(op, known, producers)
            if isinstance(why, str):
                yield op, why


#: A filter that does the work of others, and these; or why there is none. None is no match.
_Combined = tuple[Operator, tuple[Operator, ...]] | str | None


def _combined(op: Operator, before: list[Operator], made: Mapping[str, Operator]) -> _Combined:
    if isinstance(op.function, RoundRobinJoin):
        return _side_by_side(op, op.function, before, made)
    if isinstance(op.function, Work) and before and isinstance(before[0].function, Work):
        return _in_a_row(op, before[0], before[0].function, op.function)
    return None


def _in_a_row(op: Operator, first: Operator, left: Work, right: Work) -> _Combined:
    """A filter with the one before it."""
    # If one firing of the second needs whole ones of the first, items leave when they did before.
    if not left.rates.push or right.rates.pop % left.rates.push:
        return f"a firing of it does not take what whole firings of {first.id} give"
    times, inner = right.rates.pop // left.rates.push, _linear(left)
    outer = None if inner is None else _linear(right)
    if inner is None or outer is None or len(op.outputs) != 1:
        return f"{first.id if inner is None else op.id} is not linear"
    seen = (-(-right.rates.peek // left.rates.push) - 1) * left.rates.pop + left.rates.peek
    # A matrix that has more numbers than both would only make more work.
    if right.rates.push * seen > min(_MOST_CELLS, times * _products(inner) + _products(outer)):
        return f"the matrix of it and {first.id} has more numbers than both, or too many"
    product = _product(outer, inner, left.rates.pop, seen)
    path = f"{left.path} and {right.path}"
    work = linear_work(product.matrix, product.offset, times * left.rates.pop, path)
    buffer = op.reads[-1:]
    return replace(op, function=work, inputs=first.inputs, reads=buffer, writes=buffer), (first,)


def _side_by_side(
    op: Operator, join: RoundRobinJoin, before: list[Operator], made: Mapping[str, Operator]
) -> _Combined:
    """A join with the filters before it and the copies that they are given."""
    works = [one.function for one in before if isinstance(one.function, Work)]
    copies = made.get(before[0].inputs[0])
    if len(works) < len(before) or copies is None or not isinstance(copies.function, Duplicate):
        return None
    if copies.outputs != tuple(queue for one in before for queue in one.inputs):
        return None
    if any(join.enqueued):
        return "items lie on its inputs before anything comes"
    rates, weights = works[0].rates, join.weights or (1,) * len(before)
    # Those who look as far fire at the same times, so that items leave when they did before.
    if any((w.rates.pop, w.rates.peek) != (rates.pop, rates.peek) for w in works):
        return "the filters before it do not look equally far, so they fire at other times"
    if weights != tuple(work.rates.push for work in works):
        return "it does not take in turn what one firing of each filter gives"
    linears = [_linear(work) for work in works]
    known = [one for one in linears if one is not None]
    if len(known) < len(linears):
        return f"{before[linears.index(None)].id} is not linear"
    if rates.peek * sum(weights) > min(_MOST_CELLS, sum(map(_products, known))):
        return "the matrix of all its filters has more numbers than they have, or too many"
    matrix = [row for one in known for row in one.matrix]
    offset = [number for one in known for number in one.offset]
    work = linear_work(matrix, offset, rates.pop, " and ".join(work.path for work in works))
    buffer = op.reads[-1:]
    new = replace(op, function=work, inputs=copies.inputs, reads=buffer, writes=buffer)
    return new, (copies, *before)


@functools.lru_cache(maxsize=4096)
def _linear(work: Work) -> Linear | None:
    return linear_of(work)


def _products(linear: Linear) -> int:
    """How many products a firing has to make."""
    return sum(factor != 0 for row in linear.matrix for factor in row)


def _product(outer: Linear, inner: Linear, pop: int, seen: int) -> Linear:
    """What a filter makes of what another makes, which takes so many items off at a firing."""
    right, factors = np.array(inner.matrix), np.array(outer.matrix)
    push, peek = right.shape
    matrix = np.zeros((len(factors), seen))
    for firing in range(-(-factors.shape[1] // push)):
        some = factors[:, firing * push : (firing + 1) * push]
        begin = firing * pop
        matrix[:, begin : begin + peek] += some @ right[: some.shape[1]]
    offsets = np.resize(np.array(inner.offset), factors.shape[1])
    return Linear(_rows(matrix), tuple((factors @ offsets + np.array(outer.offset)).tolist()))


def _rows(matrix: Iterable[Sequence[float]]) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(float(number) for number in row) for row in matrix)
