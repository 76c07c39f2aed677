"""Samples of products, systems of equations and decompositions."""
