"""The reference environment: what each function means, one item at a time.

Straight from the definitions, slow and obvious, with whole histories and whole bags. The
reference interpreter runs it; the kernels are compared with it; and what has no kernel
runs through it.
"""
