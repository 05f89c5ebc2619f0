"""Operators that are made of others: no kernel, no pass and no engine knows them."""
