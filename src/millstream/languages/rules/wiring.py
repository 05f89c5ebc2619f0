"""What rules make of several operators: some columns, and joins that keep every row."""

from __future__ import annotations

from millstream.calculus.functions import Distinct, Join, Merge
from millstream.calculus.library.outer_joins import Pairs, padded, without_partner
from millstream.calculus.types import Schema
from millstream.calculus.wiring import Queue, Wiring


class RulesWiring(Wiring):
    """Mutable: the inputs and operators so far."""

    def left_join(
        self, left: Queue, right: Queue, on: Pairs, name: str, keep: frozenset[str]
    ) -> Queue:
        """Every row of the left with its partner, or with nulls where it has none.

        The right is made to have a row for every key that is asked for, so that a row of the
        left is kept and looked up once. Of the columns only those in `keep` stay: the optimiser
        would see to that, but one rewrite at a time.
        """
        if not on:
            return self._beside(left, right, name, keep)
        ours = {f"key{n}": one for n, (one, _) in enumerate(on)}
        theirs = {f"key{n}": other for n, (_, other) in enumerate(on)}
        keys = self.columns(left, ours, f"{name}_asked")
        asked = self.add(Distinct(), keys, name=f"{name}_asked")
        wanted = {n: n for n in right.schema.names if n in keep}
        there = self.columns(right, theirs | wanted, f"{name}_there")
        nobody = padded(there.schema, asked.schema)
        same = tuple((key, key) for key in ours)
        missing = without_partner(self, asked, there, same, nobody, name=name, nulls_match=True)
        total = self.add(Merge(), there, missing, name=f"{name}_total")
        # A row that asks for nothing finds the row that is there for those who do.
        pairs = Join(tuple((one, key) for key, one in ours.items()), nulls_match=True)
        joined = self.add(pairs, left, total, name=f"{name}_pairs")
        return self.columns(joined, {n: n for n in joined.schema.names if n in keep}, name)

    def _beside(self, left: Queue, right: Queue, name: str, keep: frozenset[str]) -> Queue:
        """Every row of the left with the one row of the right, if it is there."""
        joined = self.add(Join(), left, right, name=f"{name}_pairs")
        kept = [f for f in joined.schema if f.name in keep]
        pairs = self.columns(joined, {f.name: f.name for f in kept}, f"{name}_kept")
        schema = Schema(tuple(kept))
        padding = without_partner(self, left, right, (), padded(schema, left.schema), name=name)
        return self.add(Merge(), pairs, padding, name=name)
