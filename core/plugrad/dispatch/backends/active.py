"""The backends that are active in this process, and what the core stores for each."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final, final

import numpy as np
from mypy_extensions import i64

from plugrad.device import CPU, Device, as_device
from plugrad.dispatch.backends.api_version import check_api_version
from plugrad.dispatch.backends.backend import Backend, DeviceQueue, class_name
from plugrad.dispatch.backends.candidates import Candidate, last_of
from plugrad.dispatch.backends.kernel_sources import Brought, KernelSources
from plugrad.dispatch.backends.kernel_table import check_names, kernel_table, unknown_names
from plugrad.dispatch.backends.streams import STREAMS, DeviceStreams, has_streams
from plugrad.dispatch.keys import (
    FUNCTIONALIZE_BIT,
    DispatchKey,
    dispatch_key,
    register_backend_key,
    retire_backend_key,
    tensor_keyset,
)
from plugrad.errors import BackendNotFoundError, PluginError


@final
class ActiveBackend:
    """A backend and what the core stores for it: its bits, kernels, generators and queues."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.name = backend.name
        # What a device without an index is, if there is but one.
        self.only: Device = as_device(self.name)
        self.array_type: Any = backend.array_type
        self.key_name: str = backend.key_name or backend.name.capitalize()
        self.fallback: str = backend.fallback or ""
        self.number = register_backend_key(backend.name, backend.key_name)
        self.tensor_keyset: i64 = tensor_keyset(self.number)
        if not backend.mutable:
            self.tensor_keyset |= FUNCTIONALIZE_BIT
        try:
            self.own_kernels: dict[str, Any] = kernel_table(backend.kernels())
        except TypeError as error:
            raise TypeError(f"kernels() of backend {backend.name!r}: {error}") from error
        self.check_names(self.own_kernels, f"backend {backend.name!r}")
        self.sources = KernelSources(self.own_kernels, f"backend {backend.name!r}", backend)
        self.generators: dict[int, Any] = {}
        self.queues: dict[int, DeviceQueue] = {}
        self.streams: bool = has_streams(backend)

    def raw_kernel(self, name: str, overload: str) -> Any:
        """What computes an operator on arrays; under its full name, else its base name, else None.

        It may return `NotImplemented`, and so decline.
        """
        return self.sources.raw(name, overload)

    def candidates(self, name: str, overload: str) -> list[Candidate]:
        """The kernels of an operator, in the order in which they are tried."""
        return self.sources.candidates(name, overload)

    @property
    def kernels(self) -> dict[str, Any]:
        """The kernels that are used, by the names that they were given under."""
        found = dict(self.own_kernels)
        for brought in reversed(self.sources.brought):
            for name, kernel in brought.table.items():
                if brought.preferred or name not in found:
                    found[name] = kernel
        return found

    @property
    def added_kernels(self) -> dict[str, dict[str, Any]]:
        """What others provide, by owner."""
        return {brought.owner: brought.table for brought in self.sources.brought}

    def set_fallback(self, name: str) -> None:
        """Have another backend compute what this one cannot, from now on; "" for none."""
        if name != self.fallback:
            self.fallback = name
            _tell_change()

    def add_kernels(self, source: Any, owner: str) -> None:
        """Take kernels of another package, for operators of any namespace.

        Args:
            source: as `kernel_table` takes it.
            owner: the provider, in words for an error message.

        Raises:
            PluginError: the backend, or another owner, has a kernel of that name; nothing is taken.
        """
        added = kernel_table(source)
        self.check_names(added, owner)
        here = self.sources
        for name in added:
            others = [each.owner for each in here.brought if name in each.table]
            if name in self.own_kernels or others:
                own = name in self.own_kernels
                other = f"the backend {self.name!r} itself" if own else others[0]
                raise PluginError(
                    f"{owner} and {other} both have a kernel for {name!r} on backend "
                    f"{self.name!r}: uninstall or disable one of them"
                )
        before = [each for each in here.brought if each.owner == owner]
        table = {**before[0].table, **added} if before else added
        rest = [each for each in here.brought if each.owner != owner]
        self.settle_kernels([*rest, Brought(owner, table)], here.chosen, here.conflict)

    def remove_kernels(self, owner: str) -> None:
        """Remove the kernels that an owner provided."""
        here = self.sources
        rest = [each for each in here.brought if each.owner != owner]
        self.settle_kernels(rest, here.chosen, here.conflict)

    def settle_kernels(
        self,
        brought: list[Brought],
        chosen: dict[str, str],
        conflict: Callable[[str, list[str]], Any] | None,
        features: Mapping[str, bool] | None = None,
    ) -> None:
        """In one step, replace the kernels from other packages, and set which package's kernel
        comes first for which operators: see `KernelSources`. Without `features`, variants may use
        the same features as before."""
        if self.sources.settle(brought, chosen, conflict, features):
            _tell_change()

    def check_names(self, table: Mapping[str, Any], whose: str) -> None:
        """PluginError if a kernel has a name that is not an operator's."""
        if _hooks.operator_names is not None:
            check_names(table, _hooks.operator_names(), whose)

    def unknown_names(self, table: Mapping[str, Any]) -> dict[str, str]:
        """The names of kernels without an operator of that name, each with a message."""
        if _hooks.operator_names is None:
            return {}
        return unknown_names(table, _hooks.operator_names())

    def generator(self, index: int) -> Any:
        """The device's default generator; the CPU's, if the backend draws no random numbers."""
        found = self.generators.get(index)
        if found is None:
            if self.name != CPU.type and "random" not in self.backend.capabilities():
                return find_backend(CPU.type).generator(0)
            made = self.new_generator(index)
            if _seed.value is not None:
                made.manual_seed(_seed.value)
            found = self.generators.setdefault(index, made)
        return found

    def new_generator(self, index: int) -> Any:
        """A random generator of the backend's with the device as its attribute `device`."""
        made = self.backend.make_generator(index)
        with contextlib.suppress(AttributeError):  # a class without room for it
            made.device = self.device(index)
        return made

    def queue(self, index: int) -> DeviceQueue:
        found = self.queues.get(index)
        if found is None:
            found = self.queues.setdefault(index, self.backend.make_queue(index))
        return found

    def from_host(self, array: Any, index: int) -> Any:
        """The backend's array of NumPy's; TypeError if the backend gives something else."""
        return self._checked(self.backend.from_host(array, index), "from_host")

    def copy_from_host(self, array: Any, index: int, non_blocking: bool) -> Any:
        """The same, in memory of its own."""
        found = self.backend.copy_from_host(array, index, non_blocking)
        return self._checked(found, "copy_from_host")

    def copy_to_device(self, array: Any, index: int, non_blocking: bool) -> Any:
        """The backend's array on another of its devices."""
        found = self.backend.copy_to_device(array, index, non_blocking)
        return self._checked(found, "copy_to_device")

    def _checked(self, found: Any, method: str) -> Any:
        if type(found) is not self.array_type and not isinstance(found, self.array_type):
            raise TypeError(
                f"{method}() of backend {self.name!r} must return "
                f"{class_name(self.array_type)}, its array_type, got {class_name(type(found))}"
            )
        return found

    def to_host(self, array: Any) -> Any:
        """NumPy's array of the backend's; TypeError if the backend gives something else."""
        return self._checked_host(self.backend.to_host(array), "to_host")

    def copy_to_host(self, array: Any, non_blocking: bool) -> Any:
        """The same, in memory of its own."""
        return self._checked_host(self.backend.copy_to_host(array, non_blocking), "copy_to_host")

    def _checked_host(self, found: Any, method: str) -> Any:
        # NumPy makes a new interface object whenever it is read.
        if type(found) is not np.ndarray and not hasattr(found, "__array_interface__"):
            raise TypeError(
                f"{method}() of backend {self.name!r} must return a NumPy array, got "
                f"{class_name(type(found))}"
            )
        return found

    def taken(self, value: Any, operator: str) -> Any:
        """A kernel's result as an array of the `array_type`, converted if necessary.

        Raises:
            TypeError: it is not an array; the message names the operator and the kernel's package.
        """
        if type(value) is self.array_type:
            return value
        wanted = class_name(self.array_type)
        if value is None:
            raise self.returned(operator, f"no array: expected {wanted}, got None")
        try:
            # It may replace an array, like JAX's tracers.
            return self.backend.as_array(value)
        except TypeError as error:
            raise self.returned(operator, f"no array: {error}") from error

    def returned(self, operator: str, what: str) -> TypeError:
        """The error about a kernel's result; it names the kernel's package."""
        return TypeError(f"{self.kernels_of(operator)} for {operator!r} returned {what}")

    def kernels_of(self, operator: str) -> str:
        """A description of the kernel that computes the operator with this name, or did so last."""
        name, _, overload = operator.removeprefix("plugrad::").partition(".")
        raw = self.raw_kernel(name, overload)
        found = self.candidates(name, overload)
        ran = last_of(raw, found)
        if ran is None or ran.own:
            return f"the kernel of backend {self.name!r}"
        return f"the kernel of {ran.owner} on backend {self.name!r}"

    def device(self, index: int | None) -> Device:
        """The canonical device: without an index if the backend has but one device.

        Raises:
            RuntimeError: there is no such device, or none at all.
        """
        count = self.backend.device_count()
        if count == 1 and (index is None or index == 0):
            return self.only
        if count == 0:
            why = self.backend.problem() or "it found none"
            raise RuntimeError(f"backend {self.name!r} has no device: {why}")
        chosen = self.backend.current_device() if index is None else index
        if chosen >= count:
            raise RuntimeError(
                f"device index {chosen} is out of range: backend {self.name!r} has "
                f"{count} device{'s' if count != 1 else ''}"
            )
        return as_device(self.name, chosen)


