"""Samples of every operator, one module per family; each has a list CASES."""
