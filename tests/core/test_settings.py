"""Settings of the process. Oracle: what PyTorch 2.13 does, written down."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import pytest

import plugrad
from plugrad.dispatch.settings import Settings, settings
from plugrad.plugins.kernel_errors import alert_not_deterministic


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    yield
    vars(settings).update(vars(Settings()))


def asked() -> tuple[bool, bool, int]:
    return (
        plugrad.are_deterministic_algorithms_enabled(),
        plugrad.is_deterministic_algorithms_warn_only_enabled(),
        plugrad.get_deterministic_debug_mode(),
    )


def test_deterministic_algorithms_are_asked_for_by_flags_or_by_a_mode() -> None:
    assert asked() == (False, False, 0)
    plugrad.use_deterministic_algorithms(True)
    assert asked() == (True, False, 2)
    plugrad.use_deterministic_algorithms(False, warn_only=True)
    assert asked() == (False, True, 0)
    modes: dict[int | str, int] = {"warn": 1, 2: 2, True: 1, "default": 0}
    for mode, found in modes.items():
        plugrad.set_deterministic_debug_mode(mode)
        assert asked() == (found > 0, found == 1, found)


def test_a_kernel_that_is_not_deterministic_raises_or_warns() -> None:
    alert_not_deterministic("put_")
    plugrad.use_deterministic_algorithms(True)
    with pytest.raises(RuntimeError, match="put_ does not have a deterministic implementation"):
        alert_not_deterministic("put_")
    plugrad.use_deterministic_algorithms(True, warn_only=True)
    with pytest.warns(UserWarning, match=r"use_deterministic_algorithms\(True, warn_only=True\)"):
        alert_not_deterministic("put_")


def test_what_raises_in_pytorch_but_is_the_same_in_every_run_here_works() -> None:
    plugrad.use_deterministic_algorithms(True)
    x = plugrad.zeros(3).put_(plugrad.tensor([1, 1]), plugrad.tensor([1.0, 2.0]))
    assert x.tolist() == [0, 2, 0]


Error = type[Exception]
WRONG: list[tuple[str, Any, Error, str]] = [
    ("use_deterministic_algorithms", 1, TypeError, "'mode' must be bool, not int"),
    ("set_deterministic_debug_mode", 1.0, TypeError, "debug_mode must be str or int, but got"),
    ("set_deterministic_debug_mode", 3, RuntimeError, "expected 0, 1, or 2, but got 3"),
    ("set_deterministic_debug_mode", "x", RuntimeError, "`default`, `warn`, `error`, but got x"),
    ("set_float32_matmul_precision", 3, RuntimeError, "expects a str, but got int"),
    ("set_flush_denormal", 1, RuntimeError, "flush_denormal expects a bool, but got int"),
    ("set_warn_always", 1, RuntimeError, "setWarnOnlyOnce expects a bool, but got int"),
]


@pytest.mark.parametrize(("name", "value", "error", "message"), WRONG)
def test_other_values_are_refused(name: str, value: Any, error: Error, message: str) -> None:
    with pytest.raises(error) as caught:
        getattr(plugrad, name)(value)
    assert message in str(caught.value)


def test_precision_of_products_is_remembered_if_it_is_one() -> None:
    assert plugrad.get_float32_matmul_precision() == "highest"
    plugrad.set_float32_matmul_precision("medium")
    with pytest.warns(UserWarning, match="low is not one of 'highest', 'high', or 'medium'"):
        plugrad.set_float32_matmul_precision("low")
    assert plugrad.get_float32_matmul_precision() == "medium"


def test_denormal_numbers_are_kept() -> None:
    assert plugrad.set_flush_denormal(True) is False
    assert (plugrad.tensor([1e-40]) * 0.5 > 0).all()


def test_warnings_can_be_repeated() -> None:
    @plugrad.library.custom_op("settings::double", mutates_args=())
    def double(x: plugrad.Tensor) -> plugrad.Tensor:
        return x * 2

    def warned() -> int:
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            plugrad.vmap(double)(plugrad.ones(2, 3))
        return len(found)

    assert [warned(), warned()] == [1, 0]
    plugrad.set_warn_always(True)
    assert plugrad.is_warn_always_enabled()
    assert [warned(), warned()] == [1, 1]


def test_older_names_of_autocast() -> None:
    with pytest.warns(DeprecationWarning, match=r"use plugrad.set_autocast_enabled\('cpu', "):
        plugrad.set_autocast_cpu_enabled(True)
    with pytest.warns(DeprecationWarning, match=r"set_autocast_dtype\('cpu', dtype\)"):
        plugrad.set_autocast_cpu_dtype(plugrad.float16)
    try:
        assert plugrad.is_autocast_enabled("cpu")
        with pytest.warns(DeprecationWarning, match="is_autocast_enabled"):
            assert plugrad.is_autocast_cpu_enabled()
        with pytest.warns(DeprecationWarning, match="get_autocast_dtype"):
            assert plugrad.get_autocast_cpu_dtype() is plugrad.float16
    finally:
        plugrad.set_autocast_enabled("cpu", False)
        plugrad.set_autocast_dtype("cpu", plugrad.bfloat16)
    assert plugrad.GradScaler is plugrad.amp.GradScaler


def test_names_for_annotations_and_of_the_build() -> None:
    assert isinstance(1.5, plugrad.types.Number)
    assert isinstance(plugrad.device("cpu"), plugrad.types.Device)
    assert isinstance(plugrad.ones(2).untyped_storage(), plugrad.types.Storage)
    assert plugrad.version.__version__ == plugrad.__version__
    assert plugrad.version.cuda is None


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (0, "set_num_threads expects a positive integer"),
        (-3, "set_num_threads expects a positive integer"),
        (True, "set_num_threads expects an int, but got bool"),
        (1.5, "set_num_threads expects an int, but got float"),
        ("2", "set_num_threads expects an int, but got str"),
    ],
)
def test_threads_are_counted_from_one(wrong: Any, message: str) -> None:
    before = plugrad.get_num_threads()
    with pytest.raises(RuntimeError, match=f"^{message}$"):
        plugrad.set_num_threads(wrong)
    assert plugrad.get_num_threads() == before


def test_blas_obeys_the_number_of_threads_that_is_set() -> None:
    threadpoolctl = pytest.importorskip("threadpoolctl")

    def of_blas() -> set[int]:
        pools = threadpoolctl.threadpool_info()
        return {pool["num_threads"] for pool in pools if pool["user_api"] == "blas"}

    before = plugrad.get_num_threads()
    try:
        plugrad.set_num_threads(1)
        plugrad.linalg.lu(plugrad.rand(64, 64))  # it loads SciPy's BLAS
        assert plugrad.get_num_threads() == 1
        assert of_blas() == {1}
        plugrad.set_num_threads(2)
        assert of_blas() == {2}
    finally:
        plugrad.set_num_threads(before)
