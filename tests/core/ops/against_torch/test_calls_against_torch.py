"""Calls with sizes, numbers, dtypes and `out=` that are seldom given, beside PyTorch's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pytest

import plugrad
from tests.core.ops.against_torch.edges import gradients, outcome

HUGE: Final = 1 << 40


def logit_beyond(eps: float) -> Callable[[Any], Any]:
    values = [0.1, 0.4, 0.6, 0.9, -1.0, 2.0, float("nan")]
    return lambda L: gradients(lambda x: L.logit(x, eps), L.tensor(values, dtype=L.float64))


def sized(size: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """How each of many calls takes a size that is no int."""

    def program(lib: Any) -> Any:
        calls: list[Callable[[Any], Any]] = [
            lambda n: lib.zeros(n),
            lambda n: lib.zeros(2, n),
            lambda n: lib.zeros([n, 2]),
            lambda n: lib.full((2, n), 1.0),
            lambda n: lib.ones(2).new_zeros(n, 2),
            lambda n: lib.ones(4).view(2, n),
            lambda n: lib.ones(2).repeat(2, n),
            lambda n: lib.ones(3, 3, 3).sum(n),
            lambda n: lib.ones(3, 3, 3).sum([n]),
            lambda n: lib.ones(4).tensor_split(n),
            lambda n: lib.ones(4).hsplit(n),
            lambda n: lib.linalg.norm(lib.ones(3, 3, 3), 1, n),
        ]
        found = []
        for call in calls:
            made = outcome(lib, lambda lib, call=call: call(size(lib)))  # type: ignore[misc]
            found.append(made[0] if isinstance(made, tuple) and len(made) == 2 else made)
        return found

    return program


CALLS: Final[dict[str, Callable[[Any], Any]]] = {
    **{f"logit with eps {eps}": logit_beyond(eps) for eps in (0.3, 0.5, 0.7, 1.0, 1.5, -1.0)},
    **{
        f"{name} of {row} by {col} at {offset}": (
            lambda L, name=name, at=(row, col, offset): getattr(L, name)(*at)  # type: ignore[misc]
        )
        for name in ("tril_indices", "triu_indices")
        for row, col, offset in (
            (3, 4, 0),
            (3, 4, 2),
            (4, 2, -1),
            (3, 3, -9),
            (3, 3, 9),
            (0, HUGE, 0),
            (HUGE, 0, 0),
            (4, HUGE, HUGE - 3 if name == "triu_indices" else -1),
            (HUGE, 4, 1 if name == "triu_indices" else 2 - HUGE),
        )
    },
    **{
        f"tensordot of {a} and {b}": (
            lambda L, a=a, b=b: L.tensordot(L.ones(2, a), L.ones(b, 3), 1)  # type: ignore[misc]
        )
        for a, b in ((0, 1), (1, 0), (0, 0), (1, 2), (2, 1), (0, 2))
    },
    **{
        f"{name} of {given} into {dtype}": (
            lambda L, name=name, given=given, dtype=dtype: outcome(  # type: ignore[misc]
                L,
                lambda L: getattr(L, name)(
                    L.tensor([[1, -1], [2, 3]], dtype=getattr(L, given)),
                    1,
                    out=L.empty(2, dtype=getattr(L, dtype)),
                ),
            )[1:]
        )
        for name, given, dtype in (
            ("nansum", "int64", "bool"),
            ("nansum", "int16", "int32"),
            ("nansum", "bool", "int64"),
            ("nansum", "int64", "float32"),
        )
    },
    **{
        f"searchsorted of {number} in {dtype}": (
            lambda L, number=number, dtype=dtype: [  # type: ignore[misc]
                L.searchsorted(L.tensor([1, 2, 3], dtype=getattr(L, dtype)), number, right=right)
                for right in (False, True)
            ]
        )
        for dtype in ("float16", "float32", "int64")
        for number in (2.5, 1e30, -1e30, float("inf"), -float("inf"), float("nan"))
    },
    **{
        f"{name} weighted by {dtype}": (
            lambda L, name=name, dtype=dtype: getattr(L.nn.functional, name)(  # type: ignore[misc]
                L.full((3,), 0.5), L.ones(3), weight=L.ones(3, dtype=getattr(L, dtype))
            )
        )
        for name in ("binary_cross_entropy", "binary_cross_entropy_with_logits")
        for dtype in ("complex64", "float64", "float16", "int64", "bool")
    },
    **{
        f"the sign of {number} for {dtype}": (
            lambda L, number=number, dtype=dtype: L.copysign(  # type: ignore[misc]
                L.tensor([1, 0], dtype=getattr(L, dtype)), number
            )
        )
        for number in (1e300, -1e300, -(1 << 40), -0.0)
        for dtype in ("float16", "float32", "int64", "bool")
    },
    **{
        f"{name} weighted, {reduction}, weights of {size}": (
            lambda L, name=name, reduction=reduction, size=size: gradients(  # type: ignore[misc]
                lambda x, w: getattr(L.nn.functional, name)(
                    x, L.zeros(3), None, None, reduction, w
                ),
                L.tensor([1.0, -2.0, 4.0]),
                L.tensor([1.0, 3.0, 0.5])[:size].clone(),
            )
        )
        for name in ("mse_loss", "l1_loss")
        for reduction, size in (("mean", 3), ("sum", 3), ("none", 3), ("mean", 1))
    },
    "modules of NumPy's integers": lambda L: [
        L.nn.AvgPool1d(np.uint8(2))(L.ones(1, 4)).shape[1],
        L.nn.LayerNorm(np.uint8(3)).normalized_shape == (3,),
        tuple(L.nn.functional.conv1d(L.ones(1, 9), L.ones(1, 1, 3), None, np.int64(2)).shape),
    ],
    "class probabilities that are complex": lambda L: L.nn.functional.cross_entropy(
        L.ones(2, 3), L.ones((2, 3), dtype=L.complex64)
    ),
    **{
        f"cross along {dim}": (
            lambda L, dim=dim: L.linalg.cross(L.ones(2, 3), L.ones(2, 3), dim=dim)  # type: ignore[misc]
        )
        for dim in (5, -3, -(1 << 63), -1)
    },
    **{
        f"matrix_norm {order} along {dim}": (
            lambda L, order=order, dim=dim: L.linalg.matrix_norm(  # type: ignore[misc]
                L.ones(3, 3), order, dim
            )
        )
        for order in ("fro", 1)
        for dim in ((0, 5), (0, -2), (-3, 1))
    },
    **{
        f"{name} of complex numbers": (
            lambda L, name=name, args=args: outcome(  # type: ignore[misc]
                L,
                lambda L: getattr(L.ops.plugrad if L is plugrad else L.ops.aten, name)(
                    *(L.ones(3) if arg is None else arg for arg in args)
                ),
            )[0]
        )
        for name, args in (
            ("elu", (None, 1j)),
            ("elu_backward", (None, 1j, 1, 1, True, None)),
            ("softplus", (None, 1j, 1)),
            ("softplus_backward", (None, None, 1j, 1)),
            ("hardtanh_backward", (None, None, 1j, 1)),
            ("leaky_relu_backward", (None, None, 1j, True)),
        )
    },
    **{
        f"{shape} repeated {count}": (
            lambda L, shape=shape, count=count: L.ones(shape).repeat(*count)  # type: ignore[misc]
        )
        for shape in ((2, 0), (0, 1), (2, 1))
        for count in ((1, -1), (-1, 1), (0, 2))
    },
    "normal numbers of meta": lambda L: (
        tuple(L.ops.plugrad.normal(*[L.zeros(2, device="meta")] * 2).shape)
        if L is plugrad
        else (2,)
    ),
    "sizes of one element": sized(lambda L: L.tensor([2])),
    "sizes without dimensions": sized(lambda L: L.tensor(2)),
    "sizes that are fractions": sized(lambda L: L.tensor([2.0])),
    "sizes of several elements": sized(lambda L: L.tensor([2, 1])),
    "a Jacobian of the class of tensors": lambda L: callable(L.func.jacrev(L.Tensor, [0.5])),
    "a function of nothing, linearized": lambda L: L.func.linearize(lambda: ())[0],
    "a constant, linearized": lambda L: L.func.linearize(lambda: L.ones(2))[0],
}


@pytest.mark.parametrize("name", CALLS)
def test_calls_are_taken_or_refused_as_in_pytorch(torch_oracle: Any, name: str) -> None:
    assert outcome(plugrad, CALLS[name]) == outcome(torch_oracle, CALLS[name])


GRADIENTS: Final[dict[str, tuple[Any, ...]]] = {
    "gelu_backward": (),
    "silu_backward": (),
    "tanh_backward": (),
    "sigmoid_backward": (),
    "softplus_backward": (1, 20),
    "leaky_relu_backward": (0.1, False),
    "hardtanh_backward": (-1, 1),
    "threshold_backward": (0,),
    "elu_backward": (1, 1, 1, False),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_by_handle_are_in_the_dtype_of_both_operands(
    torch_oracle: Any, name: str
) -> None:
    """PyTorch's kernels of `gelu` for other dtypes than these differ by machine."""

    def called(lib: Any) -> Any:
        operator = getattr(lib.ops.plugrad if lib is plugrad else lib.ops.aten, name)
        found = []
        for dtype in ("int32", "uint8", "float16", "float32"):
            x = lib.tensor([1, 2, 3], dtype=getattr(lib, dtype))
            grad = lib.ones(3)
            args = (x, *GRADIENTS[name]) if name != "elu_backward" else (*GRADIENTS[name], x)
            found.append(operator(grad, *args))
        return found

    assert outcome(plugrad, called) == outcome(torch_oracle, called)
