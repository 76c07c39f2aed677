"""Families that do what the runner has to notice, for its own test."""
