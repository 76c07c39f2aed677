"""Arguments that the kernels do not serve: they return NotImplemented and touch nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

pytest.importorskip("plugrad_native.compiled")

FLOAT32 = np.dtype(np.float32)
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
X = np.arange(12, dtype=np.float32).reshape(3, 4)
P, Q, R, S = X + 1, X + 2, X + 3, X + 4
ROW = np.ones(4, np.float32)
STATS = np.ones((3, 1), np.float32)
TARGET = np.array([0, 3, 1])
ONE = np.asarray(np.float32(1))
IMAGES = np.arange(36, dtype=np.float32).reshape(1, 2, 3, 6)
POOLED = np.ones((1, 2, 1, 3), np.float32)
PLANES = np.ones((2, 1, 12, 12), np.float32)
TAPS = np.ones((1, 1, 3, 3), np.float32)
# Stride, padding, dilation, and whether it is transposed.
SIDE_BY_SIDE = ((1, 1), (1, 1), (1, 1), False)
# Kernel, stride, padding, dilation, and how many there are.
WINDOWS = ((2, 2), (2, 2), (0, 0), (1, 1), (1, 3))
# Two steps of two sequences, one unit.
STATE = np.ones((2, 1), np.float32)
SIZES = ([2, 2], False)
KEPT = np.ones((24, 1), np.float32)
RUNNING = (np.zeros(2, np.float32), np.ones(2, np.float32))

# A call of each kernel that is served.
CALLS: dict[str, tuple[Any, ...]] = {
    "softmax": (X, 1, False),
    "log_softmax": (X, 1, False),
    "softmax_backward": (X, X, 1, FLOAT32),
    "log_softmax_backward": (X, X, 1, FLOAT32),
    "layer_norm": (X, (4,), ROW, ROW, 1e-5),
    "layer_norm_backward": (X, X, (4,), STATS, STATS, ROW, ROW, (True, True, True)),
    "rms_norm": (X, (4,), ROW, 1e-5),
    "rms_norm_backward": (X, X, (4,), STATS, ROW, (True, True)),
    "group_norm": (X, ROW, ROW, 3, 4, 1, 1, 1e-5),
    "group_norm_backward": (X, X, STATS, STATS, ROW, 3, 4, 1, 1, (True, True, True)),
    "max_dim": (X, 1, False),
    "argmax": (X, 1, False),
    "nll_loss": (X, TARGET, ROW, "mean", -100),
    "nll_loss_backward": (ONE, X, TARGET, ROW, "mean", -100, ONE),
    "mse_loss": (X, X, "mean"),
    "mse_loss_backward": (ONE, X, X, "mean"),
    "sum": (X, (1,), False, FLOAT32),
    "mean": (X, (0, 1), False, FLOAT32),
    "cumsum": (X, 1, FLOAT32),
    "relu": (X,),
    "tanh_backward": (X, X),
    "sigmoid_backward": (X, X),
    "exp": (X,),
    "log": (X,),
    "clamp": (X, 0.5, 2),
    "index_select": (X, 0, TARGET[2:]),
    "embedding": (X, TARGET[2:]),
    "gather": (X, 0, np.array([[0, 2, 1, 1]])),
    "scatter": (X, 0, np.array([[0, 2, 1, 1]]), ROW[None]),
    "sigmoid": (X,),
    "tanh": (X,),
    "erf": (X,),
    "silu": (X,),
    "silu_backward": (X, X),
    "gelu": (X, "none"),
    "gelu_backward": (X, X, "tanh"),
    "threshold_backward": (X, X, 0.5),
    "cat": ([X, X], 0),
    "stack": ([X, X], 0),
    **dict.fromkeys(("neg", "abs", "sqrt", "reciprocal", "rsqrt"), (X + 1,)),
    **dict.fromkeys(("add", "sub", "mul", "div", "maximum", "minimum"), (X, ROW)),
    **dict.fromkeys(("eq", "ne", "lt", "le", "gt", "ge"), (X, P)),
    "pow": (X, 2),
    "mm": (X, X.T),
    "bmm": (X[None], X.T[None]),
    "matmul_nh": (X, X),
    "matmul_hn": (X, X),
    "addmm": (ROW, X, np.eye(4, dtype=np.float32), 0.5, 2),
    "linear": (X, X, ROW[:3]),
    "linear_backward": (X, X[:, :3], X, (True, True, True)),
    "attention": (X, X, X, None, True, 0.5),
    "attention_backward": (
        *(X, X, X, X, None, X, ROW[:3], False, 0.5),
        (True, True, True, False),
    ),
    "lstm_layer": (np.eye(4, dtype=np.float32), STATE, STATE, KEPT[:4], *SIZES),
    "lstm_layer_backward": (
        *(KEPT[:4], STATE, STATE, STATE, STATE, KEPT[:4], KEPT[:4], KEPT, *SIZES),
        (True,) * 4,
    ),
    "gru_layer": (X.reshape(4, 3), STATE, KEPT[:3], ROW[:3], *SIZES),
    "gru_layer_backward": (
        *(KEPT[:4], STATE, STATE, KEPT[:3], KEPT[:4], KEPT[:16], *SIZES),
        (True,) * 4,
    ),
    "view": (X, (2, 6)),
    "permute": (X, (1, 0)),
    "transpose": (X, 0, 1),
    "t": (X,),
    "expand": (ROW, (2, 4)),
    "select": (X, 1, 2),
    "slice": (X, 1, 1, 4, 2),
    "unsqueeze": (X, 1),
    "split": (X, (1, 3), 1),
    "unbind": (X, 1),
    # These write to the first array.
    **dict.fromkeys(("add_", "sub_", "mul_", "div_"), (S, X)),
    # This writes to the running statistics.
    "batch_norm": (IMAGES, *(ROW[:2] for _ in range(2)), *RUNNING, True, 0.1, 1e-5),
    "batch_norm_backward": (
        *(IMAGES, IMAGES, ROW[:2], None, None, ROW[:2], ROW[:2], True, 1e-5),
        (True, True, True),
    ),
    "convolution": (PLANES, TAPS, None, *SIDE_BY_SIDE, (0, 0), 1),
    "convolution_backward": (PLANES, PLANES, TAPS, *SIDE_BY_SIDE, 1, (True, True, True)),
    "cast": (X, BFLOAT16),
    "max_pool": (IMAGES, *WINDOWS),
    "max_pool1d": (X, 2, 2, 0, 1, 2),
    "max_pool_backward": (POOLED, IMAGES.shape, np.zeros(POOLED.shape, np.int64), *WINDOWS),
    "avg_pool": (IMAGES, *WINDOWS, True, None),
    "avg_pool_backward": (POOLED, IMAGES.shape, *WINDOWS, True, None),
    # These write to the first list, and to the third and those after it.
    "update_sgd": ([P], [X], [Q], 0.1, 0.9, 0.0, 0.0, False, False),
    "update_adam": (
        *([P], [X], [Q], [R], [], [0.1], (1e-8,)),
        *(0.9, 0.999, 0.0, 0.0, False),
    ),
}


def unaligned() -> Any:
    memory = np.zeros(12 * 4 + 1, np.uint8)
    return memory[1:].view(np.float32).reshape(3, 4)


class Subclass(np.ndarray[Any, Any]):
    pass


# What takes an argument's place; none of it is served anywhere but where it was.
ODD: list[Any] = [
    *(
        None,
        True,
        7,
        -3,
        10**30,
        -(10**400),
        0.5,
        "odd",
        (),
        (0, 0),
        (7,),
        ("a",),
        [],
        [X, 3],
        [None],
    ),
    *([X, X.astype(np.float64)], [X, X[:, :2]], {}, object()),
    X.T.copy().T,
    X[:, ::2],
    X[::-1],
    X.astype(">f4"),
    X.astype(np.float16),
    X.astype(np.int32),
    X.astype(np.complex64),
    np.zeros((0, 4), np.float32),
    np.zeros((3, 0), np.float32),
    np.zeros((2, 3, 4), np.float32),
    np.zeros((1,) * 64, np.float32),
    np.array([None, X], object),
    X.view(Subclass),
    np.dtype(np.float64),
    np.array([0, 4, 1]),
    np.array([0, -1, 1]),
    unaligned(),
]


def test_each_call_is_served(kernels: Any) -> None:
    names = {name for name in vars(kernels) if not name.startswith("_")}
    assert names == {*CALLS, "use_thread_count", "make_chain", "run_chain"}
    for name, args in CALLS.items():
        assert getattr(kernels, name)(*args) is not NotImplemented


@pytest.mark.parametrize("name", CALLS)
def test_odd_arguments_are_declined_or_served(kernels: Any, name: str) -> None:
    function: Callable[..., Any] = getattr(kernels, name)
    args = CALLS[name]
    for position in range(len(args)):
        for odd in ODD:
            changed = [*args[:position], odd, *args[position + 1 :]]
            found = function(*changed)
            assert found is NotImplemented or isinstance(found, np.ndarray | tuple | None)
    before = X.copy()
    for odd in (one for one in ODD if isinstance(one, np.ndarray)):
        found = function(*[odd if isinstance(arg, np.ndarray) else arg for arg in args])
        assert found is NotImplemented or isinstance(found, np.ndarray | tuple | None)
    np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize("name", CALLS)
def test_another_number_of_arguments_is_declined(kernels: Any, name: str) -> None:
    function = getattr(kernels, name)
    assert function() is NotImplemented
    assert function(*CALLS[name][:-1]) is NotImplemented
    assert function(*CALLS[name], 1) is NotImplemented


def test_a_target_that_is_no_class_is_declined(kernels: Any) -> None:
    for target in (np.array([0, 4, 1]), np.array([0, -1, 1])):
        assert kernels.nll_loss(X, target, None, "mean", -100) is NotImplemented
        gradient = kernels.nll_loss_backward(ONE, X, target, None, "mean", -100, ONE)
        assert gradient is NotImplemented


def test_sums_of_many_short_rows_are_declined(kernels: Any) -> None:
    for rows, length, served in ((1000, 100, False), (1000, 300, True), (5000, 16, True)):
        x = np.ones((rows, length), np.float32)
        found = kernels.sum(x, (1,), False, FLOAT32)
        assert (found is not NotImplemented) == served
        assert kernels.sum(x, (0, 1), False, FLOAT32) == rows * length


@pytest.mark.parametrize("name", ["softmax_backward", "silu_backward", "layer_norm_backward"])
def test_gradients_that_are_repeated_are_written_out(kernels: Any, name: str) -> None:
    function, rest = getattr(kernels, name), CALLS[name][1:]
    for grad in (np.broadcast_to(np.float32(3), (3, 4)), np.broadcast_to(STATS, (3, 4))):
        found, expected = function(grad, *rest), function(grad.copy(), *rest)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)
    assert function(np.broadcast_to(ROW, (3, 4)), *rest) is not NotImplemented
    assert function(X.T.copy().T, *rest) is NotImplemented


def test_threads_do_not_disturb_each_other(kernels: Any) -> None:
    arrays = [np.random.default_rng(k).standard_normal((400, 100)) for k in range(4)]
    expected = [kernels.softmax(array, 1, False) for array in arrays]
    wrong: list[int] = []

    def work(number: int) -> None:
        found = [kernels.softmax(arrays[number], 1, False) for _ in range(50)]
        if not all(np.array_equal(one, expected[number]) for one in found):
            wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(len(arrays))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
