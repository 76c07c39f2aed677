"""Modules, optimizers, checkpoints and data on several devices."""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

import plugrad
from plugrad import nn, optim
from plugrad.dispatch.backends.active import activate_backend, deactivate_backend
from plugrad.utils.data import DataLoader, TensorDataset
from tests.core.devices.places import Places, Swift

DEVICES = ["places:1", "still:2"]


@pytest.fixture(autouse=True)
def backends() -> Iterator[None]:
    """Two of three devices each: "places" has mutable arrays, "still" immutable ones."""
    activate_backend(Places("places"))
    activate_backend(Places("still", mutable=False))
    yield
    deactivate_backend("places")
    deactivate_backend("still")


def model() -> Any:
    plugrad.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Tanh(), nn.Linear(4, 2))


def places_of(module: Any) -> set[str]:
    members = [*module.parameters(), *module.buffers()]
    return {str(member.device) for member in members}


def train(module: Any, optimizer: Any, device: str) -> float:
    inputs = plugrad.linspace(-1, 1, 15).reshape(5, 3).to(device)
    optimizer.zero_grad()
    loss = module(inputs).square().mean()
    loss.backward()
    optimizer.step()
    return float(loss.item())


@pytest.mark.parametrize("device", DEVICES)
def test_a_module_moves_and_its_parameters_stay_the_same_objects(device: str) -> None:
    module = model()
    before = list(module.parameters())
    train(module, optim.SGD(module.parameters(), lr=0.1), "cpu")
    view = module[0].weight.detach()[0]
    assert module.to(device) is module
    assert places_of(module) == {device}
    for former, now in zip(before, module.parameters(), strict=True):
        assert former is now
        assert (str(now.grad.device), now.is_leaf, now.requires_grad) == (device, True, True)
    assert str(view.device) == "cpu"
    module.to(device="cpu", non_blocking=True)
    assert places_of(module) == {"cpu"}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    "make",
    [
        lambda p: optim.SGD(p, lr=0.1, momentum=0.9),
        lambda p: optim.Adam(p, lr=0.01, amsgrad=True),
        lambda p: optim.AdamW(p, lr=0.01),
    ],
)
def test_an_optimizer_follows_its_parameters(make: Any, device: str) -> None:
    still, moving = model(), model()
    one, other = make(still.parameters()), make(moving.parameters())
    for place in ("cpu", device, "places:0", "cpu"):
        moving.to(place)
        for _ in range(2):
            expected = train(still, one, "cpu")
            assert math.isclose(train(moving, other, place), expected, rel_tol=1e-5)
        # Counts of steps stay on the host.
        found = [v for s in other.state.values() for v in s.values() if v.ndim]
        assert {str(value.device) for value in found} == {place}


@pytest.mark.parametrize("device", DEVICES)
def test_state_is_loaded_to_where_the_parameters_are(device: str) -> None:
    there, here = model().to(device), model()
    source = optim.Adam(there.parameters())
    train(there, source, device)
    assert here.load_state_dict(there.state_dict()).missing_keys == []
    assert places_of(here) == {"cpu"}
    target = optim.Adam(here.parameters())
    target.load_state_dict(source.state_dict())
    assert math.isclose(train(here, target, "cpu"), train(there, source, device), rel_tol=1e-5)


@pytest.mark.parametrize("device", DEVICES)
def test_a_checkpoint_restores_devices_or_maps_them(device: str) -> None:
    module = model().to(device)
    optimizer = optim.AdamW(module.parameters())
    train(module, optimizer, device)
    file = io.BytesIO()
    host = plugrad.ones(1)
    saved = {"model": module.state_dict(), "optimizer": optimizer.state_dict(), "host": host}
    plugrad.save(saved, file)

    def load(map_location: Any = None) -> Any:
        file.seek(0)
        return plugrad.load(file, map_location)

    def devices(found: Any) -> set[str]:
        return {str(value.device) for value in found["model"].values()}

    assert devices(load()) == {device}
    assert str(load()["host"].device) == "cpu"
    assert devices(load("cpu")) == {"cpu"}
    assert devices(load(plugrad.device("places:0"))) == {"places:0"}
    assert devices(load({device: "places:2"})) == {"places:2"}
    assert devices(load({"elsewhere": "cpu"})) == {device}
    assert devices(load(lambda tensor, location: tensor)) == {"cpu"}
    assert devices(load(lambda tensor, location: None)) == {device}
    assert devices(load(lambda tensor, location: tensor.to(location))) == {device}
    for name, value in load("cpu")["model"].items():
        assert value.tolist() == saved["model"][name].tolist()
    moment = load()["optimizer"]["state"][0]["exp_avg"]
    assert str(moment.device) == device
    assert moment.tolist() == optimizer.state_dict()["state"][0]["exp_avg"].tolist()


def test_a_checkpoint_of_a_device_that_is_not_there() -> None:
    activate_backend(Swift("swift"))
    file = io.BytesIO()
    plugrad.save({"weight": plugrad.ones(2, device="swift:2", requires_grad=True)}, file)
    deactivate_backend("swift")
    file.seek(0)
    with pytest.raises(
        RuntimeError,
        match=r"Attempting to deserialize object on a swift device but .* "
        r"map_location=plugrad.device\('cpu'\)",
    ):
        plugrad.load(file)
    file.seek(0)
    loaded = plugrad.load(file, map_location=plugrad.device("cpu"))["weight"]
    assert (loaded.tolist(), loaded.requires_grad, loaded.is_leaf) == ([1.0, 1.0], True, True)

    class Fewer(Swift):
        def device_count(self) -> int:
            return 1

    activate_backend(Fewer("swift"))
    try:
        file.seek(0)
        with pytest.raises(
            RuntimeError, match="deserialize object on device swift:2 but: device index 2 is out"
        ):
            plugrad.load(file)
    finally:
        deactivate_backend("swift")


def test_data_loader_pins_what_a_device_shall_read() -> None:
    data = TensorDataset(plugrad.ones(4, 2), plugrad.zeros(4))
    with pytest.warns(UserWarning, match="'pin_memory' argument is set as true but no accelerator"):
        batches = list(DataLoader(data, batch_size=2, pin_memory=True))
    assert [x.is_pinned() for batch in batches for x in batch] == [False] * 4
    activate_backend(Swift("swift"))
    try:
        with plugrad.device("swift"), warnings.catch_warnings():
            warnings.simplefilter("error")
            loader = DataLoader(
                data,
                batch_size=2,
                collate_fn=lambda samples: {
                    "x": [plugrad.stack([x for x, _ in samples])],
                    "name": "batch",
                },
                pin_memory=True,
            )
            batches = list(loader)
        assert [batch["name"] for batch in batches] == ["batch", "batch"]
        assert all(batch["x"][0].is_pinned() for batch in batches)
        assert batches[0]["x"][0].to("swift:1", non_blocking=True).tolist() == [[1.0, 1.0]] * 2
    finally:
        deactivate_backend("swift")
