"""Single operators on large arrays."""
