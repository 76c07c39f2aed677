"""What a plugin can provide: the hooks that plugrad calls, declared for pluggy.

A plugin is a module named by an entry point of the group ``plugrad``. It implements the hooks
it needs as functions of these names, marked with `plugrad.plugins.hookimpl`:

    from plugrad.plugins import Backend, hookimpl

    class FooBackend(Backend): ...

    @hookimpl
    def plugrad_backends():
        return [FooBackend]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Final

import pluggy

if TYPE_CHECKING:
    import typer

    from plugrad.dispatch.backends.backend import Backend
    from plugrad.dispatch.backends.variants import Variant
    from plugrad.plugins.cases import OpCase
    from plugrad.plugins.protocols import KernelSource

__all__ = [
    "hookimpl",
    "plugrad_backends",
    "plugrad_backward_begin",
    "plugrad_backward_end",
    "plugrad_carriers",
    "plugrad_cases",
    "plugrad_cli",
    "plugrad_kernels",
    "plugrad_namespaces",
    "plugrad_ops",
    "plugrad_variants",
]

PROJECT: Final = "plugrad"

hookspec: Final = pluggy.HookspecMarker(PROJECT)
hookimpl: Final = pluggy.HookimplMarker(PROJECT)


@hookspec
def plugrad_backends() -> Iterable[Backend | type[Backend]]:
    """Backends that the plugin provides: instances, or classes that need no arguments.

    >>> import numpy as np
    >>> from plugrad.plugins import Backend, hookimpl
    >>> @hookimpl
    ... def plugrad_backends():
    ...     return [Backend.from_array_namespace(np, "plain")]
    >>> [backend.name for backend in plugrad_backends()]
    ['plain']
    """
    raise NotImplementedError


@hookspec
def plugrad_ops() -> Iterable[str | PathLike[str] | object]:
    """Operators that the plugin provides: paths of operator YAML files, or Library objects.

    The operators of a file are in the namespace that has the plugin's name. The functions that its
    entries name are in the plugin's module, or in the modules that are given with the path in a
    pair: ``(path, [formulas])``. Other objects are kept alive with the plugin.

    >>> from pathlib import Path
    >>> from plugrad.plugins import hookimpl
    >>> @hookimpl
    ... def plugrad_ops():
    ...     yield Path("plugrad_foo") / "operators.yaml"
    """
    raise NotImplementedError


@hookspec
def plugrad_kernels() -> Mapping[str, KernelSource | str]:
    """Kernels that the plugin has for backends, its own or others', by the backend's name.

    A kernel is named like its operator: ``"special::erfcx"``, or ``"mul"`` for one of the core. A
    string names a module, or an object in one, that is imported when the backend becomes active:
    ``{"jax": "plugrad_special.kernels.jax", "cpu": "plugrad_special:CPU"}``.

    >>> from plugrad.plugins import hookimpl
    >>> @hookimpl
    ... def plugrad_kernels():
    ...     return {"cpu": "plugrad_foo.kernels:CPU", "jax": "plugrad_foo.kernels:JAX"}
    """
    raise NotImplementedError


@hookspec
def plugrad_variants() -> Mapping[str, Sequence[Variant] | Callable[[], Sequence[Variant]] | str]:
    """Variants of kernels that the plugin has for backends, its own or others', by the backend's
    name: a list of `Variant` objects, or a function that makes one.

    A string names such a list or function, in a module that is imported when the backend becomes
    active: ``{"cpu": "plugrad_fast.variants:VARIANTS"}``.

    >>> import numpy as np
    >>> from plugrad.plugins import Variant, hookimpl
    >>> @hookimpl
    ... def plugrad_variants():
    ...     return {"cpu": [Variant("exp", np.exp, name="numpy", dtypes=["float64"])]}
    >>> plugrad_variants()["cpu"]
    [<Variant 'numpy' of 'exp': float64>]
    """
    raise NotImplementedError


@hookspec
def plugrad_namespaces() -> Mapping[str, str]:
    """Attributes of plugrad that the plugin provides, and the modules that their first use loads.

    ``{"nn": "plugrad_nn.nn"}`` provides a module, which can then also be imported as `plugrad.nn`;
    ``{"save": "plugrad_nn.serialization:save"}`` provides an object in a module.

    >>> from plugrad.plugins import hookimpl
    >>> @hookimpl
    ... def plugrad_namespaces():
    ...     return {"audio": "plugrad_audio.audio"}
    """
    raise NotImplementedError


@hookspec
def plugrad_cases() -> Iterable[OpCase | str]:
    """Test cases for the plugin's operators: `plugrad.testing.cases.OpCase`.

    ``"plugrad_foo.cases:CASES"`` names a list of them, or a function that makes one, which is
    imported only when tests need it.

    >>> from plugrad.plugins import hookimpl
    >>> @hookimpl
    ... def plugrad_cases():
    ...     return ["plugrad_foo.cases:CASES"]
    """
    raise NotImplementedError


@hookspec
def plugrad_carriers() -> Mapping[str, type | str]:
    """Carriers of arrays between processes, for `plugrad.distributed`: by the name for
    `init_process_group`, classes or strings that name one.

    ``{"tcp": "plugrad_foo.carriers:TcpCarrier"}`` is imported when a program uses ``"tcp"``.
    The class is a `plugrad.distributed.Carrier`.

    >>> from plugrad.plugins import hookimpl
    >>> @hookimpl
    ... def plugrad_carriers():
    ...     return {"tcp": "plugrad_foo.carriers:TcpCarrier"}
    """
    raise NotImplementedError


@hookspec
def plugrad_cli(app: typer.Typer) -> None:
    """Add commands to the ``plugrad`` command line.

    >>> from plugrad.plugins import hookimpl
    >>> @hookimpl
    ... def plugrad_cli(app):
    ...     @app.command("greet")
    ...     def greet(name: str) -> None:
    ...         print(f"Hello {name}")
    """


@hookspec
def plugrad_backward_begin() -> None:
    """A backward pass is about to run, on the calling thread.

    >>> from plugrad.plugins import hookimpl
    >>> @hookimpl
    ... def plugrad_backward_begin():
    ...     print("a backward pass begins")
    """


@hookspec
def plugrad_backward_end() -> None:
    """A backward pass has ended, with or without an error.

    >>> from plugrad.plugins import hookimpl
    >>> @hookimpl
    ... def plugrad_backward_end():
    ...     print("a backward pass has ended")
    """
