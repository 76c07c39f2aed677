"""A plugin: its origin, what it provides, and whether loading it succeeded."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from plugrad.dispatch.backends.backend import Backend
from plugrad.dispatch.backends.variants import Variant
from plugrad.plugins.releases import misfit


@dataclass(eq=False)
class Plugin:
    """An installed plugin: its origin, and the result of loading it.

    Attributes:
        name: the name of its entry point; by convention the backend or namespace it provides.
        target: the module that implements the hooks.
        distribution: what to pip install, empty for a plugin registered by hand.
        version: of the distribution.
        requires: the distribution's requirements, from its metadata.
        adds_to: namespaces of operators that it provides kernels for: they load this plugin, too.
        module: the imported module, once it is loaded.
        error: why it cannot be used.
        place: file and line of its own code that the error comes from, empty if none of it ran.
        set_aside: why it is not used although it may work: a conflict, or configuration.
        disabled: the source of the setting that disables it, empty if none does.
        unloaded: whether `PluginManager.unload` unloaded it; it stays so until it is requested by
            its name.
        by_hand: the module that `PluginManager.register` was given.
        was_active: its backends that were active when it was unloaded.
        is_going: whether it is being unloaded; it stays so if an interrupt comes meanwhile.
    """

    name: str
    target: str
    distribution: str = ""
    version: str = ""
    requires: tuple[str, ...] = ()
    adds_to: tuple[str, ...] = ()
    module: object | None = None
    error: BaseException | None = None
    place: str = ""
    set_aside: Exception | None = None
    disabled: str = ""
    unloaded: bool = False
    by_hand: object | None = None
    was_active: tuple[str, ...] = ()
    is_going: bool = False
    backends: dict[str, Backend] = field(default_factory=dict)
    namespaces: dict[str, str] = field(default_factory=dict)
    libraries: list[object] = field(default_factory=list)
    # By backend: kernels as the plugin gave them, and as tables once the backend is active.
    kernels: dict[str, list[object]] = field(default_factory=dict)
    kernel_tables: dict[str, dict[str, Callable[..., Any]]] = field(default_factory=dict)
    kernel_errors: dict[str, BaseException] = field(default_factory=dict)
    # By backend: variants as the plugin gave them, and as a list once the backend is active.
    variants: dict[str, list[object]] = field(default_factory=dict)
    variant_lists: dict[str, list[Variant]] = field(default_factory=dict)
    variant_errors: dict[str, BaseException] = field(default_factory=dict)
    # By backend: messages about kernels for operators that do not exist.
    unknown_kernels: dict[str, list[str]] = field(default_factory=dict)

    @property
    def identity(self) -> tuple[str, str, str]:
        """Identifies it among entry points, independent of its version."""
        return self.name, self.distribution, self.target

    @property
    def status(self) -> str:
        if self.disabled:
            return "disabled"
        if self.set_aside is not None:
            return "conflict"
        if self.error is not None:
            return "failed"
        if self.module is not None:
            return "loaded"
        return "unloaded" if self.unloaded else "not loaded"

    @property
    def origin(self) -> str:
        """Distribution and version, as pip prints them."""
        return f"{self.distribution} {self.version}".strip() or self.target

    @property
    def package(self) -> str:
        """The top-level package of its module."""
        return self.target.partition(".")[0]

    @property
    def problem(self) -> str:
        """The error in one line, empty if there is none."""
        error = self.set_aside or self.error
        if error is None:
            return ""
        return f"{type(error).__name__}: {error}"

    @property
    def misfit(self) -> str:
        """What its distribution requires of plugrad that this plugrad is not, empty if it fits."""
        return misfit(self.requires, sys.modules["plugrad"].__version__)

    @property
    def is_settled(self) -> bool:
        """Whether everything is loaded."""
        return self.module is not None or self.error is not None

    def is_to_load(self) -> bool:
        """Whether it may be loaded, and was not yet."""
        allowed = not self.disabled and self.set_aside is None and not self.unloaded
        return allowed and not self.is_settled

    @property
    def is_usable(self) -> bool:
        """Whether what it provides may be used, after loading it."""
        allowed = not self.disabled and self.set_aside is None and not self.unloaded
        return allowed and self.module is not None and self.error is None

    def is_called(self, name: str) -> bool:
        """Whether the configuration means it: by its name or its distribution's."""
        wanted = _normalised(name)
        return wanted in (_normalised(self.name), _normalised(self.distribution))

    def forget(self) -> None:
        """Back to before it was loaded."""
        self.module = None
        self.error = None
        self.place = ""
        for provided in (
            self.backends,
            self.namespaces,
            self.kernels,
            self.kernel_tables,
            self.kernel_errors,
            self.variants,
            self.variant_lists,
            self.variant_errors,
            self.unknown_kernels,
            self.libraries,
        ):
            provided.clear()
        self.is_going = False


def preference(plugin: Plugin, preferred: tuple[str, ...]) -> int:
    """Its place among those that are preferred, from 0; their number if it is none of them."""
    for place, name in enumerate(preferred):
        if plugin.is_called(name):
            return place
    return len(preferred)


def in_order(plugins: Mapping[str, Plugin], preferred: tuple[str, ...]) -> list[Plugin]:
    """By preference, then by name, then by distribution: never by the order of files."""
    return sorted(
        plugins.values(),
        key=lambda one: (preference(one, preferred), one.name, one.distribution, one.target),
    )


def _normalised(name: str) -> str:
    """As pip compares the names of distributions."""
    return re.sub(r"[-_.]+", "-", name).lower()
