"""JAX with four devices: XLA divides the host into as many, if it is told to before JAX begins."""

from __future__ import annotations

import os

import pytest

DEVICES = 4
FLAG = "--xla_force_host_platform_device_count"

if FLAG not in os.environ.get("XLA_FLAGS", ""):
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {FLAG}={DEVICES}".strip()

jax = pytest.importorskip("jax", reason="JAX is not installed")

if len(jax.devices()) < DEVICES:
    raise RuntimeError(
        f"tests/jax needs {DEVICES} devices, but JAX began with {len(jax.devices())}, before this "
        f"conftest: run tests/jax by itself, or with XLA_FLAGS={FLAG}={DEVICES}"
    )
