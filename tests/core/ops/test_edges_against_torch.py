"""Calls at the edges, beside PyTorch's: dtypes, shapes, lists, gradients at kinks, refusals."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np
import pytest

import plugrad
from plugrad.testing import gradcheck
from tests.core.ops.oracle import dtype_name, is_tensor, to_numpy

INF, NAN = float("inf"), float("nan")
EDGES: Final = [NAN, -INF, INF, -4.0, -3.0, -1.0, -0.5, 0.0, 0.5, 1.0, 3.0, 4.0]


def outcome(library: Any, program: Callable[[Any], Any]) -> Any:
    """What a program returns, in values that compare; for an error its type and words."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return described(program(library))
        except Exception as error:
            words = str(error).partition("\n")[0].replace("torch.", "").replace("plugrad.", "")
            return type(error).__name__, words


def described(value: Any) -> Any:
    if isinstance(value, (list, tuple)) and not hasattr(value, "numel"):
        return [described(item) for item in value]
    if is_tensor(value):
        values = to_numpy(value).round(3) + 0
        shown = [f"{x:.3g}" for x in values.reshape(-1).tolist()]
        return dtype_name(value), value.requires_grad, values.shape, shown
    return value


def gradients(function: Callable[..., Any], *inputs: Any) -> Any:
    """What a function gives, and the gradients of its sum."""
    leaves = [x.requires_grad_() for x in inputs if x.is_floating_point()]
    result = function(*inputs)
    result.sum().backward()
    return result, [leaf.grad for leaf in leaves]


def pairs(lib: Any) -> tuple[Any, Any]:
    """Two tensors with each pair of some edges."""
    some = [NAN, INF, -1.0, 0.0, 1.0]
    left = lib.tensor([x for x in some for _ in some])
    return left, lib.tensor([y for _ in some for y in some])


def at_edges(name: str, *args: Any) -> Callable[[Any], Any]:
    def program(lib: Any) -> Any:
        path = lib.nn.functional if hasattr(lib.nn.functional, name) else lib
        return gradients(lambda x: getattr(path, name)(x, *args), lib.tensor(EDGES))

    return program


def of_pairs(name: str) -> Callable[[Any], Any]:
    return lambda lib: gradients(getattr(lib, name), *pairs(lib))


def typed(name: str, left: str, right: str) -> Callable[[Any], Any]:
    def program(lib: Any) -> Any:
        a = lib.tensor([1, 2], dtype=getattr(lib, left))
        return getattr(lib, name)(a, lib.tensor([2, 1], dtype=getattr(lib, right)))

    return program


def overlapping(name: str, *args: Any) -> Callable[[Any], Any]:
    def program(lib: Any) -> Any:
        x = lib.arange(4.0)
        getattr(x[1:], name)(x[:-1], *args)
        return x

    return program


def indexed(name: str, *behind: Any) -> Callable[[Any], Any]:
    def program(lib: Any) -> Any:
        x = lib.arange(5.0)
        return getattr(x, name)(0, lib.tensor([0, 1]), x[2:4], *behind)

    return program


def integers(name: str, *shapes: tuple[int, ...], **factors: Any) -> Callable[[Any], Any]:
    def program(lib: Any) -> Any:
        return getattr(lib, name)(*[lib.ones(s, dtype=lib.int64) for s in shapes], **factors)

    return program


def loss_at_edges(name: str, dtype: str) -> Callable[[Any], Any]:
    def program(lib: Any) -> Any:
        given = lib.tensor([INF, -INF, NAN, 1.0, 0.5, 3.0], dtype=getattr(lib, dtype))
        return gradients(getattr(lib.nn.functional, name), given, lib.zeros_like(given))

    return program


def divergence(lib: Any) -> Any:
    """Of targets that are 0, negative and infinite: the logarithm has no slope at 0."""
    given = lib.tensor([-1.0, -INF, 0.5, 2.0, -1.0, 1.0])
    target = lib.tensor([0.0, 0.0, 0.5, 1.0, -1.0, INF])
    return gradients(lambda a, b: lib.nn.functional.kl_div(a, b, reduction="none"), given, target)


