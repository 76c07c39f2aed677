"""The version, and PyTorch's constants about its build: plugrad itself contains no GPU libraries.

`plugrad doctor` shows which CUDA version a plugin provides.
"""

# Interpreted: loaded on demand.
from typing import Final

from plugrad import __version__

__all__ = ["__version__", "cuda", "debug", "git_version", "hip", "rocm", "xpu"]

debug: Final = False
cuda: Final[str | None] = None
git_version: Final = "Unknown"
hip: Final[str | None] = None
rocm: Final[str | None] = None
xpu: Final[str | None] = None
