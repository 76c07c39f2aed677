"""What functions written in Python say of arguments that do not fit: PyTorch's words."""

from plugrad.tensor.calls.annotations import explain_constructors, explains

__all__ = ["explain_constructors", "explains"]
