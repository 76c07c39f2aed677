"""Changes that come with the first sharded array: until then there is no cost."""

from __future__ import annotations

import threading
from typing import Final

from plugrad.plugins.scopes import Locked, hold_while_forking
from plugrad.plugins.strides import set_placement
from plugrad_jax.sharding.likes import register
from plugrad_jax.sharding.mixing import SPREAD, keep

_lock: Final = threading.Lock()
hold_while_forking(_lock)


def begin() -> None:
    """From now on there are arrays on several devices."""
    if SPREAD.used:
        return
    with Locked(_lock):
        if not SPREAD.used:
            register()
            set_placement(keep)
            SPREAD.used = True
