"""What rules make of several operators: some columns, and joins that keep every row."""

from __future__ import annotations

from collections.abc import Mapping

from millstream.calculus.functions import Assign, Filter, Join, Lookup, Map, Merge
from millstream.calculus.terms import Call, Literal, Term
from millstream.calculus.types import BOOLEAN
from millstream.calculus.wiring import Queue, Wiring

Pairs = tuple[tuple[str, str], ...]


class RulesWiring(Wiring):
    """Mutable: the inputs and operators so far."""

    def columns(self, flow: Queue, names: Mapping[str, str], name: str) -> Queue:
        """Only some columns, under new names."""
        made = tuple(Assign(new, flow.column(old)) for new, old in names.items())
        return self.add(Map(made), flow, name=name)

    def left_join(
        self, left: Queue, right: Queue, on: Pairs, name: str, keep: frozenset[str]
    ) -> Queue:
        """Every row of the left with its partner, or with nulls where it has none.

        Of the columns only those in `keep` stay, and only keys are looked up: the optimiser
        would see to that, but one rewrite at a time.
        """
        joined = self.add(Join(on), left, right, name=f"{name}_pairs")
        kept = [f for f in joined.schema if f.name in keep]
        pairs = self.columns(joined, {f.name: f.name for f in kept}, f"{name}_kept")
        keys = right
        if on:
            keys = self.columns(right, {other: other for _, other in on}, f"{name}_keys")
        found = f"{name}_found"
        looked = self.add(Lookup(found, on), left, keys, name=f"{name}_lookup")
        lonely: Term = Call("not", (looked.column(found),), BOOLEAN)
        alone = self.add(Filter(lonely), looked, name=f"{name}_alone")
        padded = tuple(
            Assign(f.name, left.column(f.name) if f.name in left.schema else Literal(None, f.type))
            for f in kept
        )
        padding = self.add(Map(padded), alone, name=f"{name}_padded")
        return self.add(Merge(), pairs, padding, name=name)
