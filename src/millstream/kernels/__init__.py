"""The compiled meaning of each function, a batch at a time on columns."""
