"""Classes and modes that override plugrad's functions: `__plugrad_function__`.

The counterpart of `torch.overrides`. A class may call its override `__torch_function__` instead,
and PyTorch's names exist too, so code written for PyTorch runs.

>>> import plugrad
>>> class Diagonal:
...     def __init__(self, n, value):
...         self.n, self.value = n, value
...     @classmethod
...     def __plugrad_function__(cls, func, types, args=(), kwargs=None):
...         if func is plugrad.trace:
...             return args[0].n * args[0].value
...         return NotImplemented
>>> plugrad.trace(Diagonal(5, 2.0))
10.0
"""

from __future__ import annotations

from plugrad.overrides.catalogue import (
    get_default_nowrap_functions,
    get_ignored_functions,
    get_overridable_functions,
    get_testing_overrides,
    is_tensor_method_or_property,
    resolve_name,
)
from plugrad.overrides.dispatch_modes import (
    BasePlugradDispatchMode,
    PlugradDispatchMode,
)
from plugrad.overrides.dispatch_modes import (
    dispatch_mode as _get_current_dispatch_mode,  # noqa: F401
)
from plugrad.overrides.dispatch_modes import (
    dispatch_modes as _get_current_dispatch_mode_stack,  # noqa: F401
)
from plugrad.overrides.dispatch_modes import (
    dispatch_modes_off as _disable_current_modes,  # noqa: F401
)
from plugrad.overrides.handling import (
    get_overloaded_args as _get_overloaded_args,  # noqa: F401  # PyTorch's name
)
from plugrad.overrides.handling import (
    handle_plugrad_function,
    is_tensor_like,
    overridable,
    wrap_plugrad_function,
)
from plugrad.overrides.modes import (
    BasePlugradFunctionMode,
    DisablePlugradFunction,
    DisablePlugradFunctionSubclass,
    PlugradFunctionMode,
    is_plugrad_function_enabled,
)
from plugrad.overrides.modes import current_mode as _get_current_function_mode  # noqa: F401
from plugrad.overrides.modes import (
    current_modes as _get_current_function_mode_stack,  # noqa: F401
)
from plugrad.tensor.calls.overridable import (
    disabled_plugrad_function,
    has_plugrad_function,
    has_plugrad_function_unary,
    has_plugrad_function_variadic,
)

# PyTorch's names.
has_torch_function = has_plugrad_function
has_torch_function_unary = has_plugrad_function_unary
has_torch_function_variadic = has_plugrad_function_variadic
handle_torch_function = handle_plugrad_function
wrap_torch_function = wrap_plugrad_function
TorchDispatchMode = PlugradDispatchMode
BaseTorchDispatchMode = BasePlugradDispatchMode
TorchFunctionMode = PlugradFunctionMode
BaseTorchFunctionMode = BasePlugradFunctionMode
DisableTorchFunction = DisablePlugradFunction
DisableTorchFunctionSubclass = DisablePlugradFunctionSubclass
_disabled_torch_function_impl = disabled_plugrad_function

__all__ = [
    "BasePlugradDispatchMode",
    "BasePlugradFunctionMode",
    "BaseTorchDispatchMode",
    "BaseTorchFunctionMode",
    "DisablePlugradFunction",
    "DisablePlugradFunctionSubclass",
    "DisableTorchFunction",
    "DisableTorchFunctionSubclass",
    "PlugradDispatchMode",
    "PlugradFunctionMode",
    "TorchDispatchMode",
    "TorchFunctionMode",
    "disabled_plugrad_function",
    "get_default_nowrap_functions",
    "get_ignored_functions",
    "get_overridable_functions",
    "get_testing_overrides",
    "handle_plugrad_function",
    "handle_torch_function",
    "has_plugrad_function",
    "has_plugrad_function_unary",
    "has_plugrad_function_variadic",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
    "is_plugrad_function_enabled",
    "is_tensor_like",
    "is_tensor_method_or_property",
    "overridable",
    "resolve_name",
    "wrap_plugrad_function",
    "wrap_torch_function",
]
