"""Excel's formulas: values, syntax, evaluation and functions.

Knows nothing about streams: a formula is a tree, a workbook is something that can be asked
for the value of a cell. The calculus keeps such trees inside `Sheet`; the environment and
the kernels give them their meaning over time.
"""
