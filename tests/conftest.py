"""What every test may use, and which core the run is about."""

from __future__ import annotations

import gc
import importlib
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# A machine that is busy with other tests draws examples slowly; no test is wrong for that.
settings.register_profile("busy", suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")

ROOT = Path(__file__).resolve().parent.parent
# Read when JAX is imported, by whichever test comes first: four devices to spread graphs over,
# 64-bit numbers for finite differences, and programs that are compiled sooner rather than better.
JAX_SETTINGS = {
    "JAX_ENABLE_X64": "1",
    "XLA_FLAGS": "--xla_force_host_platform_device_count=4 --xla_backend_optimization_level=0 "
    "--xla_llvm_disable_expensive_passes=true --xla_cpu_use_fusion_emitters=false "
    "--xla_cpu_parallel_codegen_split_count=1",
    # XLA's threads for the host: a program that all devices compute together needs one for each of
    # them, and 32 programs may be under way. With fewer threads they wait for each other for ever.
    "NPROC": "128",
    # Otherwise a program prints the lines through which each of its parts was requested.
    "JAX_TRACEBACK_IN_LOCATIONS_LIMIT": "0",
}
for _name, _value in JAX_SETTINGS.items():
    os.environ.setdefault(_name, _value)


# Where nothing depends on how the core was built, one run is enough. While two go on side by side
# (`make test` without ARGS, or with PLUGRAD_TEST_SHARED=1), each of these is left to that one.
ONE_CORE = {
    "tests/cuda/fused": "interpreted",
    "tests/cuda/test_kernels_against_cpu.py": "compiled",
    "tests/core/ops/decompositions/test_needs.py": "compiled",
    # numba compiles once for each place where plugrad-cpu is.
    "tests/core/ops/layers/test_compiled_layers.py": "compiled",
    "tests/core/ops/layers/test_compiled_convolution.py": "compiled",
    "tests/core/ops/layers/test_recurrent.py": "compiled",
    "tests/core/ops/numbers/test_compiled_random.py": "compiled",
    "tests/core/ops/rules/test_math_bits.py": "compiled",
    "tests/jax/test_kernels_trace.py": "compiled",
    # `make torture` runs schedules and random programs on the compiled core.
    "tests/core/autograd/explorer": "interpreted",
    "tests/core/autograd/random/test_random_programs.py": "interpreted",
    "tests/core/array_api": "compiled",
    "tests/core/cli": "compiled",
    "tests/core/ops/against_torch/test_against_torch.py": "compiled",
    # A process for each test, to import plugrad afresh.
    "tests/core/overrides/test_tensor_likes.py": "compiled",
    "tests/core/plugins/test_fork_at_first_use.py": "compiled",
    "tests/cuda/runtime": "compiled",
    "tests/core/testing/conformance": "compiled",
    "tests/core/test_types.py": "compiled",
    "tests/op_db": "compiled",
    "tests/module_db": "compiled",
    "tests/optim_db": "compiled",
    # Node.js and a browser, which are independent of the core.
    "tests/viewer/browser": "compiled",
    "tests/viewer/test_page_units.py": "compiled",
    "tests/jax/test_precision.py": "compiled",
    "tests/jax/test_programs.py": "compiled",
    # Processes and files, and Python code above the operators.
    "tests/nn/data": "compiled",
    "tests/nn/serialization": "compiled",
    "tests/nn/modules/test_flex_attention.py": "compiled",
    "tests/core/testing/cases/test_registry.py": "compiled",
    # Kernels in C, which see arrays only.
    "tests/native": "compiled",
    "tests/onednn": "compiled",
    "tests/nn/test_demo.py": "compiled",
    # Tables of Python code, which no build changes.
    "tests/nn/modules/test_wrong_inputs.py": "compiled",
    "tests/nn/modules/test_sequence_layer_options.py": "compiled",
    "tests/nn/test_interop.py": "compiled",
    "tests/nn/test_signatures.py": "compiled",
    "tests/distributions/test_pairs_against_torch.py": "compiled",
    # Python code over operators; what users have is the compiled core.
    "tests/distributed": "compiled",
    "tests/jax/sharded": "compiled",
    "tests/releases": "compiled",
    "tests/nn/test_examples.py": "compiled",
    "tests/docs": "compiled",
    # Decompositions, on backends with almost no kernels.
    "tests/core/backends/test_namespace_operators.py": "interpreted",
    "tests/core/ops/decompositions/test_bare_backends.py": "interpreted",
    "tests/core/ops/decompositions/test_bare_edges.py": "interpreted",
    "tests/examples": "interpreted",
    # Captures and batching rules are interpreted in either case.
    "tests/core/transforms/test_capture_operators.py": "interpreted",
    "tests/onnx/test_layers.py": "interpreted",
    "tests/onnx/test_operators.py": "interpreted",
    "tests/core/transforms/test_capture_programs.py": "interpreted",
    "tests/core/ops/rules/test_batching.py": "compiled",
    "tests/core/ops/rules/test_batching_random.py": "compiled",
    "tests/core/ops/rules/test_batching_shapes.py": "compiled",
    "tests/core/transforms/func/test_vmap_operators.py": "compiled",
    "tests/jax/test_batching.py": "compiled",
    "tests/special": "compiled",
    "tests/as_torch": "compiled",
}
# Tables with a row for each sample of each operator: a row runs once, on the one core or the other.
# There are several for an operator, and what the build is about is the same in all.
TABLES = ("tests/core/ops", "tests/core/backends/test_workers.py")
ROWS_INTERPRETED = 1 / 3


def core_kind() -> str:
    """Whether the core that this interpreter imports is compiled or interpreted."""
    origin = importlib.import_module("plugrad.tensor.base").__file__
    assert origin is not None
    return "interpreted" if origin.endswith(".py") else "compiled"


def torch_version() -> str | None:
    try:
        return str(importlib.import_module("torch").__version__)
    except ImportError:
        return None


def pytest_configure(config: pytest.Config) -> None:
    wanted = os.environ.get("PLUGRAD_TEST_CORE")
    if wanted and wanted != core_kind():
        raise pytest.UsageError(f"this run wants the {wanted} core, the {core_kind()} one is here")


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out what the run beside this one does, and the tests of a backend that
    `make test BACKENDS=...` does not name."""
    if os.environ.get("PLUGRAD_TEST_SHARED"):
        # With its parent folders: pytest does not check folders that the command line names.
        place = collection_path.relative_to(ROOT)
        inside = (place.as_posix(), *(folder.as_posix() for folder in place.parents))
        if any(ONE_CORE.get(name, core_kind()) != core_kind() for name in inside):
            return True
    named = os.environ.get("BACKENDS", "").split()
    folder = collection_path.name
    if named and folder in ("jax", "cuda") and collection_path.parent.name == "tests":
        return None if folder in named else True
    return None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the rows of tables that the run beside this one does."""
    if not os.environ.get("PLUGRAD_TEST_SHARED"):
        return
    left_out = [item for item in items if _is_row(item) and not _runs_here(item.nodeid)]
    if left_out:
        gone = set(left_out)
        items[:] = [item for item in items if item not in gone]
        config.hook.pytest_deselected(items=left_out)


def _is_row(item: pytest.Item) -> bool:
    place = item.path.relative_to(ROOT)
    inside = {place.as_posix(), *(folder.as_posix() for folder in place.parents)}
    return (
        hasattr(item, "callspec") and not inside.isdisjoint(TABLES) and inside.isdisjoint(ONE_CORE)
    )


def _runs_here(name: str) -> bool:
    interpreted = zlib.crc32(name.encode()) < ROWS_INTERPRETED * 2**32
    return interpreted == (core_kind() == "interpreted")


def pytest_collection_finish() -> None:
    """Leave what is here before the first test out of every later collection of garbage.

    That is PyTorch, JAX and forty thousand tests, and many a test collects garbage to see what
    goes: with them, a second each time.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="module", autouse=True)
def garbage_of_a_module() -> Iterator[None]:
    """Leave out what this module's tests leave behind, too: programs that JAX has compiled, say.

    Collections would look through gigabytes by the end, which took a fifth of the time.
    """
    yield
    gc.collect()
    gc.freeze()


def pytest_report_header() -> list[str]:
    plugrad = importlib.import_module("plugrad")
    torch = torch_version()
    return [
        f"plugrad {plugrad.__version__}: {core_kind()} core",
        f"oracle: PyTorch {torch}" if torch else "oracle: PyTorch is not installed",
    ]


@pytest.fixture(scope="session")
def torch_oracle() -> ModuleType:
    """PyTorch, to compare with; tests that ask for it are skipped where it is missing."""
    torch: ModuleType = pytest.importorskip(
        "torch", reason="PyTorch is not installed: make test ORACLE=torch"
    )
    return torch


@pytest.fixture
def second_backend() -> Iterator[str]:
    """The name of a backend beside "cpu": NumPy again, but its tensors share no memory with it."""
    import numpy as np

    from plugrad.dispatch.backends.active import activate_backend, deactivate_backend
    from plugrad_cpu.backend import CpuBackend

    class SecondBackend(CpuBackend):
        def __init__(self) -> None:
            super(CpuBackend, self).__init__("second", array_type=np.ndarray)

        def from_host(self, array: np.ndarray[Any, Any], index: int) -> np.ndarray[Any, Any]:
            return array.copy()

        def to_host(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
            return array.copy()

    activate_backend(SecondBackend())
    yield "second"
    deactivate_backend("second")
