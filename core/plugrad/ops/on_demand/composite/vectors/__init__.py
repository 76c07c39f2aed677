"""Integrals and differences of samples, and unique elements."""
