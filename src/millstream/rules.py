"""The rule language inside Python: the same tree as a `.rules` file.

>>> from millstream import rules
>>> port = rules.domain("port")
>>> m, knots = rules.unit("m"), rules.unit("knots")
>>> ukc = rules.named("ukc", port.berth.depth + port.tide.height - port.vessel.draught)
>>> book = port.rules(
...     rules.location("Wilhelminakade", rules.require(~(port.vessel.type == port.Chemical))),
...     rules.when(
...         port.vessel.draught >= 15 * m,
...         rules.require(ukc >= 0.5 * m),
...         rules.require(port.wind.velocity <= 35 * knots),
...     ),
... )
>>> book.compile().program.outputs
('status', 'warnings')
"""

from __future__ import annotations

from millstream.languages.rules.embedded import (
    Book,
    Value,
    Vocabulary,
    before,
    count,
    distance,
    domain,
    inside,
    lasting,
    location,
    named,
    rate,
    require,
    since,
    total,
    unit,
    until,
    when,
    within,
)
from millstream.languages.rules.situation import explain_situation

__all__ = [
    "Book", "Value", "Vocabulary", "before", "count", "distance", "domain", "explain_situation",
    "inside", "lasting", "location", "named", "rate", "require", "since", "total", "unit", "until",
    "when", "within",
]  # fmt: skip
