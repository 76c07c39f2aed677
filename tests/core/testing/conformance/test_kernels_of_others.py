"""Kernels of a preferred package are compared with the backend's own, on the CPU too."""

from __future__ import annotations

import types
from typing import Any

import numpy as np

import plugrad
from plugrad.plugins import get_manager, hookimpl
from tests.core.testing.conformance.runs import Run, run_kit


def certified(kernel: Any) -> Run:
    """A run of the kit on the CPU, with `sinh` from a package."""
    plugrad.ones(1)  # the CPU is active
    module = types.ModuleType("plugrad_swift")
    vars(module)["plugrad_kernels"] = hookimpl(lambda: {"cpu": {"sinh": kernel}})
    get_manager().register(module, "swift")
    try:
        with plugrad.config.set(prefer=["swift"]):
            return run_kit(
                "--plugrad-backend=cpu", "-k", "sinh", topics=("values", "gradients", "in place")
            )
    finally:
        get_manager().unregister("swift")


def test_a_wrong_kernel_for_the_cpu_is_found() -> None:
    run = certified(lambda a: NotImplemented if a.dtype.kind == "c" else np.sinh(a) * 1.001)
    assert run.code == 1
    assert {"values", "in place"} <= run.topics()
    assert run.certificates["cpu"].facts["kernels"] == {"plugrad_swift": ["sinh"]}


def test_a_right_one_is_certified() -> None:
    run = certified(lambda a: NotImplemented if a.size == 1 else np.sinh(a, dtype=a.dtype))
    assert run.failures == {}
    assert run.passed > 5
