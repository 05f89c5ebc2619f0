"""Kernels of relations: joins, aggregates, windows, order."""
