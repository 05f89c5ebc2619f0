"""The calculus: types, terms, functions and the program graph. Everything is frozen."""
