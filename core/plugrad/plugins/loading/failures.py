"""Finds the line where a plugin fails, and suggests a fix."""

from __future__ import annotations

import inspect

from plugrad.codegen.model import EntryError
from plugrad.errors import PluginConflictError, PluginError
from plugrad.plugins.loading.load import HOOKS
from plugrad.plugins.loading.messages import mend_of_unfit, unfit
from plugrad.plugins.loading.plugin import Plugin


def place_of(
    error: BaseException, plugin: Plugin, module: object | None = None, hook: str = ""
) -> str:
    """The file and line of a plugin's own code that an error comes from, as ``file:line``; empty if
    none of it ran.

    Args:
        module: its module, if that was imported.
        hook: the hook that returned the wrong object, if known.
    """
    import traceback

    if isinstance(error, EntryError) and error.place:
        return error.place
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno or 1}"
    for frame, line in reversed(list(traceback.walk_tb(error.__traceback__))):
        if str(frame.f_globals.get("__name__", "")).partition(".")[0] == plugin.package:
            return f"{frame.f_code.co_filename}:{line}"
    # The core refused what a hook gave, or the hook itself.
    for name in HOOKS:
        code = getattr(inspect.unwrap(getattr(module, name, len)), "__code__", None)
        if (name == hook or name in str(error)) and code is not None:
            return f"{code.co_filename}:{code.co_firstlineno}"
    file = getattr(module, "__file__", None)
    return f"{file}:1" if file else ""


def mend_of(error: BaseException, plugin: Plugin) -> str:
    """What to do about a plugin's error; empty if the error says it."""
    name = plugin.distribution or plugin.name
    if isinstance(error, PluginConflictError):
        return ""
    if plugin.misfit:
        return f"{mend_of_unfit(plugin)}: {unfit(plugin)}"
    if isinstance(error, PluginError):
        text = str(error)
        if text.startswith("its entry point is"):
            return (
                "name the module in the table [project.entry-points] of its pyproject.toml, and "
                "install it again, as by `pip install --editable .`"
            )
        if "was written for version" in text:
            return ""
    if isinstance(error, ModuleNotFoundError) and error.name:
        missing = error.name.partition(".")[0]
        if missing == plugin.package:
            again = f"`pip install --force-reinstall --no-deps {name}`"
            return f"correct the module's name, or install the package again: {again}"
        return f"`pip install {missing}`, or the distribution that has this module"
    if isinstance(error, ImportError) and error.name:
        other = error.name.partition(".")[0]
        return f"install versions of {name} and {other} that fit: `pip install --upgrade {name}`"
    return (
        f"correct it, or install another version of {name}; until then PLUGRAD_DISABLE={name} "
        "leaves it out"
    )
