"""What scalars are and compute."""
