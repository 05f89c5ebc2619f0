"""Memory that batches are made of, used again instead of given back.

The allocator of glibc returns every large block to the system when it is freed, and the next
batch is given fresh pages that must be cleared first: for batches of some 100,000 rows that
takes longer than the work on them. Once a large block has been freed it keeps blocks up to
that size (32 MB at most). Elsewhere this does nothing.
"""

from __future__ import annotations

from functools import cache

import numpy as np

_BYTES = 31 << 20


@cache
def keep_freed_memory() -> None:
    """Free one large block, once in a process; none of its pages is ever touched."""
    np.empty(_BYTES, np.uint8)
