"""JAX with four devices: XLA divides the host into that many if this is set before JAX begins."""

from __future__ import annotations

import importlib.util
import os

DEVICES = 4
FLAG = "--xla_force_host_platform_device_count"

if importlib.util.find_spec("jax") is None or importlib.util.find_spec("plugrad_jax") is None:
    collect_ignore_glob = ["test_*.py"]
else:
    if FLAG not in os.environ.get("XLA_FLAGS", ""):
        os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {FLAG}={DEVICES}".strip()

    import jax

    if len(jax.devices()) < DEVICES:
        raise RuntimeError(
            f"tests/jax needs {DEVICES} devices, but JAX began with {len(jax.devices())}, before "
            f"this conftest: run tests/jax by itself, or with XLA_FLAGS={FLAG}={DEVICES}"
        )
