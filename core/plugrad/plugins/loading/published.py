"""Which plugins are known to be published, and what they add to plugrad."""

from __future__ import annotations

from typing import Final

# Attribute of plugrad -> the plugin that has it, plugrad-<plugin>.
PUBLISHED: Final = {
    "nn": "nn",
    "optim": "nn",
    "utils": "nn",
    "save": "nn",
    "load": "nn",
    "special": "special",
}

# The plugins that this project publishes; they claim what stands above and their own names.
OURS: Final = frozenset({"cpu", "cuda", "jax", "nn", "special"})
