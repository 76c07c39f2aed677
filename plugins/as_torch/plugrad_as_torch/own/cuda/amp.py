"""`torch.cuda.amp`: the older names of `torch.amp`, for the device type `cuda`."""

from __future__ import annotations

import functools
from typing import Any

import plugrad
from plugrad import amp

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]

custom_fwd = functools.partial(amp.custom_fwd, device_type="cuda")
custom_bwd = functools.partial(amp.custom_bwd, device_type="cuda")


class autocast(amp.autocast):
    """`torch.amp.autocast("cuda", ...)`."""

    def __init__(
        self, enabled: bool = True, dtype: Any = plugrad.float16, cache_enabled: bool = True
    ) -> None:
        super().__init__("cuda", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)


class GradScaler(amp.GradScaler):
    """`torch.amp.GradScaler("cuda", ...)`."""

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        super().__init__(
            "cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled
        )
