"""The JAX backend of plugrad: `device="jax"`."""
