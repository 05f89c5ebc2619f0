"""What every match of a pattern begins with, and what is in it somewhere.

That is looked for first, many characters at once. What logs and letters have least of is best.
"""

from __future__ import annotations

from itertools import pairwise

from millstream.kernels.records.pattern_trees import (
    BEYOND,
    All,
    Either,
    Group,
    Here,
    One,
    Repeat,
    Tree,
)

#: Of so many characters at its beginning is known what a match can have there.
_MOST_LEAD = 8
#: Characters of logs and letters, those that are met most often first.
_OFTEN = " etaoinsr0123456789hldcumfpgwybvkxjqz.-/:,"
#: Some share of all characters, for each: only which is more matters.
_SHARES = [0.002] * 128 + [0.01]
for _place, _letter in enumerate(_OFTEN):
    _SHARES[ord(_letter)] = 1.0 / (_place + 8)

Lead = list[frozenset[int]]


def lead_of(part: Tree) -> Lead:
    """What the first characters of every match are of."""
    return _lead(part)[0][:_MOST_LEAD]


def _lead(part: Tree) -> tuple[Lead, bool]:
    """The same, and whether a match has no others."""
    match part:
        case One(of):
            return [of], True
        case Here():
            return [], True
        case All(parts):
            return _one_after_the_other(parts)
        case Either(parts):
            ways = [_lead(each) for each in parts]
            sizes = {len(sets) for sets, _ in ways}
            lead = [
                frozenset.union(*sets) for sets in zip(*(sets for sets, _ in ways), strict=False)
            ]
            return lead, len(sizes) == 1 and all(is_whole for _, is_whole in ways)
        case Group(_, inner):
            return _lead(inner)
        case Repeat(inner, least, most):
            lead, is_whole = _one_after_the_other((inner,) * min(least, _MOST_LEAD))
            return lead, is_whole and least == most and least <= _MOST_LEAD


def _one_after_the_other(parts: tuple[Tree, ...]) -> tuple[Lead, bool]:
    lead: Lead = []
    for part in parts:
        sets, is_whole = _lead(part)
        lead += sets
        if not is_whole:
            return lead, False
    return lead, True


def _share(of: frozenset[int]) -> float:
    return min(1.0, sum(_SHARES[c] for c in of))


def sieve(lead: Lead) -> list[int]:
    """The two places among the first characters that tell most, or the one there is."""
    return sorted(range(len(lead)), key=lambda place: _share(lead[place]))[:2]


def needed(part: Tree, lead: Lead) -> tuple[int, int] | None:
    """Two bytes that follow each other in every match, or one and -1.

    None if no others are known than what a match is looked for by anyway.
    """
    known = _needed(part)
    if not known:
        return None
    best = min(known, key=_worth)
    looked_for = 1.0
    for place in sieve(lead):
        looked_for *= _share(lead[place])
    return best if _worth(best) < looked_for else None


def _worth(pair: tuple[int, int]) -> float:
    return _SHARES[pair[0]] * (1.0 if pair[1] < 0 else _SHARES[pair[1]])


def _needed(part: Tree) -> list[tuple[int, int]]:
    match part:
        case One(of) if len(of) == 1 and BEYOND not in of:
            return [(min(of), -1)]
        case All(parts):
            singles = [each.of if isinstance(each, One) else frozenset() for each in parts]
            known = [(min(of), -1) for of in singles if len(of) == 1 and BEYOND not in of]
            pairs = [
                (min(one), min(other))
                for one, other in pairwise(singles)
                if len(one) == len(other) == 1 and BEYOND not in one | other
            ]
            return known + pairs + [pair for each in parts for pair in _needed(each)]
        case Group(_, inner):
            return _needed(inner)
        case Repeat(inner, least) if least:
            return _needed(inner)
        case _:
            return []


def is_anchored(part: Tree) -> bool:
    match part:
        case Here("^" | "A"):
            return True
        case All(parts) if parts:
            return is_anchored(parts[0])
        case Either(parts):
            return all(map(is_anchored, parts))
        case Group(_, inner):
            return is_anchored(inner)
        case _:
            return False