def prelu_at_edges(slope: float) -> Callable[[Any], Any]:
    def program(lib: Any) -> Any:
        return gradients(lib.nn.functional.prelu, lib.tensor(EDGES), lib.tensor(slope))

    return program


def greatest_at(reduce: str) -> Callable[[Any], Any]:
    """Infinite elements, which are no others than what stands for nothing."""

    def program(lib: Any) -> Any:
        index = lib.tensor([0, 1, 1, 0, 4, 5, 2, 0])

        def reduced(x: Any, source: Any) -> Any:
            return x.scatter_reduce(0, index, source, reduce) * lib.arange(1.0, 7)

        source = lib.tensor([-INF, INF, INF, -INF, -INF, INF, 3.0, -INF])
        return gradients(reduced, lib.tensor([-INF, INF, 1.0, 2.0, -INF, INF]), source)

    return program


def cross_entropy_of(target: float) -> Callable[[Any], Any]:
    def program(lib: Any) -> Any:
        targets = lib.tensor([0.5, target])
        return lib.nn.functional.binary_cross_entropy(lib.tensor([0.5, 0.25]), targets)

    return program


def filled_with(number: complex) -> Callable[[Any], Any]:
    """What is stored of a complex number, where it can be."""

    def program(lib: Any) -> Any:
        def attempt(fill: Callable[[], Any]) -> Any:
            try:
                return described(fill())
            except RuntimeError as error:
                return str(error)

        def assigned(x: Any) -> Any:
            x[0] = number
            return x

        return [
            attempt(fill)
            for kind in (lib.bool, lib.int64, lib.float32)
            for x in [lib.zeros(2, dtype=kind)]
            for fill in (
                partial(lib.full, (2,), number, dtype=kind),
                partial(lib.scalar_tensor, number, dtype=kind),
                partial(x.clone().fill_, number),
                partial(x.new_full, (2,), number),
                partial(x.masked_fill, lib.tensor([True, False]), number),
                partial(x.index_fill, 0, lib.tensor([1]), number),
                partial(x.scatter, 0, lib.tensor([1]), number),
                partial(assigned, x.clone()),
            )
        ]

    return program


def number_softmax(name: str) -> Callable[[Any], Any]:
    def program(lib: Any) -> Any:
        numbers = [INF, -INF, NAN, 1.0]
        return [gradients(lambda x: getattr(lib, name)(x, 0), lib.tensor(n)) for n in numbers]

    return program


def least_pool(dtype: str) -> Callable[[Any], Any]:
    """Windows in which nothing exceeds the padding."""

    def program(lib: Any) -> Any:
        kind = getattr(lib, dtype)
        least = -INF if kind.is_floating_point else lib.iinfo(kind).min
        image = lib.full((1, 3, 4), least, dtype=kind)
        image[0, 2, 3] = 7
        pool = lib.nn.functional.max_pool2d
        return [
            pool(image, 2, 1, padding=1, return_indices=True),
            pool(image, 3, 2, padding=1, dilation=2, return_indices=True),
        ]

    return program


def bools_among_ints(lib: Any) -> Any:
    x = lib.ones(1, 2)
    return [
        lib.zeros([2, True]), lib.zeros(2, True), x.permute(1, False), x.reshape((2, True)),
        x.sum([0, True]), x.flip([0, True]), x.expand(3, True, -1), x.split([1, True], 1),
        lib.nn.functional.conv2d(lib.ones(1, 1, 3, 3), lib.ones(1, 1, 1, 1), padding=[0, True]),
    ]  # fmt: skip


def copysign_after_a_write(lib: Any) -> Any:
    x, sign = lib.tensor([1.0, -2.0]), lib.tensor([[-1.0, 3.0], [2.0, 1.0]])
    x.requires_grad_(), sign.requires_grad_()
    result = x.copysign(sign)
    with lib.no_grad():
        sign.mul_(2)
    result.sum().backward()
    return result, x.grad, sign.grad


