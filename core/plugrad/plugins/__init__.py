"""Plugins: everything that a backend or operator plugin needs, and how the process finds them.

Importing this module is cheap: it reads pluggy, the metadata of the installed distributions and the
plugins only on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plugrad.device import set_accelerator_source
from plugrad.dispatch.backends.active import (
    ActiveBackend,
    set_activation_hooks,
    set_backend_loader,
    set_default_device_source,
)
from plugrad.dispatch.backends.api_version import API_VERSION
from plugrad.dispatch.backends.backend import Backend, DeviceQueue, set_namespace_backend
from plugrad.dispatch.backends.kernel_context import InContext
from plugrad.dispatch.backends.kernel_table import (
    joined_tables,
    kernel,
    kernel_table,
    package_kernels,
)
from plugrad.dispatch.backends.variants import Variant
from plugrad.dispatch.operator import Operator
from plugrad.dispatch.plugin_hooks import set_operator_loader, set_registration_listener
from plugrad.errors import (
    BackendNotFoundError,
    HostFallbackWarning,
    OperatorNotFoundError,
    PluginConflictError,
    PluginDeprecationWarning,
    PluginError,
    PluginWarning,
)
from plugrad.plugins import namespaces, selection
from plugrad.plugins.config_hooks import set_configuration_hooks
from plugrad.plugins.loading.process import get_manager
from plugrad.plugins.namespaces import claimed_names, load_namespace

if TYPE_CHECKING:
    from plugrad.dispatch.backends.links import Link, Operand
    from plugrad.plugins.array_namespace import ArrayNamespaceBackend
    from plugrad.plugins.hookspecs import hookimpl
    from plugrad.plugins.operators import load_operators
    from plugrad.plugins.protocols import Array, CapturedStep, Generator, Kernel, KernelSource

__all__ = [
    "API_VERSION",
    "Array",
    "ArrayNamespaceBackend",
    "Backend",
    "BackendNotFoundError",
    "CapturedStep",
    "DeviceQueue",
    "Generator",
    "HostFallbackWarning",
    "InContext",
    "Kernel",
    "KernelSource",
    "Link",
    "Operand",
    "OperatorNotFoundError",
    "PluginConflictError",
    "PluginDeprecationWarning",
    "PluginError",
    "PluginWarning",
    "Variant",
    "get_manager",
    "hookimpl",
    "joined_tables",
    "kernel",
    "kernel_table",
    "claimed_names",
    "load_namespace",
    "load_operators",
    "package_kernels",
]

# Loaded on first use: most processes never need them.
_LAZY: Final = {
    "ArrayNamespaceBackend": "plugrad.plugins.array_namespace",
    "hookimpl": "plugrad.plugins.hookspecs",
    "load_operators": "plugrad.plugins.operators",
    **dict.fromkeys(("Link", "Operand"), "plugrad.dispatch.backends.links"),
    **dict.fromkeys(
        ("Array", "CapturedStep", "Generator", "Kernel", "KernelSource"),
        "plugrad.plugins.protocols",
    ),
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        import importlib

        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _load_backend(name: str) -> Backend:
    from plugrad.plugins.activation import load_backend

    return load_backend(name)


def _configure(backend: Backend) -> None:
    from plugrad.plugins.activation import configure

    configure(backend)


def _complete(active: ActiveBackend) -> None:
    from plugrad.plugins.activation import complete

    complete(active)


def _configuration_changed() -> None:
    from plugrad.plugins.activation import configuration_changed

    configuration_changed()


def _note(made: Any) -> None:
    from plugrad.plugins.loading.registrations import REGISTRATIONS

    REGISTRATIONS.note(made)


def _check_replaceable(op: Operator) -> None:
    from plugrad.plugins.loading.registrations import REGISTRATIONS

    REGISTRATIONS.check_replaceable(op)


def _maker(name: str) -> str:
    return get_manager().maker_of(name)


def _load_operators(namespace: str) -> None:
    get_manager().load_operators(namespace)


def _loadable_namespaces() -> list[str]:
    return get_manager().loadable_namespaces()


def _namespace_backend(xp: Any, name: str | None, options: dict[str, Any]) -> Backend:
    from plugrad.plugins.array_namespace import ArrayNamespaceBackend

    return ArrayNamespaceBackend(xp, name, **options)


set_backend_loader(_load_backend)
set_namespace_backend(_namespace_backend)
set_activation_hooks(_configure, _complete)
set_configuration_hooks(_configuration_changed, selection.forget_choice)
set_operator_loader(_load_operators, _loadable_namespaces)
set_default_device_source(selection.default_device)
set_accelerator_source(selection.accelerator)
namespaces.install()
set_registration_listener(_note, _check_replaceable, _maker)
