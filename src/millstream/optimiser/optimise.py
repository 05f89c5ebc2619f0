"""The pipeline, and the driver that records every rewrite."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from millstream.calculus.estimates import NOTHING, Measures
from millstream.calculus.functions import Join
from millstream.calculus.graph import Operator, Program
from millstream.calculus.verify import verify
from millstream.errors import UsageError, listing, suggest
from millstream.optimiser.combine_linear import combine_linear
from millstream.optimiser.combine_linear import refusals as of_linear
from millstream.optimiser.drop_identities import drop_identities
from millstream.optimiser.drop_identities import refusals as of_identities
from millstream.optimiser.first_in_groups import first_in_groups
from millstream.optimiser.first_in_groups import refusals as of_groups
from millstream.optimiser.fold_constants import fold_constants
from millstream.optimiser.fold_constants import refusals as of_constants
from millstream.optimiser.fuse import fuse
from millstream.optimiser.fuse import refusals as of_neighbours
from millstream.optimiser.hoist_select import hoist_select
from millstream.optimiser.hoist_select import refusals as of_selects
from millstream.optimiser.index_joins import index_joins
from millstream.optimiser.index_joins import refusals as of_equations
from millstream.optimiser.join_then_split import join_then_split
from millstream.optimiser.join_then_split import refusals as of_turns
from millstream.optimiser.look_up_joins import look_up_joins
from millstream.optimiser.look_up_joins import refusals as of_joins
from millstream.optimiser.merge_selects import merge_selects
from millstream.optimiser.narrow_columns import narrow_columns
from millstream.optimiser.narrow_columns import refusals as of_columns
from millstream.optimiser.order_joins import order_joins
from millstream.optimiser.order_joins import refusals as of_orders
from millstream.optimiser.order_selects import order_selects
from millstream.optimiser.order_selects import refusals as of_conditions
from millstream.optimiser.share_common import refusals as of_twins
from millstream.optimiser.share_common import share_common
from millstream.optimiser.split_by_rates import refusals as of_rates
from millstream.optimiser.split_by_rates import split_by_rates
from millstream.optimiser.split_sheets import refusals as of_sheets
from millstream.optimiser.split_sheets import split_sheets
from millstream.optimiser.split_stateless import refusals as of_stateless
from millstream.optimiser.split_stateless import split_stateless
from millstream.optimiser.sum_in_parts import refusals as of_totals
from millstream.optimiser.sum_in_parts import sum_in_parts

Pass = Callable[[Program], Program]

#: Run in turn until nothing changes. A pass rewrites all that it applies to in one go, because a
#: new program must be typed and verified; it returns the same object if it applies to nothing.
PASSES: tuple[Pass, ...] = (
    fold_constants,  # before all: what is known needs no place
    drop_identities,  # after: a condition may have turned out to be true
    join_then_split,  # before others look at what lies between
    split_sheets,  # before selections move: they cannot pass what others want whole
    hoist_select,  # first: what never enters needs no work
    merge_selects,  # after: selections that have met at the same place
    order_selects,  # after: all conditions of one place are together
    first_in_groups,  # after: all that is asked of the groups is in one place
    index_joins,  # a join that tries every pair is the worst there is
    look_up_joins,  # after indexing: keys ask less than comparisons
    share_common,  # after hoisting: what is equal then is equal to the inputs
    order_joins,  # after sharing: what others read too is not taken apart
    sum_in_parts,  # after sharing: a window that others read stays as it is
    narrow_columns,  # last: who reads what is settled
)

#: Passes that are made only if they are asked for by name: what they are for is done better where
#: loops are made and rows are laid out, but they can be seen here, alone and with others.
ON_REQUEST: tuple[Pass, ...] = (fuse, split_stateless, split_by_rates)

#: Of these, those that make copies, and can be told how many.
OF_DEGREES: dict[str, Callable[[Program, int], Program]] = {
    "split_stateless": split_stateless, "split_by_rates": split_by_rates,
}  # fmt: skip
MOST_COPIES = 64

#: Passes after which numbers may be rounded in another way: made where somebody allows it.
RELAXED: tuple[Pass, ...] = (combine_linear,)

#: Passes that go by what is known of the data, and what tells their refusals.
_BY_MEASURES: dict[str, Callable[[Program, Measures], Program]] = {
    "order_selects": order_selects, "order_joins": order_joins, "sum_in_parts": sum_in_parts,
}  # fmt: skip
_TOLD_BY_MEASURES: dict[str, Callable[[Program, Measures], Iterator[tuple[Operator, str]]]] = {
    "order_selects": of_conditions, "order_joins": of_orders, "sum_in_parts": of_totals,
}  # fmt: skip

#: What the paper calls its rules.
RULES: dict[str, str] = {
    "hoist_select": "O-HoistSelect",
    "fuse": "O-Fuse",
    "split_stateless": "O-Split",
    "split_by_rates": "O-Split",
}

#: Why each pass is worth its while, for those who read what it has done.
REASONS: dict[str, str] = {
    "fold_constants": "what never changes is worked out before anything runs",
    "drop_identities": "it only hands on what it is given",
    "join_then_split": "what comes in step is put together in turns only to be taken apart in the "
    "same turns",
    "order_selects": "the cheap condition that drops most is asked first, the others only about "
    "what is left",
    "hoist_select": "the selection reads only what the operator before it leaves as it is, "
    "and what is dropped early costs nothing later",
    "merge_selects": "two selections in a row are one",
    "order_joins": "fewer rows are left by the join that now comes first",
    "first_in_groups": "what comes behind the first rows of a group is asked for by nobody",
    "index_joins": "pairs with equal keys are found, others need not be tried",
    "look_up_joins": "a join tells all pairs anew whenever the other side changes; a lookup "
    "touches only the rows whose answer turns",
    "share_common": "the same function on the same queue gives the same",
    "sum_in_parts": "all rows of a total would have to come together in one place; now only the "
    "sums of parts do, and they change only when the window slides",
    "fuse": "nothing has to be handed from one to the other",
    "split_sheets": "it has no cell in common with the rest, needs fewer inputs or keeps nothing",
    "split_stateless": "it has no variables and gives one item for each, so copies of it can "
    "take turns",
    "split_by_rates": "a firing sees nothing of another, takes and sends always as many items, so "
    "copies of it can take turns",
    "combine_linear": "the product of their matrices takes fewer multiplications than both",
    "narrow_columns": "nothing behind reads the other columns, which would be kept in state",
}

#: What tells the matches that a pass does not apply to, and their guards. Two selections in a row
#: are always merged.
TOLD_BY: dict[Pass, Callable[[Program], Iterator[tuple[Operator, str]]]] = {
    hoist_select: of_selects, fuse: of_neighbours, split_stateless: of_stateless,
    sum_in_parts: of_totals, fold_constants: of_constants, drop_identities: of_identities,
    join_then_split: of_turns, order_selects: of_conditions, split_by_rates: of_rates,
    first_in_groups: of_groups, index_joins: of_equations, look_up_joins: of_joins,
    share_common: of_twins, narrow_columns: of_columns, combine_linear: of_linear,
    order_joins: of_orders, split_sheets: of_sheets,
}  # fmt: skip

#: After a turn of all passes little is left to do for a second, and next to nothing for more, but
#: for joins.
MAX_TURNS = 100


@dataclass(frozen=True, slots=True)
class Rewrite:
    """One application of a pass, and why it was made."""

    name: str
    reason: str
    before: Program
    after: Program
    seconds: float
    #: What was known of the data.
    measures: Measures = NOTHING


def passes_named(
    only: Sequence[str] | None = None, without: Sequence[str] = (), *, relaxed: bool = False
) -> tuple[Pass, ...]:
    """Those of some names, or all that are usually made, but for others.

    If it is `relaxed`, those too that may change how numbers are rounded. A pass that makes
    copies is told how many as in `split_stateless=3`.
    """
    known = {one.__name__: one for one in (*PASSES, *ON_REQUEST, *RELAXED)}
    if only is not None:
        numbered = dict(_with_degree(name, known) for name in only if "=" in name)
        known |= numbered
        only = [name.partition("=")[0] for name in only]
    for name in (*(only or ()), *without):
        if name not in known:
            hint = suggest(name, known) or f"passes are: {listing(known)}"
            raise UsageError(f'there is no pass "{name}"', hint=hint)
    usual = [one.__name__ for one in (*PASSES, *(RELAXED if relaxed else ()))]
    chosen = usual if only is None else [name for name in known if name in only]
    return tuple(known[name] for name in chosen if name not in without)


def _with_degree(text: str, known: Mapping[str, Pass]) -> tuple[str, Pass]:
    """A pass that makes so many copies as its name says."""
    name, _, number = text.partition("=")
    if name not in OF_DEGREES:
        hint = f"passes that do are: {listing(OF_DEGREES)}" if name in known else None
        raise UsageError(f'"{name}" is no pass that makes copies', hint=hint)
    if not number.isascii() or not number.isdigit() or not 2 <= int(number) <= MOST_COPIES:
        raise UsageError(f"{name} makes 2 to {MOST_COPIES} copies, not {number!r}")
    made = OF_DEGREES[name]

    @functools.wraps(made)
    def so_often(program: Program) -> Program:
        return made(program, int(number))

    return name, so_often


def optimise(
    program: Program,
    passes: tuple[Pass, ...] = PASSES,
    trace: Callable[[Rewrite], None] | None = None,
    measures: Measures = NOTHING,
) -> Program:
    """Apply passes until none changes the program; what they come to is verified.

    They go by what is known of the data where somebody has measured it.

    If somebody traces them, or they come to what is no program, the result of each is: verifying
    takes as long as the passes do.
    """
    passes = tuple(_knowing(pass_, measures) for pass_ in passes)
    given = trace
    if given is not None:
        trace = lambda rewrite: given(replace(rewrite, measures=measures))  # noqa: E731
    optimised = _to_the_end(program, passes, trace)
    if optimised is program or trace is not None or not verify(optimised):
        return optimised
    return _to_the_end(program, passes, _verify_only)


def _knowing(one: Pass, measures: Measures) -> Pass:
    """A pass that goes by what is known of the data."""
    if one.__name__ not in _BY_MEASURES or measures is NOTHING:
        return one
    made = _BY_MEASURES[one.__name__]

    @functools.wraps(made)
    def by_measures(program: Program) -> Program:
        return made(program, measures)

    return by_measures


def _verify_only(rewrite: Rewrite) -> None:
    """Nobody wants to know what was done, only that each step of it was right."""


def _to_the_end(
    program: Program, passes: tuple[Pass, ...], trace: Callable[[Rewrite], None] | None
) -> Program:
    # Lookups take the place of joins one by one, after each of which others may be worth it too.
    joins = sum(isinstance(op.function, Join) for op in program.operators)
    for _ in range(MAX_TURNS + joins):
        before = program
        for pass_ in passes:
            program = _applied(pass_, program, trace)
        if program is before:
            return program
    names = ", ".join(p.__name__ for p in passes)
    raise AssertionError(f"the passes {names} do not come to an end")


def refusals(
    program: Program, passes: tuple[Pass, ...] = PASSES, measures: Measures = NOTHING
) -> Iterator[tuple[Pass, Operator, str]]:
    """What passes look at and leave as it is, in a program that is optimised, and the guards."""
    tells = {one.__name__: tell_of for one, tell_of in TOLD_BY.items()}
    for name, tell in _TOLD_BY_MEASURES.items():
        tells[name] = functools.partial(_told, tell, measures)
    for pass_ in passes:
        if pass_.__name__ in tells:
            yield from ((pass_, op, why) for op, why in tells[pass_.__name__](program))


def _told(
    tell: Callable[[Program, Measures], Iterator[tuple[Operator, str]]],
    measures: Measures,
    program: Program,
) -> Iterator[tuple[Operator, str]]:
    return tell(program, measures)


def _applied(one: Pass, program: Program, trace: Callable[[Rewrite], None] | None) -> Program:
    start = time.perf_counter()
    after = one(program)
    if after is not program and trace is not None:
        faults = verify(after)
        assert not faults, (one.__name__, [f.render() for f in faults])
        seconds = time.perf_counter() - start
        trace(Rewrite(one.__name__, REASONS[one.__name__], program, after, seconds))
    return after
