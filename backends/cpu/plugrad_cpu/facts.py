"""What `plugrad doctor` says about this backend."""

from __future__ import annotations

import importlib
import os
from typing import Any

import numpy as np

# What BLAS libraries read, the first that is set being the one that counts for most of them.
THREAD_VARIABLES = (
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "OMP_NUM_THREADS",
)


def describe_host() -> dict[str, str]:
    """Versions of NumPy and its BLAS, and the number of threads."""
    return {"numpy": np.__version__, "BLAS": _blas(), "threads": _threads()}


def _blas() -> str:
    config: Any = np.show_config(mode="dicts")
    blas = config.get("Build Dependencies", {}).get("blas", {})
    name, version = blas.get("name", ""), blas.get("version", "")
    return f"{name} {version}".strip() or "unknown"


def _threads() -> str:
    """As the library says, if threadpoolctl can ask it; else what the environment lets expect."""
    try:
        pools: Any = importlib.import_module("threadpoolctl").threadpool_info()
    except ImportError:
        pools = []
    for pool in pools:
        if pool.get("user_api") == "blas":
            return f"{pool['num_threads']} for BLAS, 1 for everything else"
    for variable in THREAD_VARIABLES:
        if os.environ.get(variable):
            return f"{os.environ[variable]} for BLAS ({variable}), 1 for everything else"
    return f"{os.cpu_count() or 1} for BLAS, 1 for everything else"
