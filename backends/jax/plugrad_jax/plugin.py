"""The hooks that plugrad finds through the entry point: the backend, which imports JAX when it is
chosen."""

from __future__ import annotations

from plugrad.plugins import Backend, hookimpl


@hookimpl
def plugrad_backends() -> list[type[Backend]]:
    from plugrad_jax.backend import JaxBackend

    return [JaxBackend]
