"""Cubes: cells of many vertices, kept up to date by partitions of time."""
