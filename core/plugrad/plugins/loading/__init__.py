"""Finds, loads and unloads plugins, and reports errors."""