PROGRAMS: Final[dict[str, Callable[[Any], Any]]] = {
    **{
        f"{name} at edges in {dtype}": loss_at_edges(name, dtype)
        for name in ("huber_loss", "smooth_l1_loss", "mse_loss", "l1_loss")
        for dtype in ("float16", "float32")
    },
    "kl_div at edges": divergence,
    "powers of negative integers": lambda L: [
        L.pow(*L.meshgrid(L.tensor([-128, -2, -1, 0, 1, 2], dtype=L.int8), e, indexing="ij"))
        for e in [L.tensor([-128, -127, -2, -1, 0, 1], dtype=L.int8)]
    ],
    **{f"prelu with {slope} at edges": prelu_at_edges(slope) for slope in (NAN, INF, 0.25)},
    **{f"{reduce} of infinities": greatest_at(reduce) for reduce in ("amax", "amin")},
    **{f"cross entropy of {t}": cross_entropy_of(t) for t in (1.0, 1.5, -0.1, NAN)},
    **{f"filled with {number}": filled_with(number) for number in (1j, 2 + 0j, 0j)},
    **{f"{name} of a number": number_softmax(name) for name in ("softmax", "log_softmax")},
    **{f"max_pool2d of the least {t}": least_pool(t) for t in ("float32", "int64", "uint8")},
    "bools among ints": bools_among_ints,
    "a bool before ints": lambda lib: lib.zeros([True, 2]),
    **{
        f"{name} at edges": at_edges(name, *args)
        for name, *args in (
            ("hardsigmoid",), ("hardswish",), ("hardtanh",), ("relu6",), ("relu",), ("sinc",),
            ("logit",), ("logit", 0.25), ("clamp", -1, 1), ("abs",), ("sign",), ("threshold", 1, 2),
            ("copysign", -2.0), ("float_power", 2), ("xlogy", 0.0), ("softplus",), ("elu",),
        )
    },
    **{
        f"{name} of pairs": of_pairs(name)
        for name in ("xlogy", "copysign", "logaddexp", "logaddexp2", "maximum", "fmin", "hypot")
    },
    **{
        f"{name} of {left} and {right}": typed(name, left, right)
        for name in ("xlogy", "logaddexp2", "copysign", "float_power", "ldexp", "hypot", "isclose")
        for left, right in (
            ("int64", "bfloat16"), ("bfloat16", "int16"), ("float16", "int8"), ("bool", "float16"),
            ("float16", "bfloat16"), ("bool", "bool"), ("uint8", "int64"),
        )
    },
    **{
        f"{name} of what it overlaps": overlapping(name)
        for name in ("add_", "mul_", "copy_", "atan2_", "xlogy_", "pow_", "clamp_", "eq_")
    },
    **{
        f"{name} of itself": indexed(name)
        for name in ("index_add_", "index_copy_", "scatter_", "scatter_add_")
    },
    "the index is written": lambda L: (lambda x: x.scatter_(0, x, 1))(L.arange(4)),
    "put_ of itself": lambda L: (lambda x: x.put_(L.tensor([0, 1]), x[:2]))(L.arange(4.0)),
    "x += x.T": lambda L: (lambda x: x.add_(x.t()))(L.ones(3, 3)),
    "x += x": lambda L: (lambda x: x.add_(x))(L.ones(3)),
    "halves": lambda L: (lambda x: x[2:].add_(x[:2]))(L.ones(4)),
    "source of another shape": lambda L: L.index_add(L.ones(()), 0, L.tensor([0]), L.ones(1)),
    "source without dims": lambda L: L.index_add(L.ones(3), 0, L.tensor([0]), L.ones(())),
    "source of fewer dims": lambda L: L.index_add(L.ones(3, 2), 1, L.tensor([0]), L.ones(3)),
    "copy of a number": lambda L: L.index_copy(L.ones(3), 0, L.tensor([0, 1]), L.ones(())),
    "addmv": integers("addmv", (2,), (2, 3), (3,), beta=0.5, alpha=2.5),
    "addbmm": integers("addbmm", (2, 2), (3, 2, 3), (3, 3, 2), beta=0.5),
    "baddbmm": integers("baddbmm", (2, 2), (3, 2, 3), (3, 3, 2), alpha=1.5),
    "addmv of two dtypes": lambda L: L.addmv(L.ones(2, dtype=L.float64), L.ones(2, 3), L.ones(3)),
    "bool sum_to_size": lambda L: L.ones(2, 3, dtype=L.bool).sum_to_size(3),
    "max and a number": lambda L: L.max(L.ones(2, 3), L.tensor(1)),
    "min of two ranks": lambda L: L.min(L.tensor([1, 5]), L.ones(2, 1) * 3.5),
    "max along dim": lambda L: L.max(L.ones(2, 3), 1)[0],
    "tensor_split": lambda L: L.tensor_split(L.arange(5), L.tensor([1, 3])),
    "tensor_split of floats": lambda L: L.tensor_split(L.arange(5), L.tensor([1.0])),
    "tensor_split of 2 dims": lambda L: L.tensor_split(L.arange(5), L.tensor([[1]])),
    "meshgrid of one": lambda L: L.meshgrid(L.arange(2), indexing="ij"),
    "meshgrid of none": lambda L: L.meshgrid(),
    "meshgrid of a list": lambda L: L.meshgrid([L.arange(2), L.arange(3)], indexing="xy"),
    "meshgrid of two dtypes": lambda L: L.meshgrid(L.arange(2), L.ones(2, 2)),
    "atleast_1d of several": lambda L: L.atleast_1d(L.tensor(1), L.tensor([2])),
    "atleast_2d of a list": lambda L: L.atleast_2d([L.tensor(1), L.tensor([2])]),
    "atleast_3d of none": lambda L: L.atleast_3d(),
    "take_along_dim": lambda L: L.take_along_dim(L.arange(4.0), L.tensor([-1, 5]), 0),
    "take_along_dim of none": lambda L: L.take_along_dim(L.tensor(3.0), L.tensor(0), 0),
    "scatter and add": lambda L: L.ones(3).scatter_(0, L.tensor([0, 0]), 2.0, reduce="add"),
    "scatter and multiply": lambda L: L.ones(2).scatter(
        0, L.tensor([0, 0]), L.tensor([2.0, 3.0]), reduce="multiply"
    ),
    "diff of nothing left": lambda L: L.diff(L.ones(4), n=6),
    "matrix_power of integers": lambda L: L.matrix_power(L.tensor([[1, 2], [3, 4]]), 3),
    "matrix_power 0": lambda L: L.matrix_power(L.ones(2, 2).requires_grad_(), 0),
    "real of a real leaf": lambda L: (lambda x: L.real(x) is x)(L.ones(2).requires_grad_()),
    "float_power_": lambda L: L.ones(2).float_power_(2),
    "polar of two dtypes": lambda L: L.polar(L.ones(2), L.ones(2, dtype=L.float64)),
    "isclose of bools": lambda L: L.isclose(L.tensor([True, False]), L.tensor([True, True])),
    "empty stride": lambda L: L.nn.functional.avg_pool2d(L.ones(1, 4, 4), 2, []),
    "three kernel sizes": lambda L: L.nn.functional.avg_pool2d(L.ones(1, 4, 4), [2, 2, 2]),
    "finer windows": lambda L: gradients(
        lambda x: L.nn.functional.adaptive_avg_pool2d(x, (7, 3))[..., ::2, :],
        L.arange(24.0).reshape(2, 3, 4),
    ),
    "batch_norm of 2 dims": lambda L: L.nn.functional.batch_norm(
        L.arange(6.0).reshape(2, 3), L.zeros(3), L.ones(3), training=True
    ),
}  # fmt: skip

