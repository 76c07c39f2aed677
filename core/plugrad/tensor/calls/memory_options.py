"""`layout=` and `pin_memory=` of functions that make tensors: there is one layout."""

from __future__ import annotations

from typing import Any

from plugrad.tensor.calls.arguments import type_name


def check_memory(function: str, layout: Any, pin_memory: Any) -> None:
    """Accept options for ordinary memory with strides, and refuse all others.

    Raises:
        TypeError: `layout` is not a layout, or `pin_memory` is neither a bool nor None.
        RuntimeError: `pin_memory` is true.
    """
    if layout is not None and layout != "strided":
        raise TypeError(
            f"{function}(): argument 'layout' must be plugrad.strided, not {type_name(layout)}"
        )
    if pin_memory is None or pin_memory is False:
        return
    if pin_memory is not True:
        raise TypeError(
            f"{function}(): argument 'pin_memory' must be bool, not {type_name(pin_memory)}"
        )
    raise RuntimeError(
        f"{function}(): pin_memory=True is not supported. Call the result's method pin_memory()."
    )
