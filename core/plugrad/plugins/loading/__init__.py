"""Finds, loads and unloads plugins, and says what went wrong."""
