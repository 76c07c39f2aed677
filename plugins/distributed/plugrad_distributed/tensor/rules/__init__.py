"""Propagation rules: a table for each family of operators."""
