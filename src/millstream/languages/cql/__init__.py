"""CQL: continuous queries over streams and relations.

lift        window brackets are taken out of the tokens, with their places
read        what is left is parsed by sqlglot and becomes our own tree
statements  declarations, views and queries of a file
translate   the tree becomes operators of the calculus
"""
