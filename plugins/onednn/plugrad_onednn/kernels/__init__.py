"""The operators, by primitives of oneDNN."""
