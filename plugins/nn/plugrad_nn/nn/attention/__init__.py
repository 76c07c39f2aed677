"""Names of PyTorch around attention: which implementation may run, and causal masks as objects."""

from __future__ import annotations

import contextlib
import enum
import importlib
from collections.abc import Iterator, Sequence
from typing import Any

__all__ = ["SDPBackend", "WARN_FOR_UNFUSED_KERNELS", "bias", "flex_attention", "sdpa_kernel"]

WARN_FOR_UNFUSED_KERNELS = False


class SDPBackend(enum.IntEnum):
    """PyTorch's implementations of attention. In plugrad, each backend has one implementation.

    >>> import plugrad
    >>> plugrad.nn.attention.SDPBackend.MATH.name
    'MATH'
    """

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


@contextlib.contextmanager
def sdpa_kernel(
    backends: Sequence[SDPBackend] | SDPBackend, set_priority: bool = False
) -> Iterator[dict[Any, Any]]:
    """A block in which PyTorch chooses among `backends`; here it changes nothing.

    The results of all of them are the same, and a backend of plugrad has one implementation.

    Raises:
        AssertionError: `backends` is neither an `SDPBackend` nor a list of them.

    >>> import plugrad
    >>> from plugrad.nn.attention import SDPBackend, sdpa_kernel
    >>> x = plugrad.ones(1, 2, 3)
    >>> with sdpa_kernel(SDPBackend.MATH):
    ...     plugrad.nn.functional.scaled_dot_product_attention(x, x, x).shape
    plugrad.Size([1, 2, 3])
    """
    given = backends if isinstance(backends, list) else [backends]
    for backend in given:
        if not isinstance(backend, SDPBackend):
            raise AssertionError(
                "Backend must be an instance of SDPBackend or a list of SDPBackend instances, got "
                f"{type(backend).__name__}"
            )
    yield {}


def __getattr__(name: str) -> Any:
    if name in ("bias", "flex_attention"):
        return importlib.import_module(f"plugrad_nn.nn.attention.{name}")
    raise AttributeError(f"module 'plugrad.nn.attention' has no attribute {name!r}")
