"""Data structures of windows: rings, sums, trees, tops."""
