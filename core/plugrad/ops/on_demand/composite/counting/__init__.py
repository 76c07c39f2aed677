"""Counts of numbers, and histograms."""
