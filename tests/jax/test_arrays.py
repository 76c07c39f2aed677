"""JAX's arrays as tensors and back, DLPack both ways, and which device is which."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plugrad
import plugrad_jax
from plugrad.dispatch.backends.active import find_backend


def address(tensor: Any) -> int:
    return int(plugrad_jax.to_jax(tensor).unsafe_buffer_pointer())


def aligned(offset: int = 0) -> np.ndarray[Any, Any]:
    """Eight numbers that begin `offset` numbers behind a multiple of 64 bytes in memory."""
    room = np.empty(64, np.float32)
    start = (-room.ctypes.data % 64) // 4 + offset
    room[:] = 1
    return room[start : start + 8]


def test_devices_are_counted_as_jax_counts_them() -> None:
    for index, device in enumerate(jax.devices()):
        x = plugrad.ones(2, device=f"jax:{index}")
        assert plugrad_jax.to_jax(x).devices() == {device}
        assert plugrad_jax.device(device) == x.device
    assert plugrad_jax.device("cpu", 2) == plugrad.device("jax", 2)


def test_a_platform_or_device_that_is_not_there() -> None:
    with pytest.raises(RuntimeError, match="out of range: JAX has 4 devices of platform 'cpu'"):
        plugrad_jax.device("cpu", 4)
    with pytest.raises(RuntimeError, match="nowhere"):
        plugrad_jax.device("nowhere")


def test_an_array_becomes_a_tensor_on_its_device_without_a_copy() -> None:
    array = jax.device_put(np.arange(3, dtype=np.float32), jax.devices()[2])
    x = plugrad_jax.from_jax(array)
    assert str(x.device) == "jax:2"
    assert x.dtype is plugrad.float32
    assert plugrad_jax.to_jax(x) is array


def test_writing_to_the_tensor_leaves_the_array_as_it_was() -> None:
    array = jnp.zeros(3, np.float32)
    x = plugrad_jax.from_jax(array)
    x[1:] += 5
    assert x.tolist() == [0, 5, 5]
    assert array.tolist() == [0, 0, 0]


def test_what_cannot_be_converted() -> None:
    with pytest.raises(TypeError, match="no dtype int4"):
        plugrad_jax.from_jax(jnp.ones(2, jnp.int4))


def test_numpy_reads_a_tensor_through_dlpack_without_a_copy() -> None:
    x = plugrad.arange(4.0, device="jax")
    host = np.from_dlpack(x)
    assert host.ctypes.data == address(x)
    x += 1  # puts another array into the tensor
    assert host.tolist() == [0, 1, 2, 3]
    assert x.tolist() == [1, 2, 3, 4]


def test_memory_of_numpy_is_taken_over_where_xla_can_use_it() -> None:
    """XLA requires multiples of 64 bytes; other memory is copied."""
    host = aligned()
    shared = plugrad.from_dlpack(host, device="jax")
    assert address(shared) == host.ctypes.data
    shared += 1  # never written through
    assert host[0] == 1
    assert shared[0].item() == 2
    host = aligned(1)
    assert address(plugrad.from_dlpack(host, device="jax")) != host.ctypes.data


def test_the_other_ways_in_copy() -> None:
    host = aligned()
    made = [
        plugrad.tensor(host, device="jax"),
        plugrad.from_numpy(host).to("jax"),
        plugrad.from_dlpack(host, device="jax", copy=True),
    ]
    host[:] = 9
    assert [x.sum().item() for x in made] == [8.0, 8.0, 8.0]


def test_torch_shares_memory_both_ways(torch_oracle: Any) -> None:
    x = plugrad.arange(4.0, device="jax")
    theirs = torch_oracle.from_dlpack(x)
    assert theirs.data_ptr() == address(x)
    back = plugrad.from_dlpack(theirs, device="jax")
    assert address(back) == address(x)
    assert str(back.device) == "jax:0"


def test_what_comes_back_to_the_host_is_ones_own() -> None:
    x = plugrad.ones(3, device="jax")
    host = x.cpu()
    host += 1
    assert x.tolist() == [1, 1, 1]


def test_a_platform_that_jax_has_not_got_is_a_problem_of_the_backend() -> None:
    code = """
import plugrad
from plugrad_jax.backend import JaxBackend

backend = JaxBackend()
assert backend.device_count() == 0
assert "JAX_PLATFORMS" in backend.problem()
assert backend.describe()["JAX"]
try:
    plugrad.ones(2, device="jax")
except RuntimeError as error:
    print("JAX starts no platform" in str(error))
"""
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "JAX_PLATFORMS": "nowhere"},
    )
    assert run.stdout.strip() == "True", run.stderr


def test_the_backend_tells_its_devices() -> None:
    facts = find_backend("jax").backend.describe()
    assert facts["JAX"] == jax.__version__
    assert facts["jax:3"] == "cpu:3"
    assert facts["64-bit numbers"] == ("on" if jax.config.jax_enable_x64 else "off")
