"""All kinds of tables by name."""

from __future__ import annotations

from millstream.values.tables.distinct import DISTINCT
from millstream.values.tables.exact import EXACT
from millstream.values.tables.kind import TableKind
from millstream.values.tables.quantiles import QUANTILE
from millstream.values.tables.samples import SAMPLES
from millstream.values.tables.top import TOP

TABLES: dict[str, TableKind] = {
    kind.name: kind for kind in (*EXACT, TOP, QUANTILE, *DISTINCT, *SAMPLES)
}
