"""Distributions of vectors, matrices and categories."""
