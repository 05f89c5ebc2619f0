"""Questions to cubes: what is kept for them, how they are read, planned and answered."""
