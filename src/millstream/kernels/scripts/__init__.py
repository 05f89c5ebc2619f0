"""Scripts as functions of Python, and the tables that they emit to."""
