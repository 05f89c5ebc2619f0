"""Pipes: continuous queries written as steps from a stream to what becomes of it.

read   statements of a file become the tree of queries that other languages have too
node   with the columns of its streams a file is translated
"""
