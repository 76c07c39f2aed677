"""Mixed precision: `autocast` chooses dtypes operator by operator, `GradScaler` keeps gradients in
float16's range.

The names are torch.amp's; see docs/amp.md.
"""

from __future__ import annotations

from plugrad.amp.autocast_mode import autocast, custom_bwd, custom_fwd, is_autocast_available
from plugrad.amp.grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]
