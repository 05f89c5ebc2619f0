"""What rules make of several operators: some columns, and joins that keep every row."""

from __future__ import annotations

from millstream.calculus.functions import Join, Merge
from millstream.calculus.library.outer_joins import Pairs, padded, without_partner
from millstream.calculus.types import Schema
from millstream.calculus.wiring import Queue, Wiring


class RulesWiring(Wiring):
    """Mutable: the inputs and operators so far."""

    def left_join(
        self, left: Queue, right: Queue, on: Pairs, name: str, keep: frozenset[str]
    ) -> Queue:
        """Every row of the left with its partner, or with nulls where it has none.

        Of the columns only those in `keep` stay: the optimiser would see to that, but one
        rewrite at a time.
        """
        joined = self.add(Join(on), left, right, name=f"{name}_pairs")
        kept = [f for f in joined.schema if f.name in keep]
        pairs = self.columns(joined, {f.name: f.name for f in kept}, f"{name}_kept")
        schema = Schema(tuple(kept))
        padding = without_partner(self, left, right, on, padded(schema, left.schema), name=name)
        return self.add(Merge(), pairs, padding, name=name)
