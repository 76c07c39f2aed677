"""group_norm and rms_norm: kernels beside decompositions, derivatives of every kind, layouts, and
what is not a number. Oracles: finite differences, the decompositions, PyTorch."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pytest

import plugrad
from plugrad._generated.settings import GroupNorm, LayerNorm
from plugrad.autograd import gradcheck, gradgradcheck
from plugrad.ops.composite import nn as decompositions
from plugrad.testing import assert_close
from tests.core.ops.harness import needs_torch, torch

F: Final = plugrad.nn.functional
FLOATS: Final = ("float16", "bfloat16", "float32", "float64")


def draw(*shape: int, seed: int = 0) -> Any:
    values = np.random.default_rng(seed).standard_normal(shape)
    return plugrad.from_numpy(values).requires_grad_()


X: Final = draw(2, 4, 3)
CASES: Final[dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]] = {
    "group_norm": (lambda x: F.group_norm(x, 2), (X,)),
    "group_norm, weight": (lambda x, w: F.group_norm(x, 4, w), (X, draw(4))),
    "group_norm, bias": (lambda x, b: F.group_norm(x, 1, None, b), (draw(2, 4, 2, 2), draw(4))),
    "group_norm, both": (lambda x, w, b: F.group_norm(x, 2, w, b), (X, draw(4), draw(4, seed=1))),
    "group_norm, rows": (lambda x, w, b: F.group_norm(x, 2, w, b), (draw(3, 4), draw(4), draw(4))),
    "group_norm, turned": (
        lambda x, w: F.group_norm(x.permute(0, 3, 1, 2), 2, w, eps=0.1),
        (draw(2, 2, 3, 4), draw(4)),
    ),
    "statistics of groups": (
        lambda x: plugrad.native_group_norm(x, None, None, 2, 4, 3, 2, 0.1)[1:],
        (X,),
    ),
    "rms_norm": (lambda x: F.rms_norm(x, (4, 3), None, 0.1), (X,)),
    "rms_norm, weight": (lambda x, w: F.rms_norm(x, (3,), w), (X, draw(3))),
    "rms_norm, one row": (lambda x, w: F.rms_norm(x, (2, 4, 3), w, 0.1), (X, draw(2, 4, 3))),
    "root of rms_norm": (lambda x: plugrad._fused_rms_norm(x, (3,), None, 0.1)[1], (X,)),
}


@pytest.mark.parametrize("name", CASES)
def test_derivatives_in_both_modes(name: str) -> None:
    function, inputs = CASES[name]
    batched = {"check_batched_grad": True, "check_batched_forward_grad": True}
    assert gradcheck(function, inputs, check_forward_ad=True, **batched)
    assert gradgradcheck(function, inputs, check_fwd_over_rev=True, check_rev_over_rev=True)


@pytest.mark.parametrize("name", CASES)
def test_a_third_derivative(name: str) -> None:
    function, inputs = CASES[name]

    def gradient(*given: Any) -> Any:
        outputs = function(*given)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        total = sum((out * out * out).sum() for out in outputs)
        return plugrad.autograd.grad(total, given, create_graph=True)

    assert gradgradcheck(gradient, inputs, atol=1e-4)


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("native_layer_norm", lambda x: plugrad.native_layer_norm(x, (3,), None, None, 0.1)),
        ("_fused_rms_norm", lambda x: plugrad._fused_rms_norm(x, (3,), None, 0.1)),
        (
            "native_group_norm",
            lambda x: plugrad.native_group_norm(x, None, None, 2, 4, 3, 2, 0.1),
        ),
    ],
)
def test_tangents_of_statistics(name: str, function: Callable[..., Any]) -> None:
    x, tangent, step = X.detach(), draw(2, 4, 3, seed=3).detach(), 1e-6
    _, found = plugrad.func.jvp(function, (x,), (tangent,))
    above, below = function(x + step * tangent), function(x - step * tangent)
    for one, high, low in zip(found, above, below, strict=True):
        assert_close(one, (high - low) / (2 * step), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", [name for name in CASES if "turned" not in name])
def test_vmap_over_any_of_the_arguments(name: str) -> None:
    function, inputs = CASES[name]
    several = [plugrad.stack([one.detach(), 2 * one.detach() - 1, -one.detach()]) for one in inputs]

    def derivatives(*given: Any) -> Any:
        outputs = function(*given)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        return sum((out * (out + 1)).sum() for out in outputs)

    places = tuple(range(len(inputs)))
    gradients = plugrad.func.grad(derivatives, argnums=places)
    for mapped in itertools.product((True, False), repeat=len(inputs)):
        if not any(mapped):
            continue
        dims = tuple(0 if is_mapped else None for is_mapped in mapped)
        given = [a if is_mapped else a[0] for a, is_mapped in zip(several, mapped, strict=True)]
        for call in (function, gradients):
            found = flat(plugrad.vmap(call, in_dims=dims)(*given))
            each = [
                flat(call(*(a[i] if m else a for a, m in zip(given, mapped, strict=True))))
                for i in range(3)
            ]
            for place, one in enumerate(found):
                assert_close(one, plugrad.stack([parts[place] for parts in each]))


def flat(found: Any) -> list[Any]:
    return list(found) if isinstance(found, tuple) else [found]


@pytest.mark.parametrize("with_parameters", [True, False])
@pytest.mark.parametrize(("shape", "groups"), [((2, 4, 3), 2), ((3, 6), 3), ((2, 4, 5, 7), 1)])
def test_decompositions_of_group_norm_agree_with_the_kernels(
    shape: tuple[int, ...], groups: int, with_parameters: bool
) -> None:
    x, grad = draw(*shape).detach(), draw(*shape, seed=1).detach()
    size = x.numel() // (shape[0] * shape[1])
    parameters = (draw(shape[1]).detach(), draw(shape[1], seed=2).detach())
    weight, bias = parameters if with_parameters else (None, None)
    sizes = (shape[0], shape[1], size, groups)
    by_kernel = plugrad.native_group_norm(x, weight, bias, *sizes, 1e-5)
    settings = GroupNorm(weight, bias, *sizes)
    for ours, theirs in zip(
        by_kernel, decompositions.native_group_norm(x, settings, 1e-5), strict=True
    ):
        assert_close(ours, theirs)
    _, mean, rstd = by_kernel
    for mask in itertools.product((True, False), repeat=3):
        ours = plugrad.native_group_norm_backward(grad, x, mean, rstd, weight, *sizes, mask)
        theirs = decompositions.native_group_norm_backward(grad, x, mean, rstd, settings, mask)
        assert_same(ours, theirs, mask)


@pytest.mark.parametrize("with_weight", [True, False])
@pytest.mark.parametrize("normalized_shape", [(3,), (4, 3), (2, 4, 3)])
def test_decompositions_of_rms_norm_agree_with_the_kernels(
    normalized_shape: tuple[int, ...], with_weight: bool
) -> None:
    x, grad = X.detach(), draw(2, 4, 3, seed=1).detach()
    weight = draw(*normalized_shape).detach() if with_weight else None
    settings = LayerNorm(normalized_shape, weight, None)
    by_kernel = plugrad._fused_rms_norm(x, normalized_shape, weight, None)
    by_mean = decompositions.fused_rms_norm_by_mean(x, settings, None)
    for one, other in zip(by_kernel, by_mean, strict=True):
        assert_close(one, other)
    for mask in itertools.product((True, False), repeat=2):
        rest = (by_kernel[1], weight, mask)
        ours = plugrad.ops.plugrad._fused_rms_norm_backward(grad, x, normalized_shape, *rest)
        theirs = decompositions.fused_rms_norm_backward_by_mean(
            grad, x, settings, by_kernel[1], mask
        )
        assert_same(ours, theirs, mask)


def assert_same(ours: Any, theirs: Any, mask: tuple[bool, ...]) -> None:
    for one, other, wanted in zip(ours, theirs, mask, strict=True):
        assert (one is not None) == (other is not None) == wanted
        if wanted:
            assert_close(one, other, rtol=1e-9, atol=1e-9)


LAYOUTS: Final = {
    "contiguous": "lib.ones(2, 4, 3, 3)",
    "channels last": "lib.ones(2, 4, 3, 3).contiguous(memory_format=lib.channels_last)",
    "part of channels last": (
        "lib.ones(2, 4, 3, 6).contiguous(memory_format=lib.channels_last)[..., ::2]"
    ),
    "channels last in three dimensions": (
        "lib.ones(2, 4, 2, 3, 3).contiguous(memory_format=lib.channels_last_3d)"
    ),
    "turned": "lib.ones(3, 3, 4, 2).permute(3, 2, 1, 0)",
    "sliced": "lib.ones(2, 8, 3, 3)[:, ::2]",
    "repeated": "lib.ones(2, 1, 3, 3).expand(2, 4, 3, 3)",
    "without elements": "lib.ones(0, 4, 3, 3)",
}


@needs_torch
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_results_lie_in_memory_as_pytorchs(layout: str, dtype: str) -> None:
    found = []
    for lib in (plugrad, torch):
        x = eval(LAYOUTS[layout], {"lib": lib}).to(getattr(lib, dtype))
        norms = lib.nn.functional
        outs = (norms.group_norm(x, 2), norms.rms_norm(x, x.shape[-1:]))
        found.append([(tuple(out.shape), out.stride()) for out in outs])
    assert found[0] == found[1]


@needs_torch
@pytest.mark.parametrize("weight_dtype", ["float32", "like the input"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_dtypes_are_pytorchs(dtype: str, weight_dtype: str) -> None:
    if dtype == "float64" and weight_dtype == "float32":
        pytest.skip("both refuse it in group_norm")
    values = np.random.default_rng(5).standard_normal((2, 4, 3))
    found = []
    for lib in (plugrad, torch):
        x = lib.tensor(values.tolist(), dtype=getattr(lib, dtype))
        parameters = lib.float32 if weight_dtype == "float32" else x.dtype
        weight = lib.tensor([1.0, 2.0, 3.0, 0.5], dtype=parameters)
        groups = lib.native_group_norm(x, weight, None, 2, 4, 3, 2, 1e-5)
        rows = lib._fused_rms_norm(x, (3,), weight[:3], None)
        found.append(groups + rows)
    for one, other in zip(*found, strict=True):
        assert str(one.dtype).split(".")[1] == str(other.dtype).split(".")[1]
        tolerance = 2e-2 if one.dtype.itemsize == 2 else 1e-5
        wide = [t.to(lib.float64).numpy() for t, lib in ((one, plugrad), (other, torch))]
        np.testing.assert_allclose(*wide, rtol=tolerance, atol=tolerance)


@needs_torch
@pytest.mark.parametrize("odd", [float("nan"), float("inf"), float("-inf"), 2.0, 0.0])
def test_odd_numbers_give_what_they_give_in_pytorch(odd: float) -> None:
    found = []
    for lib in (plugrad, torch):
        x = lib.arange(24.0).reshape(2, 4, 3)
        x[0, 1, 2] = odd
        x[1, :2] = odd
        x.requires_grad_()
        norms = lib.nn.functional
        weight = lib.arange(1.0, 5.0).requires_grad_()
        outs = (norms.group_norm(x, 2, weight), norms.rms_norm(x, (3,), weight[:3]))
        grads = [lib.autograd.grad((out * out).sum(), (x, weight)) for out in outs]
        found.append([t.detach().numpy() for t in (*outs, *itertools.chain(*grads))])
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-3)


@needs_torch
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("eps", [-1.5, 0.0, 0.5])
def test_batch_norm_refuses_an_eps_that_can_divide_by_nothing(eps: float, training: bool) -> None:
    found = []
    for lib in (plugrad, torch):
        x, zeros, ones = lib.arange(6.0).reshape(2, 3), lib.zeros(3), lib.ones(3)
        try:
            out = lib.nn.functional.batch_norm(x, zeros, ones, training=training, eps=eps)
            found.append(out.numpy().round(4).tolist())
        except ValueError as error:
            found.append(str(error))
    assert found[0] == found[1]


def test_groups_without_elements_add_nothing_to_the_gradient_of_weights() -> None:
    for shape in ((0, 4, 3), (2, 4, 0)):
        x, weight = plugrad.zeros(shape, requires_grad=True), plugrad.ones(4, requires_grad=True)
        F.group_norm(x, 2, weight, weight).sum().backward()
        assert weight.grad.tolist() == [0, 0, 0, 0]
        assert x.grad.shape == shape
    assert F.group_norm(plugrad.zeros(2, 0, 3), 2).shape == (2, 0, 3)
    rows = plugrad.zeros(0, 3, requires_grad=True)
    weight = plugrad.ones(3, requires_grad=True)
    F.rms_norm(rows, (3,), weight).sum().backward()
    assert weight.grad.tolist() == [0, 0, 0]


def test_rms_norm_takes_complex_numbers_and_weights_of_other_dtypes() -> None:
    x = plugrad.tensor([[1.0, 7.0], [3.0, 3.0]])
    wide = F.rms_norm(x, (2,), plugrad.tensor([1.0, 2.0], dtype=plugrad.float64))
    assert wide.dtype is plugrad.float32
    assert_close(wide, plugrad.tensor([[0.2, 2.8], [1.0, 2.0]]))
    complex_rows = F.rms_norm(x.to(plugrad.complex64), (2,))
    assert_close(complex_rows, plugrad.tensor([[0.2, 1.4], [1.0, 1.0]], dtype=plugrad.complex64))


ONES: Final = plugrad.ones(2, 4, 3)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: F.group_norm(plugrad.ones(4), 2), RuntimeError, "at least 2 dimensions"),
        (
            lambda: F.group_norm(ONES, 2, plugrad.ones(4).double()),
            RuntimeError,
            "expect parameter to have scalar type of Float",
        ),
        (
            lambda: F.group_norm(ONES.long(), 2),
            NotImplementedError,
            "\"GroupNormKernelImpl\" not implemented for 'Long'",
        ),
        (
            lambda: plugrad.native_group_norm(ONES, None, None, 2, 4, 2, 2, 1e-5),
            RuntimeError,
            r"Expected X.numel\(\) == N \* C \* HxW to be true, but got false",
        ),
        (
            lambda: plugrad.ops.plugrad.native_group_norm_backward(
                *(ONES[:1], ONES, ONES[:, :2, 0], ONES[:, :2, 0], None, 2, 4, 3, 2),
                (True, True, True),
            ),
            RuntimeError,
            r"Expected dY.numel\(\) == N \* C \* HxW to be true, but got false",
        ),
        (
            lambda: F.rms_norm(ONES.long(), (3,)),
            NotImplementedError,
            "\"rms_norm\" not implemented for 'Long'",
        ),
        (
            lambda: plugrad._fused_rms_norm(ONES, (3,), plugrad.ones(4), None),
            RuntimeError,
            "Expected weight to be of same shape as normalized_shape",
        ),
        (
            lambda: plugrad.vmap(lambda x: F.group_norm(x, 2))(ONES),
            RuntimeError,
            r"input of shape \[4, 3\] and num_groups=2",
        ),
    ],
)
def test_errors(call: Callable[[], Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()
