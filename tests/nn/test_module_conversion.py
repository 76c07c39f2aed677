"""Module.to and the casts: what moves, what stays and what keeps its identity."""

from __future__ import annotations

from typing import Any

import pytest

import plugrad
from plugrad import nn


def test_to_dtype_casts_floating_members_only() -> None:
    layer = nn.BatchNorm1d(2).to(plugrad.float64)
    assert layer.weight is not None
    assert layer.weight.dtype == plugrad.float64
    assert layer.running_mean is not None
    assert layer.running_mean.dtype == plugrad.float64
    assert layer.num_batches_tracked is not None
    assert layer.num_batches_tracked.dtype == plugrad.int64


def test_conversion_keeps_the_parameter_objects() -> None:
    layer = nn.Linear(2, 2)
    weight = layer.weight
    layer.double()
    assert layer.weight is weight
    assert weight.dtype == plugrad.float64
    assert weight.requires_grad


def test_gradients_are_converted_too() -> None:
    layer = nn.Linear(2, 2)
    layer(plugrad.ones(1, 2)).sum().backward()
    layer.double()
    assert layer.weight.grad is not None
    assert layer.weight.grad.dtype == plugrad.float64


def test_a_converted_module_still_trains() -> None:
    layer = nn.Linear(2, 1).double()
    layer(plugrad.ones(3, 2, dtype=plugrad.float64)).sum().backward()
    assert layer.weight.grad is not None
    assert layer.weight.grad.tolist() == [[3.0, 3.0]]


def test_to_tensor_takes_its_dtype_and_device() -> None:
    layer = nn.Linear(2, 2).to(plugrad.zeros(1, dtype=plugrad.float16))
    assert layer.weight.dtype == plugrad.float16


def test_to_device_and_dtype() -> None:
    layer = nn.Linear(2, 2).to("cpu", plugrad.float64)
    assert layer.weight.dtype == plugrad.float64
    assert nn.Linear(2, 2).to(device="cpu").weight.device == plugrad.device("cpu")


@pytest.mark.parametrize("name", ["half", "bfloat16", "double", "float"])
def test_named_casts(name: str) -> None:
    dtypes = {"half": "float16", "bfloat16": "bfloat16", "double": "float64", "float": "float32"}
    layer = getattr(nn.Linear(2, 2), name)()
    assert layer.weight.dtype == getattr(plugrad, dtypes[name])


def test_to_integer_dtype_raises() -> None:
    with pytest.raises(TypeError, match="only accepts floating point or complex dtypes"):
        nn.Linear(1, 1).to(plugrad.int64)


def test_to_another_device_moves_everything_in_place(second_backend: str) -> None:
    module = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    parameters = list(module.parameters())
    module(plugrad.arange(8.0).reshape(4, 2)).square().sum().backward()
    module.to(second_backend)
    device = plugrad.device(second_backend)
    members = [*module.parameters(), *module.buffers(), *(p.grad for p in module.parameters())]
    assert all(member is not None and member.device == device for member in members)
    assert all(now is before for now, before in zip(module.parameters(), parameters, strict=True))


def test_a_module_trains_where_it_was_moved(second_backend: str) -> None:
    layer = nn.Linear(2, 1).to(second_backend)
    inputs = plugrad.ones(3, 2, device=second_backend)
    optimizer = plugrad.optim.SGD(layer.parameters(), lr=0.5)
    before = layer.weight.tolist()
    layer(inputs).sum().backward()
    optimizer.step()
    assert layer.weight.device == plugrad.device(second_backend)
    assert layer.weight.tolist() == [[pytest.approx(value - 1.5) for value in before[0]]]
    assert layer.cpu().weight.device == plugrad.device("cpu")


def test_a_memory_format_is_for_members_of_4_and_5_dimensions(torch_oracle: Any) -> None:
    found = []
    for lib in (plugrad, torch_oracle):
        nn = lib.nn
        model = nn.Sequential(nn.Conv2d(2, 3, 2), nn.Linear(2, 2))
        before = list(model.parameters())
        model.to(lib.float64, memory_format=lib.channels_last)
        assert all(a is b for a, b in zip(before, model.parameters(), strict=True))
        found.append([(p.stride(), p.element_size()) for p in model.parameters()])
        volume = nn.Linear(1, 1)
        volume.register_buffer("cells", lib.zeros(1, 1, 1, 1, 1))
        with pytest.raises(RuntimeError, match="required rank 4 tensor"):
            volume.to(memory_format=lib.channels_last)
        with pytest.raises(TypeError, match="memory_format"):
            model.to(memory_format=1)
    assert found[0] == found[1]
