"""Engines beside the real one: naive, and under a schedule explorer."""
