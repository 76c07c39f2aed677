"""Elements by position: indexing, sorting, extrema, and the gradients of views."""
