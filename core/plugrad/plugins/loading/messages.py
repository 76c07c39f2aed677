"""Messages for missing plugins, and for missing parts that a plugin should provide."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from plugrad.plugins.loading.plugin import Plugin

# Backends that this project publishes.
PUBLISHED_BACKENDS: Final = ("cpu", "cuda", "jax")

# What people call devices elsewhere, too far from our names to be a slip of the pen.
OTHER_NAMES: Final = {"gpu": "cuda", "nvidia": "cuda", "cupy": "cuda", "numpy": "cpu", "xla": "jax"}


def has_nvidia_gpu() -> bool:
    """Whether this machine has a driver for NVIDIA's GPUs: without one there is no use for cuda."""
    return Path("/proc/driver/nvidia/version").exists() or shutil.which("nvidia-smi") is not None


def nearest(name: str, valid: Iterable[str]) -> str:
    """The valid name that is most like a misspelt one, empty if none is."""
    import difflib  # only errors need it

    close = difflib.get_close_matches(name, list(valid), n=1)
    return close[0] if close else ""


def meant_backend(name: str, installed: Iterable[str]) -> str:
    """The backend that is probably meant by `name`, empty if there is none."""
    lower = name.lower()
    valid = {*installed, *PUBLISHED_BACKENDS}
    if lower in OTHER_NAMES:
        return OTHER_NAMES[lower]
    return lower if lower in valid and lower != name else nearest(name, installed)


def chosen_by(wanted_by: str) -> str:
    """What chose a backend, in parentheses, unless code did."""
    return f" (chosen by {wanted_by})" if wanted_by else ""


def unusable(what: str, plugin: Plugin) -> str:
    """The message about something from a plugin that cannot be used."""
    lines = [f"{what} is provided by {plugin.origin}, which cannot be used: {plugin.problem}"]
    if plugin.misfit:
        lines.append(f"{unfit(plugin)}: {mend_of_unfit(plugin)}.")
    return "\n".join([*lines, "Run `plugrad doctor` for details."])


def unfit(plugin: Plugin) -> str:
    """That a plugin's distribution requires another release of plugrad than this one."""
    here = sys.modules["plugrad"].__version__
    return f"{plugin.origin} requires {plugin.misfit}, and this is plugrad {here}"


def mend_of_unfit(plugin: Plugin) -> str:
    """The command after which a plugin and plugrad fit: pip chooses a release of each."""
    return f"`pip install --upgrade plugrad {plugin.distribution}` installs releases that fit"


def missing_backend(
    name: str, wanted_by: str, installed: Mapping[str, Plugin], plugins: Iterable[Plugin]
) -> str:
    """The message about a backend that no plugin provides."""
    lines = [f"No backend named {name!r} is installed{chosen_by(wanted_by)}."]
    close = meant_backend(name, installed)
    if close:
        lines[0] += f" Did you mean {close!r}?"
    shown = [f"{found} ({plugin.origin})" for found, plugin in sorted(installed.items())]
    lines.append(f"Installed: {', '.join(shown) or 'none'}.")
    known = list(plugins)
    lines += [
        f"Not usable: {plugin.name} ({plugin.origin}): {plugin.problem}"
        for plugin in known
        if plugin.problem and not plugin.disabled
    ]
    lines += [
        f"Disabled: {plugin.name} ({plugin.origin}), by {plugin.disabled}"
        for plugin in known
        if plugin.disabled
    ]
    lines += [
        f"Unloaded: {plugin.name} ({plugin.origin}); "
        f"plugrad.plugins.get_manager().load({plugin.name!r}) loads it again"
        for plugin in known
        if plugin.status == "unloaded"
    ]
    lines += [
        f"Being loaded just now: {plugin.name} ({plugin.origin}); use it inside functions, not "
        "while its modules are imported"
        for plugin in known
        if plugin.status == "not loaded"
    ]
    namesakes = [plugin for plugin in known if plugin.name == name and plugin.status == "loaded"]
    for plugin in namesakes:
        provided = ", ".join(repr(backend) for backend in plugin.backends) or "none"
        lines.append(
            f"The plugin {plugin.name!r} ({plugin.origin}) is installed, but its backends are: "
            f"{provided}."
        )
    if namesakes:
        return "\n".join(lines)
    if any(plugin.name == name and plugin.status in ("disabled", "unloaded") for plugin in known):
        return "\n".join(lines)
    wanted = close or name
    if wanted in installed:
        return "\n".join(lines)
    if wanted == "cuda" and not has_nvidia_gpu():
        lines.append("It is for NVIDIA's GPUs, and this machine has no driver for one.")
    elif wanted in PUBLISHED_BACKENDS:
        lines.append(f"To get it: pip install plugrad-{wanted}")
    else:
        lines.append(
            f"If there is a plugin for it, it is called plugrad-{name} by convention: "
            f"pip install plugrad-{name}"
        )
    if not installed and name != "cpu":
        lines.append("To compute with NumPy: pip install plugrad-cpu")
    return "\n".join(lines)
