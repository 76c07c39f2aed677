"""The library function that computes each operator: one table per backend, imported with it."""
