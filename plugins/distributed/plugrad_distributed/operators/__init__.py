"""The collectives as operators of the namespace `distributed`: entries, kernels, gradients, and
rules for batches and for tensors without data."""
