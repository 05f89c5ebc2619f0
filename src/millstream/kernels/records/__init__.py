"""Kernels of programs that read records: patterns on columns, scripts on columns, tables."""
