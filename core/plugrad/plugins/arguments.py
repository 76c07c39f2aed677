"""Gives functions written in Python PyTorch's error messages for wrong arguments."""

from plugrad.tensor.calls.annotations import explain_constructors, explains

__all__ = ["explain_constructors", "explains"]
