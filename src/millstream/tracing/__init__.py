"""Lambdas of Python as functions of the calculus."""
