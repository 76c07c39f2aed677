"""The version, and what programs ask of a build of PyTorch: plugrad contains no GPU's libraries.

Which CUDA a plugin provides, `plugrad doctor` says.
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
