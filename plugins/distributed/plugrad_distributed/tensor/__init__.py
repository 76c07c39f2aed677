"""DTensor: tensors that lie on a mesh of ranks."""