@final
class _Hooks:
    """Set by the plugin layer above: how to find backends, and the default device."""

    def __init__(self) -> None:
        self.loader: Callable[[str], Backend | None] | None = None
        self.default_device: Callable[[], Device] | None = None
        self.on_change: Callable[[], None] | None = None
        self.configure: Callable[[Backend], None] | None = None
        self.complete: Callable[[ActiveBackend], None] | None = None
        self.operator_names: Callable[[], set[str]] | None = None
        self.own: dict[str, Backend] = {}


@final
class _Seed:
    """The seed for generators that are yet to be made."""

    def __init__(self) -> None:
        self.value: int | None = None


_hooks: Final = _Hooks()
_seed: Final = _Seed()
_active: Final[dict[str, ActiveBackend]] = {}
_lock: Final[Any] = threading.RLock()


def set_backend_loader(loader: Callable[[str], Backend | None] | None) -> None:
    """`loader(name)` is called for a backend that is not active yet; it returns None or raises."""
    _hooks.loader = loader


def set_default_device_source(source: Callable[[], Device] | None) -> None:
    """`source()` returns the device of tensors that are created without naming one."""
    _hooks.default_device = source


def set_change_listener(listener: Callable[[], None]) -> None:
    """`listener()` is called when a backend was added or removed: resolved kernels are then
    stale."""
    _hooks.on_change = listener


