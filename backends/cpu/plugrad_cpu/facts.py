"""The facts that `plugrad doctor` prints about this backend."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from plugrad_cpu.numerics.threads import thread_count


def describe_host() -> dict[str, str]:
    """Versions of NumPy and its BLAS, and the number of threads."""
    return {"numpy": np.__version__, "BLAS": _blas(), "threads": _threads()}


def _blas() -> str:
    config: Any = np.show_config(mode="dicts")
    blas = config.get("Build Dependencies", {}).get("blas", {})
    name, version = blas.get("name", ""), blas.get("version", "")
    return f"{name} {version}".strip() or "unknown"


def _threads() -> str:
    pools: Any = importlib.import_module("threadpoolctl").threadpool_info()
    for pool in pools:
        if pool.get("user_api") == "blas":
            return f"{pool['num_threads']} for BLAS, at most {thread_count()} for other kernels"
    return f"at most {thread_count()}"
