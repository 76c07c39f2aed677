"""Convolution, pooling, normalisation and embedding, for backends that lack them."""
