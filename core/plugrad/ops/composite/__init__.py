"""Operators composed of other operators; one module per operator family."""
