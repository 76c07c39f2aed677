"""Arguments of operator handles: what they convert, and what they say. Oracle: PyTorch's handles,
whose messages these are with another name in them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plugrad


class Index:
    def __index__(self) -> int:
        return 1


class Broken:
    def __index__(self) -> int:
        raise KeyError("mine")


# An operator of both libraries, its arguments as a function of the library.
TAKEN: list[tuple[str, Any]] = [
    ("zeros", lambda lib: ([2],)),
    ("zeros", lambda lib: ([True],)),
    ("zeros", lambda lib: ([lib.tensor(2)],)),
    ("zeros", lambda lib: ([np.int64(2), Index()],)),
    ("cumsum", lambda lib: (lib.ones(2, 3), Index())),
    ("cumsum", lambda lib: (lib.ones(2, 3), True)),
    ("cumsum", lambda lib: (lib.ones(2, 3), lib.tensor(1))),
    ("sum.dim_IntList", lambda lib: (lib.ones(2, 3), 1)),
    ("sum.dim_IntList", lambda lib: (lib.ones(2, 3), [0], 1)),
    ("permute", lambda lib: (lib.ones(2, 3), [1, 0])),
    ("cat", lambda lib: ((lib.ones(2), lib.ones(1)),)),
    ("mul.Tensor", lambda lib: (lib.ones(2, dtype=lib.int64), 2.5)),
    ("sub.Tensor", lambda lib: (3, lib.ones(2))),
    ("mul", lambda lib: (lib.ones(2), 2)),
]
REFUSED: list[tuple[str, Any]] = [
    ("relu.default", lambda lib: (1,)),
    ("relu.default", lambda lib: (None,)),
    ("relu.default", lambda lib: ()),
    ("relu.default", lambda lib: (lib.ones(1), 2)),
    ("cumsum.default", lambda lib: (lib.ones(2), 1.5)),
    ("cumsum.default", lambda lib: (lib.ones(2), 2**70)),
    ("cumsum.default", lambda lib: (lib.ones(2), lib.ones(2))),
    ("mul.Tensor", lambda lib: (lib.ones(2), "a")),
    ("mul.Scalar", lambda lib: (lib.ones(2), lib.ones(2))),
    ("cat.default", lambda lib: (lib.ones(2),)),
    ("cat.default", lambda lib: ([lib.ones(2), 1],)),
    ("permute.default", lambda lib: (lib.ones(2), [1.5])),
]


def handle(ops: Any, path: str) -> Any:
    for part in path.split("."):
        ops = getattr(ops, part, None) or ops.default
    return ops


@pytest.mark.parametrize(("path", "arguments"), TAKEN)
def test_handles_convert_as_pytorch_does(path: str, arguments: Any, torch_oracle: Any) -> None:
    ours = handle(plugrad.ops.plugrad, path.removesuffix(".dim_IntList"))(*arguments(plugrad))
    theirs = handle(torch_oracle.ops.aten, path)(*arguments(torch_oracle))
    assert str(ours.dtype).replace("plugrad", "torch") == str(theirs.dtype)
    np.testing.assert_array_equal(ours.numpy(), theirs.numpy())


@pytest.mark.parametrize(("path", "arguments"), REFUSED)
def test_handles_refuse_in_pytorchs_words(path: str, arguments: Any, torch_oracle: Any) -> None:
    with pytest.raises(RuntimeError) as theirs:
        handle(torch_oracle.ops.aten, path)(*arguments(torch_oracle))
    with pytest.raises(RuntimeError) as ours:
        handle(plugrad.ops.plugrad, path)(*arguments(plugrad))
    wanted = str(theirs.value).partition("Declaration")[0].partition("\n")[0]
    found = str(ours.value).partition("Declaration")[0].partition("\n")[0]
    assert found == wanted.replace("aten::", "plugrad::")


def test_devices_come_as_strings() -> None:
    assert plugrad.ops.plugrad.zeros([2], device="cpu").device == plugrad.device("cpu")


def test_no_overload_that_fits_lists_them_all() -> None:
    with pytest.raises(RuntimeError, match="failed to match any schema") as caught:
        plugrad.ops.plugrad.mul(plugrad.ones(2), "a")
    assert "mul.Tensor(" in str(caught.value)
    assert "mul.Scalar(" in str(caught.value)


def test_what_an_argument_raises_is_its_own() -> None:
    with pytest.raises(KeyError, match="mine"):
        plugrad.ops.plugrad.zeros([Broken()])
    with pytest.raises(KeyError, match="mine"):
        plugrad.zeros([Broken()])
    with pytest.raises(KeyError, match="mine"):
        plugrad.ones(2).cumsum(Broken())


@pytest.mark.parametrize(
    "call",
    [
        lambda ops, x: ops.linear_backward(x, x, plugrad.ones(5, 3), [True, True, True]),
        lambda ops, x: ops._log_softmax_backward_data(plugrad.tensor(1.0), x, 1, x.dtype),
        lambda ops, x: ops.leaky_relu_backward(x, x, 1j, False),
        lambda ops, x: ops._matmul_hn(x, plugrad.ones(4, 5)),
    ],
)
def test_operators_of_formulas_refuse_what_does_not_fit(call: Any) -> None:
    with pytest.raises(RuntimeError, match=r"do not fit|must match|cannot be|not implemented"):
        call(plugrad.ops.plugrad, plugrad.ones(2, 3))
