"""Memory that several tensors share: views, strides, overlap, and what stands in for them."""
