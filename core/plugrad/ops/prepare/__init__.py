"""Checks and normalises arguments before a raw kernel sees them; one module per operator family."""
