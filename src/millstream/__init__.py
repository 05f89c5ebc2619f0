"""Millstream: streams for people who are not stream-processing programmers."""

import sys

__version__ = "0.1.0"

# Walks over terms are recursive. The parser admits trees of 1,000 levels, each of which
# may take several Python frames; Python's own limit of 1,000 frames would break first.
sys.setrecursionlimit(max(sys.getrecursionlimit(), 20_000))
