"""Operators made of other operators; one module per operator family."""
