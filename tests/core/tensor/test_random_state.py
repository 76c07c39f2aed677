"""The state of the random generators can be read, put back, and kept over a block."""

from __future__ import annotations

import importlib
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad.plugins import Backend
from tests.core.backends.conftest import activated


@pytest.fixture(params=["plugrad", "torch"])
def lib(request: pytest.FixtureRequest) -> Any:
    """plugrad; and PyTorch where it is installed."""
    if request.param == "torch":
        return request.getfixturevalue("torch_oracle")
    return __import__("plugrad")


def test_the_state_is_a_tensor_of_bytes(lib: Any) -> None:
    state = lib.get_rng_state()
    first = lib.rand(3)
    assert state.dtype is lib.uint8
    lib.set_rng_state(state)
    assert lib.equal(lib.rand(3), first)


def test_fork_rng_leaves_the_generator_as_it_was(lib: Any) -> None:
    with lib.random.fork_rng():
        inside = lib.rand(3)
    assert lib.equal(lib.rand(3), inside)


def draw_and_fail(lib: Any) -> None:
    with lib.random.fork_rng(devices=[]):
        lib.rand(3)
        raise KeyError


def test_fork_rng_puts_the_state_back_after_an_error(lib: Any) -> None:
    before = lib.get_rng_state()
    with pytest.raises(KeyError):
        draw_and_fail(lib)
    assert lib.equal(lib.get_rng_state(), before)


def test_fork_rng_that_is_not_enabled_does_nothing(lib: Any) -> None:
    before = lib.get_rng_state()
    with lib.random.fork_rng(enabled=False):
        lib.rand(3)
    assert not lib.equal(lib.get_rng_state(), before)


def test_the_default_generator_is_the_one_that_manual_seed_seeds(lib: Any) -> None:
    lib.manual_seed(7)
    assert lib.default_generator.initial_seed() == 7


def test_backends_that_draw_no_numbers_share_the_cpus_generator() -> None:
    with activated(Backend("silent", array_type=np.ndarray)) as name:
        cpus = plugrad.manual_seed(3)
        with plugrad.device(name):
            assert plugrad.manual_seed(3) is cpus
            state = plugrad.get_rng_state()
            with plugrad.random.fork_rng():
                drawn = plugrad.rand(3)
            assert (plugrad.get_rng_state().cpu() == state.cpu()).all()
        assert drawn.tolist() == plugrad.rand(3).tolist()


def test_a_generator_tells_its_device(second_backend: str) -> None:
    assert str(plugrad.Generator().device) == "cpu"
    assert str(plugrad.Generator(device=second_backend).device) == second_backend


def test_a_generator_of_another_device_is_refused(second_backend: str) -> None:
    for call in (
        lambda: plugrad.randperm(4, generator=plugrad.Generator(), device=second_backend),
        lambda: plugrad.ones(3, device=second_backend).uniform_(generator=plugrad.Generator()),
    ):
        with pytest.raises(
            RuntimeError,
            match=f"Expected a '{second_backend}' device type for generator but found 'cpu'",
        ):
            call()
    drawn = plugrad.rand(2, generator=plugrad.Generator(second_backend), device=second_backend)
    assert str(drawn.device) == second_backend


def test_generator_is_a_class_that_every_backend_has_instances_of(lib: Any) -> None:
    made = lib.Generator(device="cpu")
    assert isinstance(lib.Generator, type)
    assert isinstance(made, lib.Generator)
    assert not isinstance(lib.random, lib.Generator)
    assert made.device == lib.device("cpu")
    assert isinstance(lib.default_generator, lib.Generator)


def test_a_cloned_generator_goes_on_by_itself(lib: Any) -> None:
    first = lib.Generator().manual_seed(3)
    lib.rand(5, generator=first)
    second = first.clone_state()
    drawn = lib.rand(3, generator=first)
    assert lib.equal(lib.rand(3, generator=second), drawn)


def test_random_and_cuda_are_modules_to_import() -> None:
    random = importlib.import_module("plugrad.random")
    assert random is plugrad.random
    assert random.manual_seed is plugrad.manual_seed
    assert importlib.import_module("plugrad.cuda") is plugrad.cuda


def test_cuda_without_a_plugin_is_a_module_to_import() -> None:
    program = (
        "import plugrad; plugrad.plugins.get_manager().unload('cuda');"
        "import plugrad.cuda as c; assert not c.is_available() and plugrad.cuda is c"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
