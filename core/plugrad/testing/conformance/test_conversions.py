"""Conversions: to the device and back, Python numbers, NumPy, other dtypes, pickle, deepcopy."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad.dispatch.backends.active import canonical_device
from plugrad.testing.conformance.kit.compare import assert_matches, on_host
from plugrad.testing.conformance.kit.matrix import Item, each, in_dtypes, on_devices
from plugrad.testing.conformance.kit.subject import Subject
from plugrad.testing.conformance.kit.trials import Selection

SHAPES = ((), (0,), (1,), (2, 3), (2, 0, 3), (2, 1, 3, 2))


def values(dtype: str, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Numbers that every dtype of the kind can hold."""
    count = int(np.prod(shape, dtype=int))
    wanted = getattr(plugrad, dtype)
    numbers = np.arange(count) % 7
    if wanted.is_complex:
        return np.asarray((numbers - 1j * numbers).astype(wanted.numpy).reshape(shape))
    return np.asarray(numbers.astype(wanted.numpy).reshape(shape))


def pairs_of_dtypes(subject: Subject, selection: Selection) -> list[Item]:
    return [
        Item(f"{source}-{target}", (source, target))
        for source in subject.dtypes
        for target in subject.dtypes
    ]


@each("dtype", in_dtypes)
def test_there_and_back(subject: Subject, dtype: str) -> None:
    for shape in SHAPES:
        host = plugrad.from_numpy(values(dtype, shape))
        moved = host.to(subject.device)
        assert_matches(subject, moved, host)
        back = moved.cpu()
        assert back.device.type == "cpu"
        assert back.dtype is host.dtype
        np.testing.assert_array_equal(back.numpy(), host.numpy())


@each("dtype", in_dtypes)
def test_python_numbers(subject: Subject, dtype: str) -> None:
    for shape in SHAPES:
        host = plugrad.from_numpy(values(dtype, shape))
        moved = host.to(subject.device)
        assert moved.tolist() == host.tolist()
        if host.numel() == 1:
            assert moved.item() == host.item()
            assert type(moved.item()) is type(host.item())
            assert bool(moved) is bool(host)


@each("dtype", in_dtypes)
def test_numpy(subject: Subject, dtype: str) -> None:
    array = values(dtype, (2, 3))
    moved = plugrad.tensor(array, device=subject.device)
    np.testing.assert_array_equal(moved.numpy(force=True), array)
    if subject.name != "cpu":
        with pytest.raises(TypeError, match="device type tensor to numpy"):
            moved.numpy()


@each("dtype", in_dtypes)
def test_the_native_dtype_is_the_arrays(subject: Subject, dtype: str) -> None:
    wanted = getattr(plugrad, dtype)
    array = subject.tensor(values(dtype, (2,)), dtype).array
    assert subject.backend.dtype_of(array) is wanted
    again = subject.backend.from_host(subject.backend.to_host(array), 0)
    assert subject.backend.dtype_of(again) is wanted


@each("dtypes", pairs_of_dtypes)
def test_casts(subject: Subject, dtypes: tuple[str, str]) -> None:
    source, target = dtypes
    host = plugrad.from_numpy(values(source, (2, 3)))
    wanted = getattr(plugrad, target)
    assert_matches(subject, host.to(subject.device).to(wanted), host.to(wanted))


def test_a_copy_on_the_device_is_a_copy(subject: Subject) -> None:
    """What is written on one device is not seen on another."""
    subject.needs("add_.Scalar")
    if subject.name == "cpu":
        return
    host = plugrad.tensor([1.0, 2.0])
    moved = host.to(subject.device)
    host.add_(1)
    assert on_host(moved).tolist() == [1.0, 2.0], "from_host() shares the host's memory"
    back = moved.cpu()
    moved.add_(5)
    assert back.tolist() == [1.0, 2.0], "to_host() shares the device's memory"
    back = moved.cpu()
    back.add_(1)
    assert on_host(moved).tolist() == [6.0, 7.0], "to_host() shares the device's memory"


def test_tensor_copies_its_data(subject: Subject) -> None:
    array = np.array([1.0, 2.0], dtype=getattr(plugrad, subject.floating).numpy)
    made = plugrad.tensor(array, device=subject.device)
    array[0] = 9
    assert on_host(made).tolist() == [1.0, 2.0]


def test_arrays_in_any_layout_come_over(subject: Subject) -> None:
    base = np.arange(24.0, dtype=getattr(plugrad, subject.floating).numpy).reshape(2, 3, 4)
    for array in (base.T, base[:, ::2], base[1:, :, 1], np.broadcast_to(base[:1], (2, 3, 4))):
        moved = plugrad.from_numpy(np.array(array)).to(subject.device)
        np.testing.assert_array_equal(on_host(moved), array)
        raw = subject.backend.from_host(array, 0)
        np.testing.assert_array_equal(np.asarray(subject.backend.to_host(raw)), array)


@each("device", on_devices)
def test_devices_are_told_apart(subject: Subject, device: Any) -> None:
    made = plugrad.zeros(2, device=device)
    assert made.device == canonical_device(device)
    for other in subject.devices:
        moved = made.to(other)
        assert moved.device == canonical_device(other)
        assert on_host(moved).tolist() == [0.0, 0.0]
    computed = made + 1
    assert computed.device == canonical_device(device)


def test_gradients_flow_between_devices(subject: Subject) -> None:
    x = plugrad.tensor([1.0, 2.0], requires_grad=True)
    y = x.to(subject.device) * 2
    y.cpu().sum().backward()
    assert x.grad is not None
    assert x.grad.device.type == "cpu"
    assert x.grad.tolist() == [2.0, 2.0]


def test_pickle(subject: Subject) -> None:
    x = subject.tensor([[1.0, 2.0]]).requires_grad_()
    again = pickle.loads(pickle.dumps(x))
    assert again.requires_grad
    assert_matches(subject, again.detach(), x.detach())
    assert again.device == x.device


def test_deepcopy_has_memory_of_its_own(subject: Subject) -> None:
    subject.needs("add_.Scalar")
    x = subject.tensor([1.0, 2.0])
    again = copy.deepcopy(x)
    x.add_(1)
    assert again.device == x.device
    assert on_host(again).tolist() == [1.0, 2.0]


def test_numbers_that_are_not_finite(subject: Subject) -> None:
    numbers = [float("nan"), float("inf"), float("-inf"), -0.0]
    back = subject.tensor(numbers).cpu().numpy()
    np.testing.assert_array_equal(back, np.array(numbers, dtype=back.dtype))
    assert np.signbit(back).tolist() == np.signbit(numbers).tolist()


def test_limits_of_integers(subject: Subject) -> None:
    for name in subject.dtypes:
        dtype = getattr(plugrad, name)
        if not dtype.is_differentiable and name != "bool":
            limits = plugrad.iinfo(dtype)
            assert subject.tensor([limits.min, limits.max], name).tolist() == [
                limits.min,
                limits.max,
            ]
