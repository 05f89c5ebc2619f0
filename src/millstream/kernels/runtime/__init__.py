"""What all kernels stand on: values as numbers, rows in memory."""
