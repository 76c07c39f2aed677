"""The functions of a plugin's operators, for the plugin's public module."""

from __future__ import annotations

from types import ModuleType

from plugrad.errors import PluginError
from plugrad.plugins.loading.process import get_manager


def load_operators(plugin: str) -> ModuleType:
    """The generated module of a plugin's YAML files, with one function per operator.

    They have the exact signatures, checks and documentation of plugrad's own functions, where
    `plugrad.ops.<plugin>` has the bare operators. Loads the plugin if that has not been done yet.

        from plugrad.plugins import load_operators

        window_sum = load_operators("windows").window_sum

    Raises:
        PluginError: the plugin is not installed or cannot be used, or has no YAML files.

    >>> import plugrad
    >>> from plugrad.plugins import load_operators
    >>> load_operators("special").cbrt(plugrad.tensor([8.0]))
    tensor([2.])
    """
    if not isinstance(plugin, str):
        raise TypeError(f"load_operators(): plugin must be a name, not {type(plugin).__name__}")
    found = get_manager().load(plugin)
    if found.error is not None:
        raise PluginError(
            f"the operators of {found.origin} cannot be used: {found.problem}"
        ) from found.error
    families = [item for item in found.libraries if isinstance(item, ModuleType)]
    if not families:
        raise PluginError(f"plugrad_ops() of {found.origin} names no YAML file")
    module = ModuleType(found.name, f"The operators of {found.origin}.")
    names: list[str] = []
    for family in families:
        names += family.__all__
        vars(module).update({name: getattr(family, name) for name in family.__all__})
    vars(module)["__all__"] = names
    return module
