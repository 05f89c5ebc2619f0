"""CQL: continuous queries over streams and relations.

read        queries, with the readers of expressions and windows that all languages share
statements  declarations, views and queries of a file
load        the tree becomes operators of the calculus, as `millstream.queries` says
"""
