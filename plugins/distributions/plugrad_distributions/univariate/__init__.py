"""Distributions of numbers."""
