"""What a program does, in terms that PyTorch and plugrad have in common."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any


def outcome(lib: Any, program: Callable[[Any], Any]) -> Any:
    """The numbers that a program gives, or the type of its error and what it says.

    Args:
        program: a function of the library to use.
    """
    try:
        return _numbers(lib, program(lib))
    except Exception as error:
        return type(error).__name__, _plain(str(error))


def _numbers(lib: Any, value: Any) -> Any:
    if isinstance(value, lib.Tensor):
        return [str(value.dtype).rpartition(".")[2], _rounded(value.detach().clone().tolist())]
    if isinstance(value, (list, tuple)):
        return [_numbers(lib, item) for item in value]
    if isinstance(value, dict):
        return {key: _numbers(lib, item) for key, item in value.items()}
    return value


def _rounded(value: Any) -> Any:
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value


def _plain(message: str) -> str:
    """A message without the library's name, web addresses and structures of trees."""
    message = re.sub(r"\bplugrad\b|\bfunctorch\b", "torch", message)
    message = message.replace("torch.func transform", "torch transform")
    message = re.sub(r"TreeSpec\(.*|has structure .*", "", message, flags=re.DOTALL)
    return re.sub(r" (For more details|See docs).*", "", message)
