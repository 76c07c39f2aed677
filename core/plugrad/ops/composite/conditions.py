"""Conditions that a check or a choice reads on the host.

Inside `vmap` they are read for all elements of the batch at once: an error for one element is an
error of the call, as for an operator that takes the whole batch.
"""

from __future__ import annotations

import numpy as np

from plugrad.dispatch.backends.active import find_backend
from plugrad.tensor.base import TensorBase
from plugrad.tensor.interop.arrays import host_array
from plugrad.tensor.levels import whole_batch


def holds_everywhere(condition: TensorBase) -> bool:
    """Whether all elements are true; also if there are none."""
    return bool(np.all(np.asarray(host_array(whole_batch(condition)))))


def holds_somewhere(condition: TensorBase) -> bool:
    """Whether any element is true."""
    return bool(np.any(np.asarray(host_array(whole_batch(condition)))))


def has_values(tensor: TensorBase) -> bool:
    """Whether the host can read a tensor: not on `meta`, nor while its backend traces a program."""
    plain = whole_batch(tensor)
    kind = plain.device.type
    return kind != "meta" and find_backend(kind).backend.has_values(plain._backend_array)


def known_somewhere(condition: TensorBase) -> bool:
    """`holds_somewhere`, for checks: False where there are no values to be wrong yet."""
    return has_values(condition) and holds_somewhere(condition)
