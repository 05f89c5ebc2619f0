"""The algebra as actors: a second reference."""
