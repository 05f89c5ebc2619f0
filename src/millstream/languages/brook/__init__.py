"""Brook: the calculus as a person writes it."""
