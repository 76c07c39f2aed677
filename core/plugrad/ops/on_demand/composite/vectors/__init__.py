"""Integrals and differences of samples, and what different elements there are."""
