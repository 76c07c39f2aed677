"""Elementwise operators at kinks, infinities and nan, and of mixed dtypes, as in PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest

import plugrad
from plugrad.testing import gradcheck, gradgradcheck
from tests.core.ops.against_torch.edges import EDGES, INF, NAN, check, gradients, outcome


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


def prelu_at_edges(slope: float) -> Callable[[Any], Any]:
    def program(lib: Any) -> Any:
        return gradients(lib.nn.functional.prelu, lib.tensor(EDGES), lib.tensor(slope))

    return program


def number_softmax(name: str) -> Callable[[Any], Any]:
    def program(lib: Any) -> Any:
        numbers = [INF, -INF, NAN, 1.0]
        return [gradients(lambda x: getattr(lib, name)(x, 0), lib.tensor(n)) for n in numbers]

    return program


def one_exponent(shape: tuple[int, ...]) -> Callable[[Any], Any]:
    """A half, for which NumPy takes the root where PyTorch computes a power."""

    def program(lib: Any) -> Any:
        bases = lib.tensor([-0.0, 0.0, -INF, INF, NAN, -1.0, 4.0])
        found = [
            lib.pow(x, lib.full(shape, half, dtype=x.dtype))
            for half in (0.5, -0.5)
            for x in (bases, bases.double(), bases[:1], bases[2], bases[:0])
        ]
        return [(y, 1 / y) for y in found]  # 1 / 0 has the sign

    return program


def complex_reciprocals(dtype: str) -> Callable[[Any], Any]:
    def program(lib: Any) -> Any:
        numbers = [complex(a, b) for a in (0.0, -0.0, 1.0, INF, NAN) for b in (0.0, -2.0, -INF)]
        x = lib.tensor(numbers, dtype=getattr(lib, dtype))
        # The signs of zeros count: 1 / 0 has them.
        return [(y, 1 / y.real, 1 / y.imag) for y in (x.reciprocal(), x**-1)]

    return program


def copysign_after_a_write(lib: Any) -> Any:
    x, sign = lib.tensor([1.0, -2.0]), lib.tensor([[-1.0, 3.0], [2.0, 1.0]])
    x.requires_grad_(), sign.requires_grad_()
    result = x.copysign(sign)
    with lib.no_grad():
        sign.mul_(2)
    result.sum().backward()
    return result, x.grad, sign.grad


def to_complex_edges(base: Any, kind: str) -> Callable[[Any], Any]:
    """The number 1 gives 1 even there, and a slope of 0."""

    def program(lib: Any) -> Any:
        edges = [complex(INF, 1), complex(0, -INF), complex(NAN, NAN), 2 - 1j]
        z = lib.tensor(edges, dtype=getattr(lib, kind)).requires_grad_()
        power = lib.pow(base, z)
        slopes = [] if base == 2 else lib.autograd.grad(power.sum(), z, lib.tensor(1 + 1j))
        return lib.view_as_real(power), slopes, lib.float_power(base, z[0])

    return program


PROGRAMS: Final[dict[str, Callable[[Any], Any]]] = {
    **{f"reciprocals in {kind}": complex_reciprocals(kind) for kind in ("complex64", "complex128")},
    "complex silu": lambda L: L.nn.functional.silu(L.tensor([1 + 2j, -0.5j, 0j])),
    "silu of integers": lambda L: L.nn.functional.silu(L.tensor([1, 2])),
    "powers of negative integers": lambda L: [
        L.pow(*L.meshgrid(L.tensor([-128, -2, -1, 0, 1, 2], dtype=L.int8), e, indexing="ij"))
        for e in [L.tensor([-128, -127, -2, -1, 0, 1], dtype=L.int8)]
    ],
    **{
        f"{base} to complex edges in {kind}": to_complex_edges(base, kind)
        for base in (1, 1.0, 1 + 0j, True, 2)
        for kind in ("complex64", "complex128")
    },
    "1 + 0j to real edges": lambda L: L.pow(1 + 0j, L.tensor([NAN, INF, 2.0])),
    **{f"powers by shape {s}": one_exponent(s) for s in ((), (1,), (1, 1), (2, 3, 1))},
    **{f"prelu with {slope} at edges": prelu_at_edges(slope) for slope in (NAN, INF, 0.25)},
    **{f"{name} of a number": number_softmax(name) for name in ("softmax", "log_softmax")},
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
    "real of a real leaf": lambda L: (lambda x: L.real(x) is x)(L.ones(2).requires_grad_()),
    "float_power_": lambda L: L.ones(2).float_power_(2),
    "polar of two dtypes": lambda L: L.polar(L.ones(2), L.ones(2, dtype=L.float64)),
    "isclose of bools": lambda L: L.isclose(L.tensor([True, False]), L.tensor([True, True])),
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
    "copysign after a write to the sign": copysign_after_a_write,
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_elements_at_edges_are_those_of_pytorch(torch_oracle: Any, name: str) -> None:
    check(torch_oracle, PROGRAMS[name])


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


def test_an_operand_of_a_composite_in_place_keeps_its_gradient(torch_oracle: Any) -> None:
    """The target is saved as it was, although it does not require grad itself."""

    def program(lib: Any) -> Any:
        exponent = lib.tensor([1.0, 2.0], requires_grad=True)
        target = lib.tensor([3.0, 4.0])
        target.ldexp_(exponent).sum().backward()
        return exponent.grad

    assert outcome(plugrad, program) == outcome(torch_oracle, program)


def test_complex_silu_has_the_gradient_of_finite_differences() -> None:
    """PyTorch's has none."""
    x = plugrad.tensor([1 + 2j, -0.5j, 0.3 + 0.1j], dtype=plugrad.complex128, requires_grad=True)
    assert gradcheck(plugrad.silu, (x,), check_forward_ad=True)
    assert gradgradcheck(plugrad.silu, (x,), check_fwd_over_rev=True)