def set_activation_hooks(
    configure: Callable[[Backend], None] | None, complete: Callable[[ActiveBackend], None] | None
) -> None:
    """Call `configure(backend)` before the kernels of a backend are read, and `complete(active)`
    before and after it is registered, possibly more than once."""
    _hooks.configure = configure
    _hooks.complete = complete


def set_operator_names(names: Callable[[], set[str]]) -> None:
    """`names()` gives the core's operators, with and without overload: what kernels are called."""
    _hooks.operator_names = names


def set_own_backend(backend: Backend) -> None:
    """Have a backend that is part of the core, and becomes active when it is first requested."""
    _hooks.own[backend.name] = backend


def _tell_change() -> None:
    if _hooks.on_change is not None:
        _hooks.on_change()


def activate_backend(backend: Backend) -> ActiveBackend:
    """Register a backend: assign its dispatch bits and register its kernels.

    Raises:
        TypeError: `backend` is not a Backend.
        ValueError: its name is not an identifier, or belongs to another active backend.
        PluginError: it was written for a version of the contract that does not fit.
    """
    if not isinstance(backend, Backend):
        raise TypeError(
            f"activate_backend(): expected a plugrad.plugins.Backend, got {type(backend).__name__}"
        )
    check_name(backend)
    check_api_version(backend.api_version, f"backend {backend.name!r}")
    known = _known(backend)
    if known is not None:
        return known
    # Not under the lock: plugins may import modules here, and another thread may hold an import
    # lock while it waits for this lock.
    if _hooks.configure is not None:
        _hooks.configure(backend)
    active = ActiveBackend(backend)
    if _hooks.complete is not None:
        _hooks.complete(active)
    with _lock:
        known = _known(backend)
        if known is not None:
            return known
        _active[backend.name] = active
        _look_for_streams()
    _tell_change()
    if _hooks.complete is not None:
        _hooks.complete(active)  # for what came between
    return active


