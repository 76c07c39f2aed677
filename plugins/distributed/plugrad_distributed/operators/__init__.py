"""The collectives as operators of the namespace `distributed`: entries, kernels, gradients, and
rules for vmap and for tensors without data."""
