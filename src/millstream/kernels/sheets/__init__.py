"""The compiler of sheets."""
