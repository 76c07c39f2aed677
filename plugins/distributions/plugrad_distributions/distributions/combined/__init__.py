"""Distributions that are built from others."""
