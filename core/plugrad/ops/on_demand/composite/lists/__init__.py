"""Lists of tensors, as optimizers have them."""
