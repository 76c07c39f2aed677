"""The published plugins that plugrad lists, and what they add to it."""

from __future__ import annotations

from typing import Final

# Attribute of plugrad -> the plugin that has it; `distribution_of` gives its distribution.
PUBLISHED: Final = {
    "nn": "nn",
    "optim": "nn",
    "utils": "nn",
    "multiprocessing": "nn",
    "save": "nn",
    "load": "nn",
    "serialization": "nn",
    "hub": "nn",
    "distributions": "distributions",
    "distributed": "distributed",
    "futures": "distributed",
    "special": "special",
    "quasirandom": "special",
    "as_torch": "as_torch",
    "onnx": "onnx",
    "viewer": "viewer",
}

# Device type -> the plugin that has it, where that is not its name.
BACKENDS: Final = {"sharded": "distributed"}

# The plugins that this project publishes; they claim the names above and their own.
OURS: Final = frozenset(
    {
        "as_torch",
        "cpu",
        "cuda",
        "distributed",
        "distributions",
        "jax",
        "nn",
        "onnx",
        "special",
        "viewer",
    }
)


# The packages of these plugins, and packages with only kernels.
OUR_PACKAGES: Final = frozenset(
    {*(f"plugrad_{name}" for name in OURS), "plugrad_native", "plugrad_onednn"}
)


def distribution_of(plugin: str) -> str:
    """The distribution that publishes a plugin of ours: plugrad-as-torch has as_torch."""
    return f"plugrad-{plugin.replace('_', '-')}"
