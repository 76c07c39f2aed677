"""DTensor: tensors distributed over a mesh of ranks."""
