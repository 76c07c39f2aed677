"""Gradients that are longer than one expression; one module per operator family."""
