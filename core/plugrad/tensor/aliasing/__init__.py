"""Memory that several tensors share: views, strides, overlap, and their emulation on immutable
arrays."""
