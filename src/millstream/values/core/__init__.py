"""The scalar functions of the calculus, one record each."""
