"""Tensor parallel modules: sharded parameters, and placements of inputs and outputs."""
