"""The machine that runs requirements."""