NUMBERS: Final[dict[str, Callable[[Any], Any]]] = {
    "linspace": lambda L: L.linspace(0, 1e10, 5, dtype=L.int32),
    "linspace, one": lambda L: L.linspace(0, 1e10, 1, dtype=L.int32),
    "linspace of bytes": lambda L: L.linspace(-5, 200, 5, dtype=L.uint8),
    "linspace of floats": lambda L: L.linspace(0, 1e39, 3),
    "logspace": lambda L: L.logspace(0, 1e10, 4, dtype=L.int32),
    "arange": lambda L: L.arange(0, 1e20, 1e19, dtype=L.int64),
    **{
        f"{name}{args}": (
            lambda L, name=name, args=args: getattr(L.ones(2, dtype=L.int8), name)(*args)  # type: ignore[misc]
        )
        for name, *args in (
            ("clamp", -300, 300), ("clamp_min", -300), ("pow", 300), ("add", 300), ("mul", 300),
            ("eq", 300), ("clamp", 1.5, 2.5), ("fill_", 300), ("index_fill", 0),
        )
    },
    "where": lambda L: L.where(L.ones(2) == 1, L.ones(2, dtype=L.int8), 300),
    "alpha": lambda L: L.add(L.ones(2, dtype=L.int8), 1, alpha=300),
    "value": lambda L: L.addcmul(*[L.ones(2, dtype=L.int8)] * 3, value=300),
    "scatter": lambda L: L.ones(2, dtype=L.int8).scatter(0, L.tensor([0]), 300),
    "threshold": lambda L: L.threshold(L.ones(2, dtype=L.int8), 300, 1),
    "addmm": lambda L: L.addmm(*[L.ones(2, 2, dtype=L.int8)] * 3, alpha=300),
    **{
        f"{name} of half precision": (
            lambda L, name=name: getattr(L.special, name)(L.ones(2, dtype=L.float16) * 2, 1 << 40)  # type: ignore[misc]
        )
        for name in ("xlogy", "xlog1py")
    },
    **{
        f"round to {decimals} decimals": (
            lambda L, decimals=decimals: L.tensor(EDGES, dtype=L.float64).round(decimals=decimals)  # type: ignore[misc]
        )
        for decimals in (308, 309, -308, -309, 1 << 40)
    },
}  # fmt: skip
del NUMBERS["index_fill[0]"]