def check_name(backend: Backend) -> None:
    """ValueError if a backend's name, or its key's name, is not valid."""
    for what, name, example in (
        ("name", backend.name, "'foo' for device=\"foo\""),
        ("key_name", backend.key_name or "Key", "'Foo'"),
    ):
        if not isinstance(name, str) or not name.isidentifier():
            raise ValueError(
                f"a backend's {what} must be an identifier, such as {example}, got {name!r}"
            )


def _known(backend: Backend) -> ActiveBackend | None:
    """The backend, if it is active; ValueError if its name belongs to another active one."""
    known = _active.get(backend.name)
    if known is not None and known.backend is not backend:
        raise ValueError(f"a backend named {backend.name!r} is active already")
    return known


def deactivate_backend(name: str) -> None:
    """Remove an active backend; its dispatch bits are reused only when no others are free."""
    with _lock:
        if _active.pop(name, None) is not None:
            retire_backend_key(name)
        _look_for_streams()
    _tell_change()


def _look_for_streams() -> None:
    STREAMS.forget(any(active.streams for active in _active.values()))


def active_backends() -> list[ActiveBackend]:
    return list(_active.values())


def is_active(name: str) -> bool:
    """Whether a device type has an active backend; loads none."""
    return name in _active


def find_backend(name: str) -> ActiveBackend:
    """The active backend of a device type; loads it if an installed plugin provides it.

    Raises:
        BackendNotFoundError: no plugin provides it; the message says what to install.
    """
    found = _active.get(name)
    if found is not None:
        return found
    own = _hooks.own.get(name)
    if own is not None:
        return activate_backend(own)
    loaded = None if _hooks.loader is None else _hooks.loader(name)
    if loaded is None:
        raise BackendNotFoundError(
            f"no backend named {name!r} is active; active: {', '.join(_active) or 'none'}"
        )
    return activate_backend(loaded)


def find_key(name: str) -> DispatchKey:
    """The dispatch key of that name; a backend that is installed but not active is loaded for it.

    Raises:
        ValueError: there is no such key.
    """
    try:
        return dispatch_key(name)
    except ValueError:
        with contextlib.suppress(BackendNotFoundError):
            find_backend(name.removeprefix("Autograd").removeprefix("Autocast").lower())
        return dispatch_key(name)


def backend_by_number(number: int) -> ActiveBackend | None:
    """The active backend with the dispatch bit `number`."""
    for active in list(_active.values()):
        if active.number == number:
            return active
    return None


def default_device() -> Device:
    """The device of tensors that are made without naming one."""
    if _hooks.default_device is None:
        return CPU
    return canonical_device(_hooks.default_device())


def canonical_device(device: object) -> Device:
    """A device with a loaded backend and a valid index; None means the default."""
    if device is None:
        return default_device()
    if device is CPU and "cpu" in _active:
        return CPU
    wanted = as_device(device)
    return find_backend(wanted.type).device(wanted.index)


def generator_of(device: Device) -> Any:
    """The default random generator of a device."""
    return find_backend(device.type).generator(device.index or 0)


def queue_of(device: Device) -> DeviceQueue:
    """The queue of a device."""
    return find_backend(device.type).queue(device.index or 0)


def streams_of(device: Device) -> DeviceStreams | None:
    """The streams of a device; None if it works in a single order."""
    if device.is_host:
        return None
    known = STREAMS.devices
    if device in known:
        return known[device]
    active = find_backend(device.type)
    found = DeviceStreams(active.backend, device.index or 0) if active.streams else None
    return known.setdefault(device, found)  # another thread may have been faster


def seed_everything(seed: int) -> None:
    """Seed the default generator of every device that is active, and of those that become so."""
    _seed.value = seed
    for active in active_backends():
        for generator in list(active.generators.values()):
            generator.manual_seed(seed)
