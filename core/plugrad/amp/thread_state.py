"""A thread's autocast state: `plugrad.is_autocast_enabled` and the like."""

from __future__ import annotations

from typing import Any, Final

from plugrad.device import as_device
from plugrad.dispatch.autocast import (
    autocast_state,
    change_autocast_nesting,
    choose_autocast_dtype,
    clear_autocast_casts,
    disable_autocast,
    enable_autocast,
    keep_autocast_casts,
)
from plugrad.dtype import DType
from plugrad.ops.autocast import default_autocast_dtype

__all__ = [
    "autocast_decrement_nesting",
    "autocast_increment_nesting",
    "clear_autocast_cache",
    "get_autocast_dtype",
    "is_autocast_cache_enabled",
    "is_autocast_enabled",
    "set_autocast_cache_enabled",
    "set_autocast_dtype",
    "set_autocast_enabled",
]

_NOT_GIVEN: Final[Any] = object()


def _wrong_type(
    function: str, argument: str, position: int, wanted: str, value: object
) -> TypeError:
    return TypeError(
        f"{function}(): argument '{argument}' (position {position}) must be {wanted}, not "
        f"{type(value).__name__}"
    )


def _checked_type(function: str, device_type: Any) -> str:
    """A device type that has autocast."""
    if not isinstance(device_type, str):
        raise _wrong_type(function, "device_type", 1, "str", device_type)
    name = as_device(device_type).type
    if default_autocast_dtype(name) is None:
        raise RuntimeError(f"unknown device type for autocast in {function}: {name!r}")
    return name


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Whether operators on tensors of a device type autocast on this thread.

    Raises:
        BackendNotFoundError, RuntimeError: there is no such backend, or it has no autocast.

    >>> import plugrad
    >>> with plugrad.autocast("cpu"):
    ...     plugrad.is_autocast_enabled("cpu")
    True
    """
    return _checked_type("is_autocast_enabled", device_type) in autocast_state().enabled


def set_autocast_enabled(device_type: Any, enabled: Any = _NOT_GIVEN) -> None:
    """Switch autocast on or off for a device type, ``"cuda"`` if only `enabled` is given.

    `autocast` does it for a region.

    >>> import plugrad
    >>> plugrad.set_autocast_enabled("cpu", True)
    >>> (plugrad.ones(2, 2) @ plugrad.ones(2, 2)).dtype
    plugrad.bfloat16
    >>> plugrad.set_autocast_enabled("cpu", False)
    """
    position = 2
    if enabled is _NOT_GIVEN:
        device_type, enabled, position = "cuda", device_type, 1
    if not isinstance(enabled, bool):
        raise _wrong_type("set_autocast_enabled", "enabled", position, "bool", enabled)
    name = _checked_type("set_autocast_enabled", device_type)
    if enabled:
        enable_autocast(name, get_autocast_dtype(name))
    else:
        disable_autocast(name)


def get_autocast_dtype(device_type: str) -> DType:
    """The dtype that autocast runs operators of a device type in, on this thread.

    By default bfloat16 on the CPU, float16 for CUDA, and for another backend the first one that its
    `autocast_dtypes` names.

    >>> import plugrad
    >>> plugrad.get_autocast_dtype("cpu")
    plugrad.bfloat16
    """
    name = _checked_type("get_autocast_dtype", device_type)
    chosen = autocast_state().dtypes.get(name) or default_autocast_dtype(name)
    assert chosen is not None
    return chosen


def set_autocast_dtype(device_type: str, dtype: Any) -> None:
    """Choose that dtype; `autocast` does it for a region.

    >>> import plugrad
    >>> plugrad.set_autocast_dtype("cpu", plugrad.float16)
    >>> plugrad.get_autocast_dtype("cpu")
    plugrad.float16
    >>> plugrad.set_autocast_dtype("cpu", plugrad.bfloat16)
    """
    if not isinstance(dtype, DType):
        raise _wrong_type("set_autocast_dtype", "dtype", 2, "plugrad.dtype", dtype)
    choose_autocast_dtype(_checked_type("set_autocast_dtype", device_type), dtype)


def is_autocast_cache_enabled() -> bool:
    """Whether autocast keeps the casts of leaves till the outermost region ends.

    >>> import plugrad
    >>> with plugrad.autocast("cpu", cache_enabled=False):
    ...     plugrad.is_autocast_cache_enabled()
    False
    """
    return autocast_state().cache_enabled


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Say whether it does, on this thread.

    >>> import plugrad
    >>> plugrad.set_autocast_cache_enabled(False)
    >>> plugrad.is_autocast_cache_enabled()
    False
    >>> plugrad.set_autocast_cache_enabled(True)
    """
    if not isinstance(enabled, bool):
        raise TypeError(f"enabled must be a bool (got {type(enabled).__name__})")
    keep_autocast_casts(enabled)


def clear_autocast_cache() -> None:
    """Clear autocast's cache of casts: the next use of a leaf casts it again.

    >>> import plugrad
    >>> weight = plugrad.ones(2, 2, requires_grad=True)
    >>> with plugrad.autocast("cpu"):
    ...     before = weight @ plugrad.ones(2)
    ...     with plugrad.no_grad():
    ...         _ = weight.mul_(2)
    ...     plugrad.clear_autocast_cache()
    ...     after = weight @ plugrad.ones(2)
    >>> before.tolist(), after.tolist()
    ([2.0, 2.0], [4.0, 4.0])
    """
    clear_autocast_casts()


def autocast_increment_nesting() -> int:
    """Note that a region is entered; returns how many this thread is in.

    >>> import plugrad
    >>> plugrad.autocast_increment_nesting(), plugrad.autocast_decrement_nesting()
    (1, 0)
    """
    return change_autocast_nesting(1)


def autocast_decrement_nesting() -> int:
    """Note that a region is left; returns how many this thread is in still.

    >>> import plugrad
    >>> with plugrad.autocast("cpu"):
    ...     plugrad.autocast_increment_nesting(), plugrad.autocast_decrement_nesting()
    (2, 1)
    """
    return change_autocast_nesting(-1)