ARGUMENTS: Final[dict[str, Callable[[Any], Any]]] = {
    **{
        f"scatter_reduce of a number along {dim}": (
            lambda L, dim=dim: L.tensor(2.0).scatter_reduce(dim, L.tensor([0]), L.ones(1), "sum")  # type: ignore[misc]
        )
        for dim in (-2, -1, 0, 3)
    },
    **{
        f"scatter_reduce at {dtype}": (
            lambda L, dtype=dtype: L.ones(2).scatter_reduce(  # type: ignore[misc]
                0, L.tensor([1, 0, 1], dtype=getattr(L, dtype)), L.ones(3), "sum"
            )
        )
        for dtype in ("int32", "int16", "float32")
    },
    **{
        f"{name} into {dtype}": (
            lambda L, name=name, dtype=dtype: getattr(L, name)(  # type: ignore[misc]
                L.tensor([[0, 2], [3, 4]]), 1, out=L.empty(2, dtype=getattr(L, dtype))
            )
        )
        for name in ("all", "any")
        for dtype in ("bool", "uint8", "int8", "float32")
    },
    **{
        f"isclose of {a} and {b} in {dtype}": (
            lambda L, dtype=dtype, a=a, b=b: L.isclose(  # type: ignore[misc]
                *(L.tensor([x], dtype=getattr(L, dtype)) for x in (a, b)), rtol=0.0, atol=1.5
            )
        )
        for dtype, a, b in (
            ("uint8", 3, 4),
            ("uint8", 4, 3),
            ("int8", 100, -100),
            ("int64", 0, -(2**63)),
            ("int64", 7, 5),
        )
    },
    **{
        f"{name} of {dtype} and a number beyond it": (
            lambda L, name=name, dtype=dtype: [  # type: ignore[misc]
                getattr(L, name)(L.tensor([1, 2], dtype=getattr(L, dtype)), 2**40),
                L.xlogy(2**40, L.tensor([1, 2], dtype=getattr(L, dtype))),
            ]
        )
        for name in ("xlogy", "copysign", "div")
        for dtype in ("int16", "uint8", "float32")
    },
    **{
        f"matrix_norm {order} along {dim} of {shape}": (
            lambda L, order=order, dim=dim, shape=shape: [  # type: ignore[misc]
                L.linalg.matrix_norm(
                    L.arange(24.0).sub(7)[: math.prod(shape)].view(shape), order, dim, keep
                )
                for keep in (False, True)
            ]
        )
        for order in (1, -1, float("inf"), -float("inf"))
        for dim in ((0, 1), (2, 0), (-1, 1))
        for shape in ((2, 3, 4), (0, 3, 4), (2, 3, 0))
    },
    **{
        f"{name} of bytes into {dtype}": (
            lambda L, name=name, dtype=dtype: getattr(L, name)(  # type: ignore[misc]
                L.tensor([[0, 2], [3, 4]], dtype=L.uint8),
                1,
                out=L.empty(2, dtype=getattr(L, dtype)),
            )
        )
        for name in ("all", "any")
        for dtype in ("bool", "uint8", "int8")
    },
    "take_along_dim of int32 indices": (
        lambda L: L.take_along_dim(L.arange(6.0).view(2, 3), L.tensor([5, 0], dtype=L.int32))
    ),
    "adaptive_avg_pool2d without channels": (
        lambda L: L.nn.functional.adaptive_avg_pool2d(L.ones(2, 0, 3, 3), (2, 4))
    ),
    "adaptive_avg_pool2d without rows": (
        lambda L: L.nn.functional.adaptive_avg_pool2d(L.ones(2, 3, 0, 3), (2, 4))
    ),
    **{
        f"{name} of {dtype} times {alpha!r}": (
            lambda L, name=name, dtype=dtype, alpha=alpha: getattr(  # type: ignore[misc]
                L.tensor([1, 2], dtype=getattr(L, dtype)), name
            )(L.tensor([3, 4], dtype=getattr(L, dtype)), alpha=alpha)
        )
        for name in ("add", "sub", "add_", "sub_")
        for dtype in ("int64", "float32")
        for alpha in (True, 1, 1.0, 1j, 2)
    },
    "hardtanh of bytes above a fraction": (
        lambda L: L.nn.functional.hardtanh(L.tensor([0, 5], dtype=L.uint8), -0.5, 2.0)
    ),
    "baddbmm of bools without elements": (
        lambda L: L.baddbmm(*[L.zeros(2, 0, 0, dtype=L.bool)] * 3, beta=2, alpha=3)
    ),
    **{
        f"einsum {equation} of integers of sizes {a} and {b}": (
            lambda L, equation=equation, a=a, b=b: L.einsum(  # type: ignore[misc]
                equation, *(L.arange(24, dtype=L.int32)[: a * b].view(a, b) for a, b in (a, b))
            )
        )
        for equation in ("ij,ij->i", "ij,ij->", "ij,ij->j", "ij,jk->ik", "ij,kj->ik")
        for a, b in (((1, 3), (2, 1)), ((2, 1), (3, 3)), ((2, 3), (1, 1)), ((1, 1), (1, 1)))
    },
    "copysign after a write to the sign": copysign_after_a_write,
    # A tensor without dimensions is a number, also where several signatures are tried.
    "the probability of bernoulli": lambda L: L.ones(3).bernoulli(L.tensor(0.0)),
    "a probability that is complex": lambda L: L.ones(3).bernoulli(L.tensor(1 + 0j)),
    "a probability that is not real": lambda L: L.ones(3).bernoulli(L.tensor(1j)),
    "the mean of normal": lambda L: L.normal(L.tensor(1), 0.0, (3,)),
    "the slope of elu": lambda L: L.nn.functional.elu(-L.ones(2), L.tensor(1 + 0j)),
    "an array of an object for a number": lambda L: L.ones(2).nan_to_num(np.array(None)),
    "a NumPy number of bytes": lambda L: L.UntypedStorage(np.int64(2)).size(),
    "the input of one_hot": lambda L: L.nn.functional.one_hot(input=L.tensor([0, 1])),
    "a complex number that is real": lambda L: L.full((2,), L.tensor(2 + 0j), dtype=L.float32),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_arguments_are_taken_or_refused_as_in_pytorch(torch_oracle: Any, name: str) -> None:
    assert outcome(plugrad, ARGUMENTS[name]) == outcome(torch_oracle, ARGUMENTS[name])


@pytest.mark.parametrize("name", PROGRAMS)
def test_edges_are_those_of_pytorch(torch_oracle: Any, name: str) -> None:
    assert outcome(plugrad, PROGRAMS[name]) == outcome(torch_oracle, PROGRAMS[name])


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_that_do_not_fit_are_those_of_pytorch(torch_oracle: Any, name: str) -> None:
    assert outcome(plugrad, NUMBERS[name]) == outcome(torch_oracle, NUMBERS[name])


@pytest.mark.parametrize("mode", ["circular", "reflect", "replicate"])
@pytest.mark.parametrize(
    ("shape", "widths"),
    [
        ((1, 2, 4), (2, 3)), ((2, 4), (-1, 3)), ((1, 1, 3, 4), (1, 2, -1, 1)),
        ((1, 3, 4), (1, 2, 1, 1)), ((1, 1, 3, 4), (1, 2)), ((4,), (1, 2)), ((2, 3), (5, 0)),
        ((1, 1, 2, 3, 2), (1, 1, 0, 2, 1, -1)), ((2, 4), (-2, -1)),
    ],
)  # fmt: skip
def test_padding_is_that_of_pytorch(
    torch_oracle: Any, mode: str, shape: tuple[int, ...], widths: tuple[int, ...]
) -> None:
    def padded(lib: Any) -> Any:
        count = 1
        for size in shape:
            count *= size
        x = lib.arange(float(count)).reshape(shape)
        return gradients(lambda x: lib.nn.functional.pad(x, widths, mode=mode).square(), x)

    expected = outcome(torch_oracle, padded)
    actual = outcome(plugrad, padded)
    if isinstance(expected, tuple):
        assert isinstance(actual, tuple)
        assert actual[0] == expected[0]
    else:
        assert actual == expected


@pytest.mark.parametrize("wanted", [(True, True), (True, False), (False, True)])
@pytest.mark.parametrize("shapes", [((2, 3), (3,)), ((), (2, 3)), ((2, 1), (1, 3)), ((3,), ())])
def test_polar_has_the_gradient_of_finite_differences_where_it_broadcasts(
    shapes: Any, wanted: Any
) -> None:
    """Negative magnitudes as well, where PyTorch's gradient has the wrong sign."""
    plugrad.manual_seed(0)
    inputs = [plugrad.rand(s, dtype=plugrad.float64) * 4 - 2 for s in shapes]
    for x, required in zip(inputs, wanted, strict=True):
        x.requires_grad_(required)
    assert gradcheck(lambda a, b: plugrad.polar(a, b) * (1 + 2j), inputs)


@pytest.mark.parametrize("turned", [False, True])
def test_as_strided_scatter_has_a_gradient_where_its_source_stays(turned: bool) -> None:
    """Of elements that go to one place the last one stays; PyTorch gives each its gradient."""
    plugrad.manual_seed(0)
    x = plugrad.rand(3, 3, dtype=plugrad.float64).requires_grad_()
    source = plugrad.rand(2, 2, dtype=plugrad.float64).requires_grad_()

    def scattered(x: Any, source: Any) -> Any:
        return plugrad.as_strided_scatter(x.t() if turned else x, source, (2, 2), (1, 1), 1)

    assert gradcheck(scattered, (x, source))


def test_an_operand_of_a_composite_in_place_keeps_its_gradient(torch_oracle: Any) -> None:
    """The target is saved as it was, although it does not require grad itself."""

    def program(lib: Any) -> Any:
        exponent = lib.tensor([1.0, 2.0], requires_grad=True)
        target = lib.tensor([3.0, 4.0])
        target.ldexp_(exponent).sum().backward()
        return exponent.grad

    assert outcome(plugrad, program) == outcome(torch_oracle, program)


def test_what_cannot_be_allocated_is_refused() -> None:
    with pytest.raises(RuntimeError, match="can't allocate memory"):
        plugrad.adaptive_avg_pool2d(plugrad.ones(2, 2, 3), (10**12, 1))
    assert plugrad.diff(plugrad.ones(4), n=10**9).shape == (0,)


ABSURD: Final = (10**9 * 2**20, 2**62, 2**70, -(2**40), -(2**70))
# What makes much of little, for a number that is absurd wherever a size or a count may stand.
SIZED: Final[dict[str, Callable[[int], Any]]] = {
    "zeros": lambda n: plugrad.zeros(n),
    "empty": lambda n: plugrad.empty((2, n)),
    "full": lambda n: plugrad.full((n, n), 1.0),
    "eye": lambda n: plugrad.eye(n),
    "arange": lambda n: plugrad.arange(0, n, 1e-3),
    "linspace": lambda n: plugrad.linspace(0, 1, n),
    "tril_indices": lambda n: plugrad.tril_indices(n, n),
    "one_hot": lambda n: plugrad.nn.functional.one_hot(plugrad.tensor([0, 1]), n),
    "repeat": lambda n: plugrad.ones(3).repeat(n),
    "tile": lambda n: plugrad.ones(3).tile((n, n)),
    "repeat_interleave": lambda n: plugrad.ones(3).repeat_interleave(n),
    "contiguous": lambda n: plugrad.ones(2, 1).expand(2, n).contiguous(),
    "add": lambda n: plugrad.ones(1).expand(n) + 1,
    **{
        f"pad {mode}": lambda n, mode=mode: plugrad.nn.functional.pad(  # type: ignore[misc]
            plugrad.ones(1, 2, 3), (n, 0), mode=mode
        )
        for mode in ("constant", "reflect", "replicate", "circular")
    },
    "conv2d": lambda n: plugrad.conv2d(
        plugrad.ones(1, 1, 4, 4), plugrad.ones(1, 1, 2, 2), padding=n
    ),
    "conv_transpose2d": lambda n: plugrad.conv_transpose2d(
        plugrad.ones(1, 1, 4, 4), plugrad.ones(1, 1, 2, 2), stride=n
    ),
    "max_pool2d": lambda n: plugrad.max_pool2d(plugrad.ones(1, 1, 4, 4), n),
    "avg_pool2d": lambda n: plugrad.avg_pool2d(plugrad.ones(1, 1, 4, 4), n, padding=n // 2),
    "adaptive_avg_pool2d": lambda n: plugrad.adaptive_avg_pool2d(plugrad.ones(1, 2, 3), n),
    "tensor_split": lambda n: plugrad.ones(4).tensor_split(n),
    "chunk": lambda n: plugrad.ones(0, 4).chunk(n),
    "randperm": lambda n: plugrad.randperm(n),
    "multinomial": lambda n: plugrad.multinomial(plugrad.ones(4), n, replacement=True),
    "resize_": lambda n: plugrad.ones(4).resize_(n),
    "as_strided": lambda n: plugrad.ones(4).as_strided((2,), (n,)),
    "new_zeros": lambda n: plugrad.ones(4).new_zeros(n),
    "rand_like": lambda n: plugrad.rand_like(plugrad.ones(1).expand(n)),
    "Linear": lambda n: plugrad.nn.Linear(n, n),
    "Embedding": lambda n: plugrad.nn.Embedding(n, 2),
    "Conv2d": lambda n: plugrad.nn.Conv2d(1, 1, n),
}


@pytest.mark.parametrize("name", SIZED)
def test_absurd_sizes_are_refused_at_once(name: str) -> None:
    for size in ABSURD:
        with pytest.raises((RuntimeError, ValueError, TypeError)):
            SIZED[name](size)


LOSS_DTYPES: Final = ("float16", "bfloat16", "float32", "float64", "int64", "bool")


@pytest.mark.parametrize("dtype", LOSS_DTYPES)
@pytest.mark.parametrize(
    "name", ["huber_loss", "smooth_l1_loss", "binary_cross_entropy_with_logits"]
)
def test_dtypes_of_losses_are_those_of_pytorch(torch_oracle: Any, name: str, dtype: str) -> None:
    def dtypes(library: Any, other: str, more: str | None) -> list[str]:
        """Of the losses and of the gradient, as far as there are some."""
        found: list[str] = []
        x = library.ones(2).to(getattr(library, dtype))
        target = library.ones(2).to(getattr(library, other))
        options: dict[str, Any] = {"reduction": "none"}
        if more is not None:
            options["pos_weight"] = library.ones(2).to(getattr(library, more))
        try:
            if x.is_floating_point():
                x.requires_grad_()
            losses = getattr(library.nn.functional, name)(x, target, **options)
            found.append(dtype_name(losses))
            losses.sum().backward()
            found.append(dtype_name(x.grad))
        except RuntimeError:
            pass  # PyTorch's backward takes fewer dtypes
        return found

    weights = LOSS_DTYPES if name.startswith("binary") else ()
    for other in LOSS_DTYPES:
        for more in (None, *weights):
            expected, found = dtypes(torch_oracle, other, more), dtypes(plugrad, other, more)
            assert found[: len(expected) or None] == expected, (other, more)
