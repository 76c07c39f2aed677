"""A module on several devices. Oracle: the module itself, on the whole batch."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

import plugrad
from plugrad import nn
from plugrad.nn import parallel


class Pair(NamedTuple):
    first: Any
    second: Any


class Net(nn.Module):
    """Two layers that share their weight, keywords, and results of several kinds."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(3, 3)
        self.again = self.inner
        self.register_buffer("shift", plugrad.ones(3))

    def forward(self, x: Any, factor: float, *, more: Any = 0.0) -> dict[str, Any]:
        return {"y": self.again(self.inner(x)) * factor + self.shift + more, "pair": Pair(x, [x])}


def devices(second: str) -> list[str]:
    return [f"{second}:0", f"{second}:1"]


def gradients(net: nn.Module, call: Any, x: Any, more: Any) -> list[Any]:
    net.zero_grad()
    out = call(x, 2.0, more=more)
    (out["y"] * out["y"].detach().cos()).sum().backward()
    return [out["y"], *out["pair"].second, *(p.grad for p in net.parameters())]


@pytest.mark.parametrize("places", [["cpu", "cpu"], [0, 0, 0]])
def test_outputs_and_gradients_are_those_of_the_whole_batch(places: list[Any]) -> None:
    net = Net()
    x, more = plugrad.randn(5, 3), plugrad.randn(5, 3)
    expected = gradients(net, net, x, more)
    found = gradients(net, nn.DataParallel(net, places), x, more)
    for mine, other in zip(found, expected, strict=True):
        assert plugrad.allclose(mine, other, atol=1e-6)


def test_more_devices_than_samples() -> None:
    net = nn.DataParallel(nn.Linear(2, 1), ["cpu"] * 4)
    assert net(plugrad.ones(3, 2)).shape == (3, 1)
    assert net(plugrad.ones(1, 2)).shape == (1, 1)


def test_one_device_passes_through() -> None:
    calls = []

    class Layer(nn.Module):
        def forward(self, *args: Any, **kwargs: Any) -> Any:
            calls.append((args, kwargs))
            return "result"

    assert nn.DataParallel(Layer())("x", a=[1]) == "result"
    assert calls == [(("x",), {"a": [1]})]


def test_buffers_of_copies_are_their_own() -> None:
    class Counting(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("count", plugrad.zeros(1))

        def forward(self, x: Any) -> Any:
            self.count += 1
            return x

    net = Counting()
    nn.DataParallel(net, ["cpu", "cpu"])(plugrad.ones(2))
    assert net.count.item() == 0


def test_scalars_are_joined_to_a_vector() -> None:
    with pytest.warns(UserWarning, match="all input tensors were scalars"):
        assert parallel.gather([plugrad.tensor(1.0), plugrad.tensor(2.0)], "cpu").tolist() == [1, 2]
    assert parallel.gather([None, None], "cpu") is None
    with pytest.raises(ValueError, match="All dicts must have the same number of keys"):
        parallel.gather([{"a": plugrad.ones(1)}, {}], "cpu")


def test_members_elsewhere_are_refused(second_backend: str) -> None:
    net = nn.Linear(2, 1)
    with pytest.raises(RuntimeError, match=r"on device second.* \(device_ids\[0\]\) but found one"):
        parallel.data_parallel(net, plugrad.ones(2, 2), [second_backend, second_backend])
    with pytest.raises(AssertionError, match="number of modules 1 is not equal to the number of"):
        parallel.parallel_apply([net], [])


def test_batch_norm_across_processes_is_that_of_one() -> None:
    net = nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(nn.BatchNorm2d(3)))
    x = plugrad.randn(2, 3, 4, 4)
    assert plugrad.equal(net(x), nn.BatchNorm2d(3)(x))
