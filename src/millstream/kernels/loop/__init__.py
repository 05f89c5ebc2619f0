"""The compiler of what works on one row at a time."""
