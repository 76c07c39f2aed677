"""What is said of a backend that does not keep the contract: who, what is expected, what came."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad.dispatch.backends.active import activate_backend, deactivate_backend
from plugrad.errors import BackendNotFoundError
from plugrad.plugins import Backend


class Box:
    """An array that is no NumPy array."""

    def __init__(self, data: Any) -> None:
        self.data = np.asarray(data)
        self.shape, self.dtype = self.data.shape, self.data.dtype


class BoxBackend(Backend):
    """Arrays in boxes; a test gives it what is wrong."""

    def __init__(self, kernels: Any = None, **options: Any) -> None:
        super().__init__("box", array_type=Box, **options)
        self.given = {} if kernels is None else kernels

    def kernels(self) -> Any:
        return self.given

    def from_host(self, array: Any, index: int) -> Any:
        return Box(array.copy())

    def to_host(self, array: Any) -> Any:
        return array.data.copy()


@contextmanager
def active(backend: Backend) -> Iterator[None]:
    activate_backend(backend)
    try:
        yield
    finally:
        deactivate_backend(backend.name)


@pytest.mark.parametrize(
    ("operator", "kernel", "call"),
    [
        ("exp", lambda a: np.exp(a.data), lambda x: x.exp()),
        ("add", lambda a, b: a.data + b.data, lambda x: x + x),
        ("sum", lambda a, dims, keepdim, dtype: a.data.sum(), lambda x: x.sum()),
    ],
)
def test_a_kernel_that_returns_no_array_is_named(
    operator: str, kernel: Callable[..., Any], call: Callable[[Any], Any]
) -> None:
    message = (
        rf"the kernel of backend 'box' for 'plugrad::{operator}[.\w]*' returned no array: expected "
        r".*\.Box, got numpy\.\w+; .* override as_array\(value\)"
    )
    with active(BoxBackend({operator: kernel})):
        x = plugrad.ones(2, device="box")
        with pytest.raises(TypeError, match=message):
            call(x)


def test_a_subclass_of_the_array_type_is_an_array() -> None:
    class Bigger(Box):
        pass

    with active(BoxBackend({"exp": lambda a: Bigger(np.exp(a.data))})):
        assert plugrad.zeros(2, device="box").exp().tolist() == [1.0, 1.0]


def test_conversions_that_give_something_else_are_named() -> None:
    class Unfinished(Backend):
        def __init__(self) -> None:
            super().__init__("box", array_type=Box)

    message = r"from_host\(\) of backend 'box' must return .*\.Box"
    with active(Unfinished()), pytest.raises(TypeError, match=message):
        plugrad.tensor([1.0], device="box")

    class Lists(BoxBackend):
        def to_host(self, array: Any) -> Any:
            return array.data.tolist()

    with active(Lists()):
        x = plugrad.tensor([1.0], device="box")
        for convert in (lambda: x.cpu(), lambda: x.tolist(), lambda: repr(x)):
            with pytest.raises(TypeError, match=r"to_host\(\) of backend 'box' .*, got list"):
                convert()


def test_kernels_of_no_known_form_name_the_backend() -> None:
    with pytest.raises(TypeError, match=r"kernels\(\) of backend 'box': .*callable, got int"):
        activate_backend(BoxBackend({"exp": 3}))
    with pytest.raises(TypeError, match=r"kernels\(\) of backend 'box': .*as a mapping.* got int"):
        activate_backend(BoxBackend(3))


def test_names_that_cannot_be_are_refused() -> None:
    with pytest.raises(ValueError, match=r"a backend's name must be an identifier.* got 'my lib'"):
        activate_backend(Backend("my lib", array_type=Box))
    with pytest.raises(ValueError, match=r"a backend's key_name must be an identifier.* got 'A b'"):
        activate_backend(BoxBackend(key_name="A b"))


def test_a_fallback_that_is_not_installed_is_named_with_the_backend_that_has_it() -> None:
    with active(BoxBackend(fallback="hots")):
        x = plugrad.ones(2, device="box")
        message = "backend 'box' has fallback = 'hots'. No backend named 'hots'"
        with pytest.raises(BackendNotFoundError, match=message):
            x.exp()
