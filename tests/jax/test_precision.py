"""64-bit numbers: int64 always, float64 and complex128 where they are on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import jax

from plugrad_jax.precision import is_tracing

SCRIPT = """
import numpy as np, plugrad
from plugrad.testing import gradcheck

x = plugrad.tensor([1.0, 2.0], device="jax", dtype=plugrad.float64, requires_grad=True)
assert gradcheck(lambda t: t.exp() / t, x)
assert plugrad.tensor(np.ones(2), device="jax").dtype is plugrad.float64
assert plugrad.tensor([1.0], device="jax").dtype is plugrad.float32
z = plugrad.tensor([1 + 2j], device="jax", dtype=plugrad.complex128)
assert (z * z.conj()).real.item() == 5.0
assert plugrad.tensor([2**40], device="jax").sum().item() == 2**40
print("fine")
"""


def in_another_process(code: str, **environment: str) -> str:
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "XLA_FLAGS": "", **environment},
    )
    assert run.returncode == 0, run.stderr
    return run.stdout.strip()


def test_float64_where_it_is_on() -> None:
    assert in_another_process(SCRIPT, JAX_ENABLE_X64="1") == "fine"


def test_float64_where_the_configuration_has_it_on() -> None:
    setting = "import plugrad; plugrad.config.set({'backends.jax.x64': True})"
    assert in_another_process(setting + SCRIPT, JAX_ENABLE_X64="0") == "fine"


def test_what_there_is_while_they_are_off() -> None:
    path = Path(__file__).with_name("without_64_bits.py")
    arguments = ["-q", "-p", "no:cacheprovider", str(path)]
    code = f"import pytest, sys; sys.exit(pytest.main({arguments!r}))"
    assert "passed" in in_another_process(code, JAX_ENABLE_X64="0")


def test_a_trace_is_noticed() -> None:
    seen = []
    jax.jit(lambda x: (seen.append(is_tracing()), x)[1])(1.0)
    assert seen == [True]
    assert not is_tracing()


def test_a_wrong_option() -> None:
    code = """
import plugrad
plugrad.config.set({"backends.jax.x64": 7})
try:
    plugrad.ones(1, device="jax")
except plugrad.config.ConfigError as error:
    print("x64 must be true or false" in str(error))
"""
    assert in_another_process(code) == "True"
