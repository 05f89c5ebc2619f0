"""All functions of programs over records, by name."""

from __future__ import annotations

from millstream.values.records.collections import COLLECTIONS
from millstream.values.records.fingerprints import FINGERPRINTS
from millstream.values.records.formats import FORMATS
from millstream.values.records.intrinsic import Intrinsic
from millstream.values.records.matching import MATCHING
from millstream.values.records.numbers import NUMBERS
from millstream.values.records.packages import PACKAGES
from millstream.values.records.surroundings import SURROUNDINGS
from millstream.values.records.texts import TEXTS
from millstream.values.records.times import TIMES

INTRINSICS: dict[str, Intrinsic] = {
    each.name: each
    for each in (
        *COLLECTIONS, *FINGERPRINTS, *FORMATS, *MATCHING, *NUMBERS, *PACKAGES, *SURROUNDINGS,
        *TEXTS, *TIMES,
    )
}  # fmt: skip
