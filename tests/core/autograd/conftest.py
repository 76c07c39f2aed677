"""Fixtures of the tests that are run on plugrad and on PyTorch alike."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from types import ModuleType

import pytest

from plugrad.testing import NaiveEngine
from tests.core.frozen import immutable_backends, immutable_device


@pytest.fixture(params=["plugrad", "torch"])
def lib(request: pytest.FixtureRequest) -> Iterator[ModuleType]:
    """plugrad; and PyTorch where it is installed, which keeps what the test expects true."""
    if request.param != "torch":
        yield importlib.import_module(request.param)
        return
    oracle = request.getfixturevalue("torch_oracle")
    # PyTorch gives some warnings once in a process, and another test may have had them.
    before = oracle.is_warn_always_enabled()
    oracle.set_warn_always(True)
    yield oracle
    oracle.set_warn_always(before)


# Modules with tests that hold for any engine; they run on the naive one, too. Tests of the real
# engine's internals are marked `real_engine`.
ANY_ENGINE = {
    "test_backward",
    "test_backward_arguments",
    "test_engine",
    "test_function",
    "test_function_gradients",
    "test_function_inplace",
    "test_grad_dtype",
    "test_gradient_edge",
    "test_graph_nodes",
    "test_hooks",
    "test_hooks_order",
    "test_hooks_results",
    "test_inplace_on_views",
    "test_multi_grad_hook",
    "test_saved_tensors_hooks",
    "test_saved_variable",
}


# Modules about views and writes; they run on backends with immutable arrays, too, except for two
# marks. `strided` tests are about memory and its layout, or about the host's. In `one_thread` tests
# an undefined gradient has no device, so hooks get it on the caller's thread at an undefined time,
# as in PyTorch.
ANY_ARRAYS = {
    "test_allow_mutation",
    "test_backward",
    "test_complex_views",
    "test_composite_inplace",
    "test_forward_mode",
    "test_function_inplace",
    "test_function_jvp",
    "test_hooks",
    "test_hooks_after_accumulation",
    "test_inference_mode",
    "test_inplace_hooks",
    "test_inplace_on_views",
    "test_inplace_view_operators",
    "test_inplace_views_aftermath",
    "test_pure_views",
    "test_random_programs",
    "test_resizing",
    "test_saved_variable",
    "test_set_data",
    "test_unsafe_split",
    "test_versions",
    "test_view_replay",
    "test_views_creation_meta",
    "test_views_of_leaves",
    "test_views_random",
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    module = metafunc.module.__name__.rpartition(".")[2]
    apart = any(map(metafunc.definition.get_closest_marker, ("strided", "one_thread")))
    if module in ANY_ARRAYS and not apart:
        metafunc.parametrize("arrays", ["mutable", *immutable_backends()], indirect=True)
    if metafunc.module.__name__.rpartition(".")[2] not in ANY_ENGINE:
        return
    if metafunc.definition.get_closest_marker("real_engine") is None:
        metafunc.parametrize("execution_engine", ["real", "naive"], indirect=True)


@pytest.fixture(autouse=True)
def arrays(request: pytest.FixtureRequest) -> Iterator[None]:
    """Runs a test on the CPU, or with a backend of immutable arrays as the default one."""
    name = getattr(request, "param", "mutable")
    if name == "mutable":
        yield
        return
    plugrad = importlib.import_module("plugrad")
    with immutable_device(name):
        plugrad.set_default_device(name)
        yield
        plugrad.set_default_device(None)


@pytest.fixture(autouse=True)
def execution_engine(request: pytest.FixtureRequest) -> Iterator[None]:
    """Runs a test with the engine that it is parametrized with."""
    plugrad = importlib.import_module("plugrad")
    default = plugrad.Tensor._execution_engine
    if getattr(request, "param", "real") == "naive":
        plugrad.Tensor._execution_engine = NaiveEngine()
    yield
    plugrad.Tensor._execution_engine = default
