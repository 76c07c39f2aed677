"""Elementwise functions made of others, for backends that lack them."""
