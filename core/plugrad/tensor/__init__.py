"""Tensors: fields, conversions, promotion, printing."""
