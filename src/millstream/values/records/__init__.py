"""Values of programs that read records: compound, by value, possibly without a value."""
