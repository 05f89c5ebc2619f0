"""Cubes over streams of any kind: configurations as nodes of a project."""
