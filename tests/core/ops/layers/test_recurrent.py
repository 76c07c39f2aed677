"""Recurrent layers over whole sequences.

The oracles are finite differences, the decompositions, NumPy's functions for compiled loops, and
single elements for `vmap`. Against PyTorch, layers are compared in `tests/nn/modules/test_rnn.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad.ops.on_demand.composite import recurrent as decompositions
from plugrad.plugins.sequences import walk
from plugrad_cpu.compiled import loops
from plugrad_cpu.kernels.recurrent import KERNELS, gru, lstm

Array = np.ndarray[Any, Any]

WIDTH = 3
# Of equal lengths, of several, one step.
SIZES = [(2, 2, 2), (3, 2, 2, 1), (2,)]
each_size = pytest.mark.parametrize("sizes", SIZES, ids=str)
each_kind = pytest.mark.parametrize("kind", ["lstm", "gru"])
each_direction = pytest.mark.parametrize("reverse", [False, True])


def inputs(kind: str, sizes: tuple[int, ...], width: int = WIDTH) -> list[Array]:
    rng = np.random.default_rng(0)
    gates = {"lstm": 4, "gru": 3}[kind] * width
    shapes = [(sum(sizes), gates), (sizes[0], width), (gates, width)]
    shapes.insert(*{"lstm": (2, (sizes[0], width)), "gru": (3, (gates,))}[kind])
    return [rng.normal(size=shape) for shape in shapes]


def tensors(kind: str, sizes: tuple[int, ...], dtype: Any = plugrad.float64) -> list[Any]:
    arrays = inputs(kind, sizes)
    return [plugrad.from_numpy(array).to(dtype).requires_grad_() for array in arrays]


def layer(kind: str, sizes: tuple[int, ...], reverse: bool) -> Callable[..., Any]:
    """The outputs and the last states."""
    run = {"lstm": plugrad._lstm_layer, "gru": plugrad._gru_layer}[kind]
    return lambda *given: run(*given, sizes, reverse)[:-1]


def loss_of(results: Any) -> Any:
    return sum(result.sin().sum() * (n + 1) for n, result in enumerate(results))


@each_kind
@each_size
@each_direction
def test_derivatives_are_differences(kind: str, sizes: tuple[int, ...], reverse: bool) -> None:
    function, given = layer(kind, sizes, reverse), tensors(kind, sizes)
    plugrad.testing.gradcheck(function, given, check_forward_ad=True)
    plugrad.testing.gradgradcheck(function, given)


@each_direction
def test_without_a_bias(reverse: bool) -> None:
    given = tensors("gru", (2, 1))[:3]
    function = layer("gru", (2, 1), reverse)
    plugrad.testing.gradcheck(lambda *args: function(*args, None), given, check_forward_ad=True)
    plugrad.testing.gradgradcheck(lambda *args: function(*args, None), given)


@each_kind
def test_tangents_of_gradients_are_second_derivatives(kind: str) -> None:
    function, given = layer(kind, (2, 1), False), tensors(kind, (2, 1))
    directions = [plugrad.ones_like(x) for x in given]

    def gradients(*args: Any) -> Any:
        return plugrad.func.grad(lambda *a: loss_of(function(*a)), tuple(range(4)))(*args)

    _, along = plugrad.func.jvp(gradients, tuple(given), tuple(directions))
    with plugrad.autograd.forward_ad.dual_level():
        duals = [
            plugrad.autograd.forward_ad.make_dual(x.detach(), d).requires_grad_()
            for x, d in zip(given, directions, strict=True)
        ]
        found = plugrad.autograd.grad(loss_of(function(*duals)), duals)
        pushed = [plugrad.autograd.forward_ad.unpack_dual(grad).tangent for grad in found]
    first = plugrad.autograd.grad(loss_of(function(*given)), given, create_graph=True)
    total = sum((grad * d).sum() for grad, d in zip(first, directions, strict=True))
    second = plugrad.autograd.grad(total, given)
    for one, other, expected in zip(along, pushed, second, strict=True):
        plugrad.testing.assert_close(one, expected)
        plugrad.testing.assert_close(other, expected)


@each_kind
@each_size
@each_direction
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_kernels_compute_what_the_decompositions_do(
    kind: str, sizes: tuple[int, ...], reverse: bool, dtype: str
) -> None:
    given = [x.detach() for x in tensors(kind, sizes, getattr(plugrad, dtype))]
    run = getattr(plugrad, f"_{kind}_layer")
    found = run(*given, sizes, reverse)
    expected = getattr(decompositions, f"{kind}_by_steps")(*given, sizes, reverse)
    for one, other in zip(found, expected, strict=True):
        plugrad.testing.assert_close(one, other)
    grads = [plugrad.randn_like(result) for result in found[:-1]]
    states = given[1:] if kind == "lstm" else given[1:3]
    for chosen in (grads, [grads[0], *[None] * (len(grads) - 1)], [None, *grads[1:]]):
        args = (*chosen, *states, found[0], found[-1], sizes, reverse, (True,) * 4)
        backward = getattr(plugrad, f"_{kind}_layer_backward")
        decomposed = getattr(decompositions, f"{kind}_backward_by_steps")
        for one, other in zip(backward(*args), decomposed(*args), strict=True):
            plugrad.testing.assert_close(one, other)


@each_kind
@each_direction
def test_compiled_loops_compute_what_numpy_does(
    kind: str, reverse: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = loops("recurrent")
    if compiled is None:
        pytest.skip("there is no numba")
    sizes = (3, 3, 2, 1)
    # Where functions are steep, flat, near zero, and not a number.
    given = [(x * 4).astype(np.float32) for x in inputs(kind, sizes, 37)]
    given[0][0, :5] = [np.inf, -np.inf, 1e-5, -120, 120]
    given[0][-1, 7] = np.nan
    found = []
    for chosen in (compiled, None):
        monkeypatch.setattr({"lstm": lstm, "gru": gru}[kind], "loops_of", lambda _, c=chosen: c)
        with np.errstate(all="ignore"):
            results = KERNELS[f"_{kind}_layer"](*given, sizes, reverse)
            grads = [np.cos(result) for result in results[:-1]]
            states = given[1:] if kind == "lstm" else given[1:3]
            backward = KERNELS[f"_{kind}_layer_backward"]
            args = (*grads, *states, results[0], results[-1], sizes, reverse, (True,) * 4)
            found.append((*results, *backward(*args)))
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-4, atol=2e-4)


@each_kind
def test_only_wanted_gradients_of_weights_are_computed(kind: str) -> None:
    given = tensors(kind, (2, 2))
    place = 3 if kind == "lstm" else 2
    given[place].requires_grad_(False)
    loss_of(layer(kind, (2, 2), False)(*given)).backward()
    assert given[place].grad is None
    assert given[0].grad.abs().sum() > 0


@each_kind
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_sixteen_bits_run_step_by_step(kind: str, dtype: str) -> None:
    narrow = tensors(kind, (2, 1), getattr(plugrad, dtype))
    results = layer(kind, (2, 1), False)(*narrow)
    wide = layer(kind, (2, 1), False)(*[x.double() for x in narrow])
    for one, other in zip(results, wide, strict=True):
        assert one.dtype == narrow[0].dtype
        plugrad.testing.assert_close(one.double(), other, rtol=0.03, atol=0.03)
    loss_of(results).backward()
    assert all(x.grad.dtype == x.dtype for x in narrow)


@each_kind
def test_gradients_under_vmap_are_those_of_each_element(kind: str) -> None:
    given = [x.detach() for x in tensors(kind, (2, 1))]
    function = layer(kind, (2, 1), True)

    def gradients(gates: Any, weight: Any) -> Any:
        rest = [x for x in given if x.shape not in (gates.shape, weight.shape)]

        def loss(g: Any, w: Any) -> Any:
            args = [g, *rest[:2], w] if kind == "lstm" else [g, rest[0], w, rest[1]]
            return loss_of(function(*args))

        return plugrad.func.grad(loss, (0, 1))(gates, weight)

    weight = given[3 if kind == "lstm" else 2]
    many = [plugrad.stack([x, x * 2]) for x in (given[0], weight)]
    for in_dims in ((0, None), (None, 0), (0, 0)):
        args = [x if dim == 0 else x[0] for x, dim in zip(many, in_dims, strict=True)]
        found = plugrad.vmap(gradients, in_dims=in_dims)(*args)
        for n in range(2):
            single = [x[n] if dim == 0 else x for x, dim in zip(args, in_dims, strict=True)]
            for one, other in zip(found, gradients(*single), strict=True):
                plugrad.testing.assert_close(one[n], other)


@each_kind
@each_direction
def test_shapes_on_meta(kind: str, reverse: bool) -> None:
    given = tensors(kind, (3, 2, 2, 1))
    results = layer(kind, (3, 2, 2, 1), reverse)(*given)
    shapes = layer(kind, (3, 2, 2, 1), reverse)(*[x.to("meta") for x in given])
    assert [x.shape for x in shapes] == [x.shape for x in results]


@each_kind
def test_no_sequences(kind: str) -> None:
    given = tensors(kind, (0, 0))
    results = layer(kind, (0, 0), False)(*given)
    assert all(x.shape == (0, WIDTH) for x in results)
    loss_of(results).backward()
    assert all((x.grad == 0).all() for x in given)


def test_wrong_arguments() -> None:
    gates, hx, cx, w_hh = tensors("lstm", (2, 1))
    for args, text in (
        ((gates[:2], hx, cx, w_hh, (2, 1)), r"gates of size \[3, 12\], got \[2, 12\]"),
        ((gates, hx[0], cx, w_hh, (2, 1)), "hx to have 2 dimensions, got 1"),
        ((gates, hx, cx[:1], w_hh, (2, 1)), r"cx of size \[2, 3\], got \[1, 3\]"),
        ((gates, hx, cx, w_hh.t(), (2, 1)), r"w_hh of size \[12, 3\], got \[3, 12\]"),
        ((gates, hx, cx.float(), w_hh, (2, 1)), "cx to have the dtype of gates"),
        ((gates, hx, cx, w_hh, (1, 2)), "batch_sizes that start with 2"),
        ((gates[:0], hx, cx, w_hh, ()), "batch_sizes that start with 2"),
    ):
        with pytest.raises(RuntimeError, match=text):
            plugrad._lstm_layer(*args, False)
    with pytest.raises(NotImplementedError, match="not implemented for 'Long'"):
        plugrad._lstm_layer(gates.long(), hx, cx, w_hh, (2, 1), False)
    gates, hx, w_hh, b_hh = tensors("gru", (2, 1))
    with pytest.raises(RuntimeError, match=r"b_hh of size \[9\], got \[8\]"):
        plugrad._gru_layer(gates, hx, w_hh, b_hh[:8], (2, 1), False)


def test_walking_joins_sequences_and_lets_them_end() -> None:
    start = (plugrad.zeros(3, 1),)
    for reverse in (False, True):
        seen: list[tuple[int, int]] = []

        def step(time: int, state: Any, seen: list[Any] = seen) -> Any:
            seen.append((time, len(state[0])))
            return (state[0] + 1,)

        (last,) = walk((3, 2, 2, 1), reverse, start, step)
        assert last.flatten().tolist() == [4, 3, 1]
        assert seen == [(0, 3), (1, 2), (2, 2), (3, 1)][:: -1 if reverse else 1]


GATES = {"rnn_tanh_cell": 1, "rnn_relu_cell": 1, "gru_cell": 3, "lstm_cell": 4}


@pytest.mark.parametrize("name", GATES)
def test_a_cell_says_which_of_its_arguments_does_not_fit(name: str) -> None:
    gates = GATES[name]

    def called(
        x: Any = (4, 3), h: Any = (4, 2), w_ih: Any = (gates * 2, 3), w_hh: Any = (gates * 2, 2)
    ) -> Any:
        hx = plugrad.ones(h)
        states = [hx, plugrad.ones(h)] if name == "lstm_cell" else hx
        cell = getattr(plugrad, name)
        return cell(plugrad.ones(x), states, plugrad.ones(w_ih), plugrad.ones(w_hh))

    called()
    rows = rf"first dim must be {gates} \* hidden_size = {gates * 2}, but got {gates * 4}"
    for arguments, message in (
        ({"w_ih": (gates * 2, 5)}, "input has inconsistent input_size: got 3 expected 5"),
        ({"w_ih": (gates * 4, 3)}, f"weight_ih {rows}"),
        ({"w_hh": (gates * 4, 2)}, f"weight_hh {rows}"),
        ({"h": (5, 2)}, "Input batch size 4 doesn't match hidden0 batch size 5"),
        ({"h": (4, 3)}, "hidden0 has inconsistent hidden_size: got 3, expected 2"),
    ):
        with pytest.raises(RuntimeError, match=message):
            called(**arguments)  # type: ignore[arg-type]
    with pytest.raises(IndexError, match="Dimension out of range"):
        called(x=(3,), h=(2,))


@pytest.mark.parametrize("name", ["gru_cell", "lstm_cell"])
def test_gates_of_integers_raise(name: str) -> None:
    def ones(*shape: int) -> Any:
        return plugrad.ones(shape, dtype=plugrad.int32)

    rows = GATES[name] * 2
    states = [ones(4, 2), ones(4, 2)] if name == "lstm_cell" else ones(4, 2)
    with pytest.raises(RuntimeError, match="Float can't be cast to the desired output type Int"):
        getattr(plugrad, name)(ones(4, 3), states, ones(rows, 3), ones(rows, 2))
