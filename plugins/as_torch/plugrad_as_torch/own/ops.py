"""`torch.ops`: PyTorch's own operators, `torch.ops.aten`, are plugrad's namespace `plugrad`."""

from __future__ import annotations

from typing import Any

import plugrad

__all__ = ["aten"]

aten: Any = plugrad.ops.plugrad
