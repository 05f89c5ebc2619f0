"""Rule files and inputs for the toy domain, small and full of equal values."""

from __future__ import annotations

import math

from hypothesis import strategies as st

from millstream.calculus.graph import Program
from millstream.calculus.types import Kind, Type, Value
from millstream.engine.reference.feed import Event

LENGTHS = ("vessel.draught", "vessel.length", "berth.depth", "tide.height", "depth")
PLACES = ("east", "west", "north")

#: Mentions every column, so that the facts are always the same program.
EVERYTHING = (
    "require vessel.draught + vessel.length + berth.depth + tide.height >= -9000 km "
    "or wind.velocity <= 900 knots or vessel.id == 1 or tugs.available >= 99 "
    'or vessel.kind == Barge or vessel.destination == "east" or berth.basin == "north"'
)


def lengths() -> st.SearchStrategy[str]:
    constant = st.builds(lambda n, unit: f"{n} {unit}", st.sampled_from((-1, 0, 1, 2, 2.5)),
                         st.sampled_from(("m", "km")))  # fmt: skip
    leaf = st.sampled_from(LENGTHS) | constant
    return st.recursive(
        leaf,
        lambda inner: st.one_of(
            st.builds(lambda a, b, o: f"({a} {o} {b})", inner, inner, st.sampled_from("+-")),
            st.builds(lambda a: f"abs({a})", inner),
            st.builds(lambda a: f"-({a})", inner),
            st.builds(lambda a, n: f"{n} * ({a})", inner, st.sampled_from((2, 0.5))),
        ),
        max_leaves=3,
    )


def conditions() -> st.SearchStrategy[str]:
    relation = st.sampled_from(("<", "<=", ">", ">=", "==", "!="))
    # Bounds on a few quantities, so that some imply others.
    bound = st.builds(lambda a, r, n: f"{a} {r} {n} m", st.sampled_from(LENGTHS), relation,
                      st.sampled_from((0, 0.5, 1, 2)))  # fmt: skip
    # The same on both sides cancels, but must be known all the same.
    cancelled = st.builds(
        lambda a, r, n, b: f"{a} + {b} {r} {n} m + {b}", st.sampled_from(LENGTHS), relation,
        st.sampled_from((0, 0.5, 1)), st.sampled_from(("tide.height", "0 * berth.depth")),
    )  # fmt: skip
    leaf = st.one_of(
        bound,
        bound,
        cancelled,
        bound,
        st.builds(lambda a, r, b: f"{a} {r} {b}", lengths(), relation, lengths()),
        st.builds(lambda r, n: f"wind.velocity {r} {n} knots", relation, st.integers(0, 3)),
        st.builds(lambda r, n: f"tugs.available {r} {n}", relation, st.integers(0, 3)),
        st.builds(lambda r, k: f"vessel.kind {r} {k}", st.sampled_from(("==", "!=")),
                  st.sampled_from(("Barge", "Tanker"))),
        st.sampled_from(('vessel.destination == "west"', 'berth.basin == "north"')),
    )  # fmt: skip
    return st.recursive(
        leaf,
        lambda inner: st.one_of(
            st.builds(
                lambda a, b, o: f"({a} {o} {b})", inner, inner, st.sampled_from(("and", "or"))
            ),
            st.builds(lambda a: f"not ({a})", inner),
        ),
        max_leaves=3,
    )


def _indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def _joined(blocks_: list[list[str]]) -> list[str]:
    return [line for block in blocks_ for line in block]


def blocks() -> st.SearchStrategy[list[str]]:
    """Lines of nested statements."""
    leaf = st.builds(lambda c: [f"require {c}"], conditions())

    def nested(inner: st.SearchStrategy[list[str]]) -> st.SearchStrategy[list[str]]:
        body = st.lists(inner, min_size=1, max_size=2).map(_joined)
        return st.one_of(
            st.builds(lambda c, b: [f"when {c}:", *_indented(b)], conditions(), body),
            st.builds(
                lambda p, b: [f'location "{p}":', *_indented(b)], st.sampled_from(PLACES), body
            ),
        )

    return st.recursive(leaf, nested, max_leaves=3)


def rule_texts() -> st.SearchStrategy[str]:
    return st.lists(blocks(), min_size=1, max_size=4).map(
        lambda found: (
            "\n".join(
                [
                    'domain "toy.toml"',
                    "depth = berth.depth + tide.height",
                    *_joined(found),
                    EVERYTHING,
                ]
            )
            + "\n"
        )
    )


@st.composite
def events_for(draw: st.DrawFn, program: Program) -> dict[str, list[Event]]:
    """A few rows for every input, in order of time, many of them for the same keys."""
    found: dict[str, list[Event]] = {}
    for one in program.inputs:
        times = sorted(draw(st.lists(st.integers(2, 12), max_size=5)))
        events = [Event(1, tuple(row[f.name] for f in one.type.schema)) for row in FIRST[one.name]]
        found[one.name] = (events if draw(st.integers(0, 4)) else []) + [
            Event(time, tuple(draw(_values(f.name, f.type)) for f in one.type.schema))
            for time in times
        ]
    return found


#: What is there from the beginning, mostly: enough to decide most rules.
FIRST: dict[str, list[dict[str, Value]]] = {
    "vessels": [
        {"id": 1, "kind": "Barge", "draught": 1.0, "length": 0.5, "destination": "east",
         "eta": 5, "gone": False},
        {"id": 2, "kind": "Tanker", "draught": 2.0, "length": 1.0, "destination": "west",
         "eta": 9, "gone": None},
    ],
    "berths": [
        {"name": "east", "basin": "north", "depth": 2.0, "x": 0.0, "y": 0.0},
        {"name": "west", "basin": "east", "depth": 1.0, "x": 2.0, "y": 0.0},
    ],
    "sensors": [
        {"sensor": "s", "kind": "Air", "x": 0.0, "y": 1.0},
        {"sensor": "t", "kind": "Water", "x": 1.0, "y": 1.0},
    ],
    "tugs": [{"available": 2}],
    "winds": [{"sensor": "s", "velocity": 1.0}],
    "tides": [
        {"sensor": "t", "valid": 0, "height": 0.5}, {"sensor": "t", "valid": 4, "height": 1.0},
        {"sensor": "t", "valid": 8, "height": 2.0},
    ],
}  # fmt: skip


def _values(name: str, type_: Type) -> st.SearchStrategy[Value]:
    keys: dict[str, st.SearchStrategy[Value]] = {
        "id": st.sampled_from((1, 2, 1, 2, None)), "name": st.sampled_from(("east", "west", None)),
        "sensor": st.sampled_from(("s", "t", "s", None)),
        "basin": st.sampled_from(("north", "east", None)),
        "valid": st.sampled_from((0, 4, 8, None)),
        "gone": st.sampled_from((False, False, None, True)),
    }  # fmt: skip
    if name in keys:
        return keys[name]
    texts = {
        "kind": ("Barge", "Tanker", "Air", "Water", "tanker", None),
        "destination": ("east", "west", None),
    }
    if name in texts:
        return st.sampled_from(texts[name])
    if type_.kind is Kind.NUMBER:
        return st.sampled_from((0.0, 1.0, 2.0, 0.5, None, math.nan, math.inf, -math.inf))
    return st.sampled_from((0, 1, 2, 9, None))
