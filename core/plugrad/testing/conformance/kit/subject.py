"""The backend under test: what it declares, and tensors on its devices."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, NoReturn

import numpy as np
import pytest

import plugrad
from plugrad.dispatch.backends.active import ActiveBackend, canonical_device, find_backend
from plugrad.dispatch.backends.availability import Availability, all_availability
from plugrad.dispatch.backends.kernel_sources import Brought
from plugrad.dispatch.operator import Operator, all_operators
from plugrad.plugins import get_manager
from plugrad.testing.cases import Arguments

# In PyTorch's order of preference: the first one that the backend has is what values are tried in.
_FLOATING: Final = ("float64", "float32", "bfloat16", "float16")
_COMPLEX: Final = ("complex128", "complex64")


class Subject:
    """A backend that is tested.

    Attributes:
        dtypes: names of the dtypes that it has.
        floating, complex: the widest dtype of the kind that it has, None if there is none.
        devices: all of them.
        device: the first one.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.active: ActiveBackend = find_backend(name)
        self.backend: Any = self.active.backend
        self.dtypes: tuple[str, ...] = tuple(dtype.name for dtype in self.backend.dtypes())
        self.floating = _first(_FLOATING, self.dtypes) or "float32"
        self.complex = _first(_COMPLEX, self.dtypes)
        self.capabilities: frozenset[str] = self.backend.capabilities()
        self.devices: list[Any] = [
            self.active.device(index) for index in range(self.backend.device_count())
        ]
        self.device: Any = self.devices[0] if self.devices else self.active.device(None)
        self.without_fallback()

    def __repr__(self) -> str:
        return self.name

    def without_fallback(self) -> None:
        """What the host computes in the backend's place is not a property of the backend."""
        if self.active.fallback:
            self.active.fallback = ""
            for op in all_operators():
                op.forget_resolved()

    def synchronize(self) -> None:
        """Wait until all devices have finished their work, and raise the errors that they found."""
        for device in self.devices:
            self.backend.synchronize(device.index or 0)

    @functools.cached_property
    def availability(self) -> dict[str, Availability]:
        """How the backend computes each operator, by qualified name."""
        return all_availability(self.active)

    @functools.cached_property
    def foreign(self) -> frozenset[str]:
        """The namespaces of operators that plugins of other distributions define: what becomes of
        those on the backend is not a property of it."""
        manager = get_manager()
        plugins = [plugin for plugin in manager.load_all() if plugin.is_usable]
        own = {
            plugin.distribution or plugin.name for plugin in plugins if self.name in plugin.backends
        }
        return frozenset(
            namespace
            for plugin in plugins
            if (plugin.distribution or plugin.name) not in own
            for namespace in manager.operator_namespaces(plugin)
        ) - {"plugrad"}

    def has(self, *operators: str) -> bool:
        """Whether the backend can compute all these operators."""
        return not any(
            name in self.availability and not self.availability[name] for name in operators
        )

    def needs(self, *operators: str) -> None:
        """Skip the test if the backend has not all of these operators."""
        for name in operators:
            qualified = name if "::" in name else f"plugrad::{name}"
            if not self.has(qualified):
                skip(f"missing: {qualified}")

    def needs_capability(self, word: str) -> None:
        """Skip the test if the backend lacks a capability."""
        if word not in self.capabilities:
            skip(f"the backend has no capability {word!r}")

    def tensor(self, values: Any, dtype: str | None = None, device: Any = None) -> Any:
        """A tensor of the backend."""
        wanted = getattr(plugrad, dtype or self.floating)
        host = plugrad.from_numpy(np.array(values, dtype=wanted.numpy, order="C"))
        return host.to(device or self.device)

    def random(self, *shape: int, seed: int = 0, device: Any = None) -> Any:
        """Floating point numbers in [-1, 1)."""
        return self.tensor(np.random.default_rng(seed).uniform(-1, 1, shape), device=device)


@contextmanager
def by_own_kernels() -> Iterator[None]:
    """In the block the CPU reference computes with its own kernels if it has them, whatever is
    preferred. Otherwise other packages' kernels would be compared with themselves."""
    active = find_backend("cpu")
    sources = active.sources
    brought, chosen, conflict = sources.brought, sources.chosen, sources.conflict
    if not chosen and not any(each.preferred for each in brought):
        yield
        return
    tables = {each.owner: each.table for each in brought}
    own_first = [Brought(each.owner, each.table) for each in brought]
    concerned = _operators_of(active, [each.table for each in brought])
    sources.settle(own_first, {}, lambda name, owners: tables[owners[0]][name])
    _forget(concerned)
    try:
        yield
    finally:
        sources.settle(brought, chosen, conflict)
        _forget(concerned)


def _operators_of(active: ActiveBackend, tables: list[dict[str, Any]]) -> list[Operator]:
    """The operators that tables have kernels for and the backend too; all of them where `mul` is
    among these, which other operators' kernels keep for factors."""
    names = {name.partition(".")[0] for table in tables for name in table}
    if "mul" in names:
        return all_operators()
    return [
        op
        for op in all_operators()
        if op.kernel_name in names and len(active.sources.claims(op.kernel_name, op.overload)) > 1
    ]


def _forget(operators: list[Operator]) -> None:
    for op in operators:
        op.forget_resolved()


class DeviceArguments(Arguments):
    """Arguments on a device; their layout is made there, by views."""

    def __init__(self, dtype: str, seed: int, device: Any, *, overlapping: bool = True) -> None:
        super().__init__(dtype, seed, overlapping=overlapping)
        self.device = canonical_device(device)

    def tensor_of(self, values: np.ndarray[Any, Any], layout: str) -> Any:
        flat = layout == "contiguous" or values.size == 0 or values.ndim == 0
        if flat or (layout == "transposed" and values.ndim < 2):
            return self._moved(values)
        if layout == "transposed":
            return self._moved(np.swapaxes(values, -1, -2)).transpose(-1, -2).detach()
        if layout == "expanded":
            return self._moved(values[:1]).expand(values.shape).detach()
        room = np.zeros((*values.shape[:-1], values.shape[-1] * 2), dtype=values.dtype)
        room[..., ::2] = values
        return self._moved(room)[..., ::2].detach()

    def _moved(self, values: np.ndarray[Any, Any]) -> Any:
        return plugrad.from_numpy(np.array(values, order="C")).to(self.device)


def skip(reason: str) -> NoReturn:
    """Skip the test, and say why in the certificate."""
    pytest.skip(reason)


def _first(wanted: tuple[str, ...], having: tuple[str, ...]) -> str | None:
    return next((name for name in wanted if name in having), None)
