"""Raw kernels of recurrent layers over whole sequences, one module per kind of layer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from plugrad_cpu.kernels.recurrent import gru, lstm

KERNELS: Final[dict[str, Callable[..., Any]]] = {**lstm.KERNELS, **gru.KERNELS}
