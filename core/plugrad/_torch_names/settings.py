"""Process-wide settings that PyTorch programs make when they start."""

from __future__ import annotations

# Interpreted: loaded on demand.
from typing import Final

from plugrad.dispatch.caller import warn_at_caller
from plugrad.dispatch.settings import settings

_MODES: Final = {"default": 0, "warn": 1, "error": 2}
_PRECISIONS: Final = ("highest", "high", "medium")


def _checked_bool(function: str, argument: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError(
            f"{function}(): argument '{argument}' must be bool, not {type(value).__name__}"
        )
    return value


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Ask for kernels that give the same bits in every run, on all threads.

    GPU kernels that add with atomics then sort first, which is slower. So do kernels that write
    several values to one place; the last value wins. plugrad's other kernels give the same results
    in every run anyway, so calls that raise in PyTorch work. A kernel of a plugin that has no such
    algorithm raises RuntimeError, or warns if `warn_only`. What `empty` returns stays undefined.
    JAX adds with atomics on GPUs unless XLA_FLAGS says --xla_gpu_deterministic_ops=true.

    >>> import plugrad
    >>> plugrad.use_deterministic_algorithms(True)
    >>> plugrad.are_deterministic_algorithms_enabled()
    True
    >>> plugrad.use_deterministic_algorithms(False)
    """
    name = "use_deterministic_algorithms"
    checked = _checked_bool(name, "mode", mode), _checked_bool(name, "warn_only", warn_only)
    settings.deterministic, settings.warn_only = checked


def are_deterministic_algorithms_enabled() -> bool:
    """Whether kernels have to give the same bits in every run."""
    return settings.deterministic


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether a kernel that cannot do so warns, instead of raising."""
    return settings.warn_only


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """`use_deterministic_algorithms` by a number or name: 0 "default" (off), 1 "warn", 2 "error".

    Raises TypeError and RuntimeError for anything else.

    >>> import plugrad
    >>> plugrad.set_deterministic_debug_mode("warn")
    >>> plugrad.get_deterministic_debug_mode()
    1
    >>> plugrad.set_deterministic_debug_mode(0)
    """
    if not isinstance(debug_mode, (int, str)):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    number = _MODES.get(debug_mode, -1) if isinstance(debug_mode, str) else debug_mode
    if isinstance(debug_mode, str) and number < 0:
        raise RuntimeError(
            "invalid value of debug_mode, expected one of `default`, `warn`, `error`, but got "
            f"{debug_mode}"
        )
    if number not in _MODES.values():
        raise RuntimeError(
            f"invalid value of debug_mode, expected 0, 1, or 2, but got {debug_mode}"
        )
    use_deterministic_algorithms(number > 0, warn_only=number == 1)


def get_deterministic_debug_mode() -> int:
    """The number of the mode: see `set_deterministic_debug_mode`."""
    if not settings.deterministic:
        return 0
    return 1 if settings.warn_only else 2


def set_float32_matmul_precision(precision: str) -> None:
    """Remember how precisely float32 matrices ought to be multiplied: "highest", "high", "medium".

    Every backend multiplies them in float32, which is more than enough for all three. Raises
    RuntimeError if it is not a str; any other str warns and changes nothing.

    >>> import plugrad
    >>> plugrad.set_float32_matmul_precision("high")
    >>> plugrad.get_float32_matmul_precision()
    'high'
    >>> plugrad.set_float32_matmul_precision("highest")
    """
    given: object = precision
    if not isinstance(given, str):
        raise RuntimeError(
            f"set_float32_matmul_precision expects a str, but got {type(given).__name__}"
        )
    if given not in _PRECISIONS:
        warn_at_caller(
            f"{given} is not one of 'highest', 'high', or 'medium'; the current "
            "set_float32_matmul_precision call has no effect.",
        )
        return
    settings.matmul_precision = given


def get_float32_matmul_precision() -> str:
    """The argument of `set_float32_matmul_precision`; "highest" at first."""
    return settings.matmul_precision


def set_flush_denormal(mode: bool) -> bool:
    """Whether numbers too small to be normal can be made 0: False, as NumPy leaves that to the
    processor, which keeps them."""
    given: object = mode
    if not isinstance(given, bool):
        raise RuntimeError(f"flush_denormal expects a bool, but got {type(given).__name__}")
    return False


def set_warn_always(b: bool, /) -> None:
    """Repeat every time the warnings that plugrad otherwise gives once per process.

    Python's own filters apply nevertheless: by default they show a warning once for each line.
    """
    given: object = b
    if not isinstance(given, bool):
        raise RuntimeError(f"setWarnOnlyOnce expects a bool, but got {type(given).__name__}")
    settings.warn_always = given


def is_warn_always_enabled() -> bool:
    """Whether it does."""
    return settings.warn_always
