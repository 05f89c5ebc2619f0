"""Continuous queries: their tree, how its parts are read, and what they mean in the calculus.

What is written in which order is said by the languages that have queries.
"""
