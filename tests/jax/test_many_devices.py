"""The CPU and four devices of JAX: moving, mixing, and one backward pass over all of them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
import pytest

import plugrad
from plugrad.autograd.engine.engine import ENGINE
from plugrad.dispatch.backends.active import find_backend
from plugrad.library import custom_op
from tests.core.autograd.devices.graphs import SECONDS, then

DEVICES = [f"jax:{index}" for index in range(4)]


@pytest.fixture(autouse=True)
def no_threads_are_left() -> Iterator[None]:
    yield
    ENGINE.stop()


PAIRS = [("cpu", "jax:1"), ("jax:2", "cpu"), ("jax:0", "jax:3")]


@pytest.mark.parametrize(("here", "there"), PAIRS)
def test_what_is_moved_shares_nothing(here: str, there: str) -> None:
    # So large and aligned that JAX could take NumPy's memory over without a copy.
    x = plugrad.zeros(64, 64, device=here)
    y = x.to(there)
    z = plugrad.empty(64, 64, device=there).copy_(x)
    x.add_(1)
    assert (y.sum().item(), z.sum().item()) == (0.0, 0.0)
    y.add_(2)
    z.add_(2)
    assert x.sum().item() == 64 * 64
    assert (str(y.device), y.sum().item(), z.sum().item()) == (there, 2.0 * 64 * 64, 2.0 * 64 * 64)


def test_what_is_written_right_after_a_move_is_not_seen() -> None:
    # JAX copies later than the call returns: most of these would see it.
    for index in range(50):
        x = plugrad.zeros(64, 64)
        y = x.to(DEVICES[index % 4])
        x.add_(1)
        assert y.sum().item() == 0.0


def test_the_array_is_on_the_device() -> None:
    for index, device in enumerate(DEVICES):
        assert plugrad.ones(2).to(device).array.devices() == {jax.devices()[index]}
        assert plugrad.ones(2, device="jax:0").to(device).array.devices() == {jax.devices()[index]}


def test_a_move_between_devices_does_not_pass_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    x = plugrad.ones(2, device="jax:1", requires_grad=True)

    def refuse(self: Any, array: Any) -> Any:
        raise AssertionError("an array went to the host")

    with monkeypatch.context() as patch:
        patch.setattr(type(find_backend("jax").backend), "to_host", refuse)
        y = (x.to("jax:3") * 2).sum()
        y.backward()
        z = plugrad.zeros(2, device="jax:2").copy_(x.detach())
    assert (x.grad.tolist(), z.tolist(), str(x.grad.device)) == ([2.0, 2.0], [1.0, 1.0], "jax:1")


@pytest.mark.parametrize(("here", "there"), PAIRS)
def test_gradients_cross_back_and_have_gradients(here: str, there: str) -> None:
    x = plugrad.tensor([1.0, 2.0], device=here, requires_grad=True)
    y = (x.to(there) ** 3).to(here)
    (grad,) = plugrad.autograd.grad(y.sum(), x, create_graph=True)
    assert (grad.tolist(), grad.device) == ([3.0, 12.0], x.device)
    (second,) = plugrad.autograd.grad(grad.sum(), x)
    assert (second.tolist(), second.device) == ([6.0, 12.0], x.device)


def test_copies_into_part_of_a_tensor_of_another_device() -> None:
    target = plugrad.zeros(3, device="jax:1")
    source = plugrad.tensor([1.0, 2.0], requires_grad=True)
    target[1:].copy_(source)
    (target * plugrad.tensor([1.0, 2.0, 3.0], device="jax:1")).sum().backward()
    assert target.tolist() == [0.0, 1.0, 2.0]
    assert (source.grad.tolist(), str(source.grad.device)) == ([2.0, 3.0], "cpu")


def test_operands_of_two_devices() -> None:
    words = "at least two devices, {} and {}!"
    with pytest.raises(RuntimeError, match=words.format("jax:1", "cpu")):
        plugrad.ones(2) + plugrad.ones(2, device="jax:1")
    with pytest.raises(RuntimeError, match=words.format("jax:1", "jax:2")):
        plugrad.ones(2, device="jax:1") * plugrad.ones(2, device="jax:2")
    with pytest.raises(RuntimeError, match=r"got mat2 is on cpu, different .* on jax:1"):
        plugrad.ones(2, 2, device="jax:1") @ plugrad.ones(2, 2)
    number = plugrad.tensor(2.0, requires_grad=True)
    x = plugrad.ones(2, device="jax:1")
    y = (x * number).add_(number)
    assert (str(y.device), y.tolist()) == ("jax:1", [4.0, 4.0])
    y.sum().backward()
    assert (number.grad.item(), str(number.grad.device)) == (4.0, "cpu")


def test_indices_may_be_on_the_cpu() -> None:
    x = plugrad.arange(4.0, device="jax:2").requires_grad_()
    y = x[plugrad.tensor([3, 1])]
    y.sum().backward()
    assert (y.tolist(), x.grad.tolist()) == ([3.0, 1.0], [0.0, 1.0, 0.0, 1.0])
    z = plugrad.zeros(4, device="jax:2")
    z[plugrad.tensor([True, False, False, True])] = plugrad.tensor(5.0)
    assert z.tolist() == [5.0, 0.0, 0.0, 5.0]
    with pytest.raises(RuntimeError, match="indices should be either on cpu or on the same device"):
        x[plugrad.tensor([1], device="jax:0")]


def test_factories_make_arrays_where_they_are_told() -> None:
    with plugrad.device("jax:3"):
        made = [plugrad.zeros(2), plugrad.randn(2), plugrad.arange(3), plugrad.tensor([1.0])]
    for x in made:
        assert (str(x.device), x.array.devices()) == ("jax:3", {jax.devices()[3]})
    x = plugrad.ones(2, device="jax:1")
    for like in (plugrad.zeros_like(x), x.new_ones(3), plugrad.rand_like(x)):
        assert (str(like.device), like.array.devices()) == ("jax:1", {jax.devices()[1]})


def branches(function: Any, devices: list[str]) -> tuple[Any, list[Any]]:
    """A sum of one branch for each device, and the leaves; each gradient passes `function`."""
    leaves = [plugrad.ones(2, device=device, requires_grad=True) for device in devices]
    total = plugrad.zeros(())
    for number, x in enumerate(leaves):
        total = total + (then(x * (number + 1), function)).sum().to("cpu")
    return total, leaves


def test_four_branches_run_at_once_on_four_threads() -> None:
    # Each waits within its node until all have arrived: one after the other they never would.
    barrier = threading.Barrier(len(DEVICES))
    seen: list[str] = []

    def meet(grad: Any) -> None:
        barrier.wait(SECONDS)
        seen.append(threading.current_thread().name)

    total, leaves = branches(meet, DEVICES)
    total.backward()
    assert sorted(seen) == [f"plugrad-{device}" for device in DEVICES]
    for number, x in enumerate(leaves):
        assert (x.grad.tolist(), x.grad.device) == ([number + 1.0] * 2, x.device)
        assert x.grad.array.devices() == {jax.devices()[number]}


def test_kernels_of_four_devices_run_at_once() -> None:
    # The same for a kernel on JAX's arrays: it is called by the thread of its device.
    barrier = threading.Barrier(len(DEVICES))

    @custom_op("many_devices::meeting", mutates_args=())
    def meeting(x: plugrad.Tensor) -> plugrad.Tensor:
        barrier.wait(SECONDS)
        return x * 1

    @custom_op("many_devices::passing", mutates_args=())
    def passing(x: plugrad.Tensor) -> plugrad.Tensor:
        return x * 1

    passing.register_autograd(lambda ctx, grad: meeting(grad))
    leaves = [plugrad.ones(2, device=device, requires_grad=True) for device in DEVICES]
    total = plugrad.zeros(())
    for x in leaves:
        total = total + passing(x).sum().to("cpu")
    total.backward()
    assert [x.grad.tolist() for x in leaves] == [[1.0, 1.0]] * 4


def test_a_graph_over_the_cpu_and_four_devices() -> None:
    def model(devices: list[str]) -> list[Any]:
        rng = np.random.default_rng(0)
        x = plugrad.from_numpy(rng.normal(size=(3, 4)).astype(np.float32)).requires_grad_()
        leaves = [x]
        parts = []
        for device in devices:
            weight = plugrad.from_numpy(rng.normal(size=(4, 4)).astype(np.float32)).to(device)
            leaves.append(weight.requires_grad_())
            parts.append((x.to(device) @ weight).tanh())
        mixed = [parts[i] * parts[(i + 1) % len(parts)].to(devices[i]) for i in range(len(devices))]
        total = sum([part.sum().to("cpu") for part in mixed], x.sum())
        for _ in range(2):
            total.backward(retain_graph=True)
        return [leaf.grad.cpu() for leaf in leaves]

    for found, expected in zip(model(["cpu", *DEVICES]), model(["cpu"] * 5), strict=True):
        plugrad.testing.assert_close(found, expected)


def test_passes_from_several_threads_over_the_same_devices() -> None:
    """JAX lets other threads go on when an array is freed, in the middle of the engine's work."""
    results: list[list[float]] = []

    def work(devices: list[str]) -> None:
        for _ in range(60):
            x = plugrad.ones(2, requires_grad=True)
            y = x
            for device in devices:
                y = y.to(device) * 2
            y.sum().backward()
            results.append(x.grad.tolist())

    threads = [
        threading.Thread(target=work, args=(order,))
        for order in (DEVICES, DEVICES[::-1], DEVICES[2:] + DEVICES[:2])
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
        assert not thread.is_alive()
    assert results == [[16.0, 16.0]] * 180


def test_an_error_on_one_device_ends_the_pass_and_not_the_next() -> None:
    def fail(grad: Any) -> None:
        if str(grad.device) == "jax:2":
            raise ValueError("on jax:2")

    total, _ = branches(fail, DEVICES)
    with pytest.raises(ValueError, match="on jax:2"):
        total.backward()
    total, leaves = branches(lambda grad: None, DEVICES)
    total.backward()
    assert [x.grad.tolist() for x in leaves] == [[n, n] for n in (1.0, 2.0, 3.0, 4.0)]
