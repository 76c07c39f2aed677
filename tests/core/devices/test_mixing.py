"""Tensors of several devices in one operator: what PyTorch lets pass, and its words for the rest.

PyTorch's own words can be asked for on a GPU only; they are written down here. What is let pass:
tensors without dimensions on the CPU, index tensors on the CPU.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

import plugrad
from plugrad.dispatch.backends.active import activate_backend, deactivate_backend
from plugrad.dispatch.backends.primitives import core_primitives
from plugrad.nn import functional as F
from tests.core.devices.places import Places

pytestmark = pytest.mark.usefixtures("places")

THERE = "places:1"
TWO = "Expected all tensors to be on the same device, but found at least two devices, {} and {}!"
ARGUMENT = (
    "Expected all tensors to be on the same device, but got {} is on {}, different from other "
    "tensors on {} (when checking argument in method wrapper_Places_{})"
)


def on(device: str, *sizes: int) -> Any:
    return plugrad.ones(*sizes, device=device)


def raises(words: str, call: Callable[[], Any]) -> None:
    with pytest.raises(RuntimeError, match=f"^{re.escape(words)}$"):
        call()


@pytest.mark.parametrize("op", [plugrad.add, plugrad.mul, plugrad.lt, plugrad.pow, plugrad.atan2])
def test_elementwise_operators_name_the_device_before_the_cpu(op: Any) -> None:
    words = TWO.format(THERE, "cpu")
    raises(words, lambda: op(on(THERE, 2), on("cpu", 2)))
    raises(words, lambda: op(on("cpu", 2), on(THERE, 2)))
    raises(TWO.format(THERE, "places:2"), lambda: op(on(THERE, 2), on("places:2", 2)))


def test_other_operators_name_the_argument() -> None:
    raises(
        ARGUMENT.format("mat2", "cpu", THERE, "mm"),
        lambda: plugrad.mm(on(THERE, 2, 2), on("cpu", 2, 2)),
    )
    raises(
        ARGUMENT.format("mat2", THERE, "cpu", "mm"),
        lambda: plugrad.mm(on("cpu", 2, 2), on(THERE, 2, 2)),
    )
    raises(
        ARGUMENT.format("tensors", "places:2", THERE, "cat"),
        lambda: plugrad.cat([on(THERE, 2), on("places:2", 2)]),
    )
    raises(
        ARGUMENT.format("index", "cpu", THERE, "index_select"),
        lambda: on(THERE, 2).index_select(0, plugrad.tensor([0])),
    )


INDEXED = [
    lambda x, i: x.index_select(0, i),
    lambda x, i: x.index_add(0, i, x[:1]),
    lambda x, i: x.index_copy(0, i, x[:1]),
    lambda x, i: x.index_fill(0, i, 1.0),
    lambda x, i: x.gather(0, i.view(1, 1)),
    lambda x, i: x.scatter(0, i.view(1, 1), x[:1, :1]),
    lambda x, i: x.scatter_add(0, i.view(1, 1), x[:1, :1]),
    lambda x, i: x.take(i),
    lambda x, i: x.masked_select(i > 0),
    lambda x, i: F.embedding(i, x),
]


@pytest.mark.parametrize("backend", ["places", "bare"])
@pytest.mark.parametrize("call", INDEXED)
def test_index_arguments_have_to_be_where_the_elements_are(call: Any, backend: str) -> None:
    """Whether the backend has kernels, or the operators are decomposed."""

    primitive = {name for op in core_primitives() for name in (op.name, op.full_name)}

    class Bare(Places):
        def kernels(self) -> Any:
            return {name: kernel for name, kernel in super().kernels().items() if name in primitive}

    activate_backend(Bare("bare"))
    try:
        x = plugrad.ones(2, 2, device=f"{backend}:1")
        call(x, plugrad.tensor([1], device=f"{backend}:1"))
        with pytest.raises(RuntimeError, match="same device"):
            call(x, plugrad.tensor([1]))
    finally:
        deactivate_backend("bare")


def test_a_mask_of_another_device() -> None:
    raises(
        f"expected self and mask to be on the same device, but got mask on cpu and self on {THERE}",
        lambda: on(THERE, 2).masked_fill(on("cpu", 2) > 0, 1.0),
    )


@pytest.mark.parametrize(
    "call",
    [
        lambda x, y: plugrad.where(x > 0, y, y),
        lambda x, y: x @ y,
        lambda x, y: plugrad.addmm(y, x, x),
        lambda x, y: plugrad.stack([x, y]),
        lambda x, y: plugrad.lerp(x, x, y),
        lambda x, y: x.clamp(min=y),
        lambda x, y: x.masked_fill(y > 0, 1.0),
        lambda x, y: F.linear(x, y),
        lambda x, y: F.mse_loss(x, y),
        lambda x, y: F.layer_norm(x, (2,), y[0]),
        lambda x, y: F.cross_entropy(x, y[0].long()),
        lambda x, y: F.conv1d(x.unsqueeze(1), y.unsqueeze(1)),
        lambda x, y: F.embedding(y.long(), x),
        lambda x, y: x.add_(y),
        lambda x, y: y.add_(x),
        lambda x, y: plugrad.add(x, x, out=y),
        lambda x, y: plugrad.einsum("ij,jk->ik", x, y),
    ],
)
def test_no_operator_mixes_devices(call: Any) -> None:
    with pytest.raises(RuntimeError, match=r"same device|cross-device copies are not allowed"):
        call(on(THERE, 2, 2), on("cpu", 2, 2))


@pytest.mark.parametrize("dtype", [plugrad.float32, plugrad.float64, plugrad.int64])
def test_a_number_on_the_cpu_meets_any_device(dtype: Any) -> None:
    x, number = on(THERE, 2), plugrad.tensor(3, dtype=dtype)
    for y in (x * number, number * x, x.add(number), number.sub(x), x.clone().mul_(number)):
        assert (str(y.device), y.dtype) == (THERE, plugrad.float32)
    assert plugrad.where(x > 0, number, x).tolist() == [3.0, 3.0]
    assert x.masked_fill(x > 0, number.float()).tolist() == [3.0, 3.0]
    assert x.fill_(number).tolist() == [3.0, 3.0]
    assert plugrad.lerp(x, x, number.float()).tolist() == [3.0, 3.0]


def test_a_number_on_a_device_meets_no_other() -> None:
    number = plugrad.tensor(2.0, device=THERE)
    raises(TWO.format(THERE, "cpu"), lambda: number * on("cpu", 2))
    raises(TWO.format(THERE, "cpu"), lambda: on("cpu", 2) * number)
    raises(TWO.format(THERE, "places:2"), lambda: number * on("places:2", 2))
    raises(TWO.format(THERE, "cpu"), lambda: plugrad.tensor(1.0).add_(number))
    assert str((plugrad.tensor(1.0) * number).device) == THERE


def test_numbers_of_the_cpu_get_their_gradient_there() -> None:
    number = plugrad.tensor(3.0, dtype=plugrad.float64, requires_grad=True)
    x = plugrad.ones(2, device=THERE, requires_grad=True)
    (x * number).sum().backward()
    assert (number.grad.item(), number.grad.device, number.grad.dtype) == (
        2.0,
        number.device,
        number.dtype,
    )
    assert (x.grad.tolist(), x.grad.device) == ([3.0, 3.0], x.device)


def test_indices_may_be_on_the_cpu() -> None:
    x = plugrad.arange(6.0, device=THERE).reshape(3, 2).requires_grad_()
    assert x[plugrad.tensor([2, 0])].tolist() == [[4.0, 5.0], [0.0, 1.0]]
    assert x[plugrad.tensor([True, False, True])].tolist() == [[0.0, 1.0], [4.0, 5.0]]
    assert x[plugrad.tensor([1], device=THERE), plugrad.tensor([0])].tolist() == [2.0]
    x[plugrad.tensor([1])].sum().backward()
    assert (x.grad.tolist(), x.grad.device) == ([[0.0, 0.0], [1.0, 1.0], [0.0, 0.0]], x.device)


def test_writes_by_indices_of_the_cpu() -> None:
    x = plugrad.zeros(3, device=THERE)
    x[plugrad.tensor([2])] = plugrad.tensor(5.0)
    x[plugrad.tensor([True, False, False])] = 1.0
    x[1] = plugrad.tensor([7.0])  # a copy, which crosses devices
    assert x.tolist() == [1.0, 7.0, 5.0]
    with pytest.raises(RuntimeError, match="same device"):
        x[plugrad.tensor([2, 1])] = plugrad.tensor([5.0, 6.0])


@pytest.mark.parametrize("index", ["places:1", "places:2"])
def test_indices_of_another_device(index: str) -> None:
    words = "indices should be either on cpu or on the same device as the indexed tensor ({})"
    raises(words.format("cpu"), lambda: on("cpu", 2)[plugrad.tensor([0], device=index)])
    raises(words.format("places:0"), lambda: on("places:0", 2)[plugrad.tensor([0], device=index)])


def test_the_device_decides_whichever_backend_was_first() -> None:
    # The CPU is below all devices and meta above, though this one may have come later.
    from plugrad.dispatch import keys

    assert keys.backend_number("cpu") < keys.backend_number("places")
    assert keys.backend_number("meta") > keys.backend_number("places")
