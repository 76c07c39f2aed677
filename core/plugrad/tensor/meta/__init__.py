"""The device "meta": tensors that have a shape, a dtype and strides, but no data."""
