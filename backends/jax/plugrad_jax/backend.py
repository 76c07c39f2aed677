"""The backend for `device="jax"`: JAX's arrays on any device that JAX finds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp

from plugrad.plugins import ArrayNamespaceBackend
from plugrad_jax.kernels import all_kernels


class JaxBackend(ArrayNamespaceBackend):
    """JAX on all its devices. Arrays cannot be written to; views and writes are the core's."""

    def __init__(self) -> None:
        super().__init__(jnp, "jax", devices=jax.devices())

    def kernels(self) -> Mapping[str, Callable[..., Any]]:
        """What follows from the array API standard, and our own kernels in place of it."""
        return {**super().kernels(), **all_kernels()}
