"""Rewrites of programs that keep their meaning: one pass per file, one readable pipeline."""
