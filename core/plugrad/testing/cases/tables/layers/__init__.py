"""Samples of what layers of networks compute."""
