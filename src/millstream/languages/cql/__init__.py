"""CQL: continuous queries over streams and relations.

tokens      a text is cut into tokens, and a cursor reads them
read        queries, with `read_terms` for expressions and `windows` for what is in brackets
statements  declarations, views and queries of a file
translate   the tree becomes operators of the calculus
"""
