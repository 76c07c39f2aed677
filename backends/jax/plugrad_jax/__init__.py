"""The place of the JAX backend: nothing is provided yet."""
