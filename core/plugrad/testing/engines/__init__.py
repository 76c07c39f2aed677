"""Engines for tests: a naive one, and one under a schedule explorer."""
