"""plugrad: automatic differentiation with PyTorch's semantics, over any array library.

>>> import plugrad
>>> x = plugrad.tensor([3.], requires_grad=True)
>>> y = x * x
>>> y
tensor([9.], grad_fn=<MulBackward0>)
>>> y.backward()
>>> x.grad
tensor([6.])
"""

from __future__ import annotations

# Interpreted: it only re-exports.
import builtins as _builtins
import importlib as _importlib
import math as _math
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from plugrad import _first as _first  # imports most of what follows

# isort: split
from plugrad._generated import functions as _functions
from plugrad._generated import on_demand as _on_demand
from plugrad._generated.functions import *
from plugrad._tensor.classes import Tensor, device
from plugrad._torch_names.storage import TypedStorage, UntypedStorage
from plugrad._torch_names.typed_tensors import (
    BFloat16Tensor,
    BoolTensor,
    ByteTensor,
    CharTensor,
    DoubleTensor,
    FloatTensor,
    HalfTensor,
    IntTensor,
    LongTensor,
    ShortTensor,
)
from plugrad._torch_names.typed_tensors import dtype_of as _dtype_of
from plugrad.graph import copy_slices as _copy_slices  # registers its node class
from plugrad.graph import missing_gradient as _missing_gradient  # registers itself
from plugrad.graph import view_of_base as _view_of_base  # registers its node class

# isort: split
from plugrad import autograd, ops, plugins, random
from plugrad.autograd import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    no_grad,
    set_grad_enabled,
)
from plugrad.autograd.anomaly_mode import (
    is_anomaly_check_nan_enabled,
    is_anomaly_enabled,
    set_anomaly_enabled,
)
from plugrad.autograd.grad_mode import is_inference_mode_enabled
from plugrad.dispatch.trace import install_from_environment as _install_trace
from plugrad.dispatch.trace import record_dispatch_trace, show_dispatch_trace
from plugrad.dtype import DType as dtype
from plugrad.dtype import (
    bfloat16,
    complex64,
    complex128,
    finfo,
    float8_e4m3fn,
    float8_e5m2,
    float16,
    float32,
    float64,
    get_default_dtype,
    iinfo,
    int8,
    int16,
    int32,
    int64,
    promote_types,
    set_default_dtype,
    uint8,
    uint16,
    uint32,
    uint64,
)
from plugrad.dtype import bool_ as bool
from plugrad.memory_format import MemoryFormat as memory_format
from plugrad.memory_format import (
    channels_last,
    channels_last_3d,
    contiguous_format,
    preserve_format,
)
from plugrad.ops.composite.arrangement.broadcasting import broadcast_shapes, broadcast_tensors
from plugrad.ops.composite.einsum import einsum, tensordot
from plugrad.plugins.selection import get_default_device, set_default_device
from plugrad.random import (
    Generator,
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)
from plugrad.tensor.calls.annotations import explains as _explains
from plugrad.tensor.calls.promotion import can_cast, result_type
from plugrad.tensor.creation.from_data import as_tensor, asarray, scalar_tensor, tensor
from plugrad.tensor.interop.arrays import from_numpy
from plugrad.tensor.interop.dlpack import from_dlpack
from plugrad.tensor.printing import set_printoptions
from plugrad.tensor.size import Size
from plugrad.transforms.compile import compile

__version__ = "0.2.0"

half = float16
float = float32
double = float64
cfloat = complex64
cdouble = complex128
short = int16
int = int32
long = int64

inf = _math.inf
nan = _math.nan
pi = _math.pi
e = _math.e
newaxis = None
strided = "strided"

_install_trace()


# Compiled, they check their arguments themselves.
can_cast = _explains(can_cast)
promote_types = _explains(promote_types)
can_cast.__module__ = promote_types.__module__ = Size.__module__ = "plugrad"


def is_tensor(obj: _Any) -> _builtins.bool:
    """Whether `obj` is a Tensor.

    >>> import plugrad
    >>> plugrad.is_tensor(plugrad.ones(2)), plugrad.is_tensor([1.0, 1.0])
    (True, False)
    """
    return isinstance(obj, Tensor)


@_explains
def is_floating_point(input: Tensor) -> _builtins.bool:
    """Whether a tensor's dtype is a floating point one.

    >>> import plugrad
    >>> [plugrad.is_floating_point(x) for x in (plugrad.ones(2), plugrad.tensor([1, 2]))]
    [True, False]
    """
    return input.is_floating_point()


@_explains
def is_complex(input: Tensor) -> _builtins.bool:
    """Whether a tensor's dtype is complex.

    >>> import plugrad
    >>> plugrad.is_complex(plugrad.tensor([1 + 2j])), plugrad.is_complex(plugrad.ones(2))
    (True, False)
    """
    return input.is_complex()


@_explains
def is_signed(input: Tensor) -> _builtins.bool:
    """Whether a tensor's dtype has negative values.

    >>> import plugrad
    >>> plugrad.is_signed(plugrad.tensor([1])), plugrad.is_signed(plugrad.tensor([True]))
    (True, False)
    """
    return input.is_signed()


@_explains
def is_nonzero(input: Tensor) -> _builtins.bool:
    """`bool(input)`; RuntimeError unless there is exactly one element.

    >>> import plugrad
    >>> plugrad.is_nonzero(plugrad.tensor([0.0])), plugrad.is_nonzero(plugrad.tensor([[-3]]))
    (False, True)
    >>> plugrad.is_nonzero(plugrad.ones(2))
    Traceback (most recent call last):
        ...
    RuntimeError: Boolean value of Tensor with more than one value is ambiguous
    """
    return input.is_nonzero()


@_explains
def is_same_size(input: Tensor, other: Tensor) -> _builtins.bool:
    """Whether two shapes are equal.

    >>> import plugrad
    >>> plugrad.is_same_size(plugrad.ones(2, 3), plugrad.zeros(2, 3))
    True
    >>> plugrad.is_same_size(plugrad.ones(2, 3), plugrad.ones(3, 2))
    False
    """
    return input.is_same_size(other)


@_explains
def numel(input: Tensor) -> _builtins.int:
    """The number of a tensor's elements.

    >>> import plugrad
    >>> plugrad.numel(plugrad.zeros(2, 3, 4))
    24
    """
    return input.numel()


@_explains
def is_conj(input: Tensor) -> _builtins.bool:
    """Whether `input` is a view that conjugates the elements in its memory.

    >>> import plugrad
    >>> x = plugrad.tensor([1 + 2j])
    >>> plugrad.is_conj(x.conj()), plugrad.is_conj(x.conj().conj())
    (True, False)
    """
    return input.is_conj()


@_explains
def is_neg(input: Tensor) -> _builtins.bool:
    """Whether `input` is a view that negates the elements in its memory.

    >>> import plugrad
    >>> x = plugrad.tensor([1 + 2j])
    >>> plugrad.is_neg(x.conj().imag), plugrad.is_neg(-x)
    (True, False)
    """
    return input.is_neg()


@_explains
def detach_(input: Tensor) -> Tensor:
    """`input.detach_()`: cut a tensor out of the graph, in place.

    >>> import plugrad
    >>> y = plugrad.ones(2, requires_grad=True) * 2
    >>> plugrad.detach_(y).requires_grad
    False
    """
    return input.detach_()


@_explains
def resize_as_(input: Tensor, the_template: Tensor) -> Tensor:
    """`input.resize_as_(the_template)`: give a tensor another one's shape, in place.

    >>> import plugrad
    >>> x = plugrad.arange(6)
    >>> plugrad.resize_as_(x, plugrad.zeros(2, 3))
    tensor([[0, 1, 2],
            [3, 4, 5]])
    """
    resized: Tensor = input.resize_as_(the_template)
    return resized


@_explains
def get_device(input: Tensor) -> _builtins.int:
    """The index of a tensor's device; -1 for the host.

    >>> import plugrad
    >>> plugrad.get_device(plugrad.ones(2))
    -1
    """
    return input.get_device()


def typename(obj: _Any) -> str:
    """The name of a tensor's type, such as ``plugrad.FloatTensor``; for other objects, their
    class's name.

    >>> import plugrad
    >>> plugrad.typename(plugrad.tensor([1])), plugrad.typename([1])
    ('plugrad.LongTensor', 'list')
    """
    if isinstance(obj, Tensor):
        return str(obj.type())
    cls = obj if isinstance(obj, type) else type(obj)
    module = "" if cls.__module__ == "builtins" else f"{cls.__module__}."
    return f"{module}{cls.__qualname__}"


def set_default_tensor_type(t: _Any) -> None:
    """Make the dtype of a typed tensor class, such as `DoubleTensor`, or of its name the default.

    Raises TypeError if that is not a floating point dtype.

    >>> import plugrad
    >>> plugrad.set_default_tensor_type(plugrad.DoubleTensor)
    >>> plugrad.ones(1).dtype
    plugrad.float64
    >>> plugrad.set_default_tensor_type(plugrad.FloatTensor)
    """
    set_default_dtype(_dtype_of(t))


@_explains
def is_inference(input: Tensor) -> _builtins.bool:
    """Whether a tensor was made in `inference_mode`.

    >>> import plugrad
    >>> with plugrad.inference_mode():
    ...     x = plugrad.ones(2)
    >>> plugrad.is_inference(x), plugrad.is_inference(x.clone())
    (True, False)
    """
    return input.is_inference()


# Functions that `torch` has in addition to `torch.amp`; the first use of one loads them.
_AUTOCAST = {
    "autocast": "autocast_mode",
    **dict.fromkeys(
        (
            "autocast_decrement_nesting",
            "autocast_increment_nesting",
            "clear_autocast_cache",
            "get_autocast_dtype",
            "is_autocast_cache_enabled",
            "is_autocast_enabled",
            "set_autocast_cache_enabled",
            "set_autocast_dtype",
            "set_autocast_enabled",
        ),
        "thread_state",
    ),
    **dict.fromkeys(
        (
            *("get_autocast_cpu_dtype", "get_autocast_gpu_dtype", "is_autocast_cpu_enabled"),
            *("set_autocast_cpu_dtype", "set_autocast_cpu_enabled", "set_autocast_gpu_dtype"),
        ),
        "older_names",
    ),
    "GradScaler": "grad_scaler",
}


# Storages by dtype.
_STORAGES = (
    *("BFloat16Storage", "BoolStorage", "ByteStorage", "CharStorage", "ComplexDoubleStorage"),
    *("ComplexFloatStorage", "DoubleStorage", "FloatStorage", "HalfStorage", "IntStorage"),
    *("LongStorage", "ShortStorage", "is_storage"),
)

# Operators that are wrapped in functions of Python.
_FUNCTIONAL = dict.fromkeys(
    (
        *("block_diag", "cartesian_prod", "chain_matmul", "histogramdd", "unique"),
        *("unique_consecutive", "unravel_index"),
    ),
    "functional",
) | {
    **dict.fromkeys(_STORAGES, "_torch_names.typed_storages"),
    **dict.fromkeys(
        (
            *("are_deterministic_algorithms_enabled", "get_deterministic_debug_mode"),
            *("get_float32_matmul_precision", "is_deterministic_algorithms_warn_only_enabled"),
            *("is_warn_always_enabled", "set_deterministic_debug_mode", "set_flush_denormal"),
            *("set_float32_matmul_precision", "set_warn_always", "use_deterministic_algorithms"),
        ),
        "_torch_names.settings",
    ),
    "frombuffer": "tensor.interop.buffers",
    "get_num_threads": "plugins.config.thread_settings",
    "set_num_threads": "plugins.config.thread_settings",
    "lobpcg": "_torch_names.lobpcg",
    "pca_lowrank": "_torch_names.low_rank",
    "svd_lowrank": "_torch_names.low_rank",
}


if _TYPE_CHECKING:
    from plugrad._torch_names.lobpcg import lobpcg
    from plugrad._torch_names.low_rank import pca_lowrank, svd_lowrank
    from plugrad._torch_names.settings import (
        are_deterministic_algorithms_enabled,
        get_deterministic_debug_mode,
        get_float32_matmul_precision,
        is_deterministic_algorithms_warn_only_enabled,
        is_warn_always_enabled,
        set_deterministic_debug_mode,
        set_float32_matmul_precision,
        set_flush_denormal,
        set_warn_always,
        use_deterministic_algorithms,
    )
    from plugrad._torch_names.typed_storages import (
        BFloat16Storage,
        BoolStorage,
        ByteStorage,
        CharStorage,
        ComplexDoubleStorage,
        ComplexFloatStorage,
        DoubleStorage,
        FloatStorage,
        HalfStorage,
        IntStorage,
        LongStorage,
        ShortStorage,
        is_storage,
    )
    from plugrad.functional import (
        block_diag,
        cartesian_prod,
        chain_matmul,
        histogramdd,
        unique,
        unique_consecutive,
        unravel_index,
    )
    from plugrad.plugins.config.thread_settings import get_num_threads, set_num_threads
    from plugrad.tensor.interop.buffers import frombuffer


# Modules and objects that are loaded when they are first used.
_MODULES = frozenset(
    {
        *("_C", "amp", "config", "func", "functional", "library", "linalg", "overrides"),
        *("profiler", "return_types", "testing"),
        *("fft", "signal"),
        *("array_api", "masked", "types", "version"),
    }
)
_OBJECTS = frozenset({"capture", "default_generator", "vmap"})


def __getattr__(name: str) -> _Any:
    if name == "__all__":
        return _names_for_star()
    if name in _on_demand.FUNCTIONS:
        found = getattr(_functions, name)
        globals()[name] = found
        return found
    if name in _AUTOCAST:
        return getattr(_importlib.import_module(f"plugrad.amp.{_AUTOCAST[name]}"), name)
    if name in _FUNCTIONAL:
        return getattr(_importlib.import_module(f"plugrad.{_FUNCTIONAL[name]}"), name)
    if name in _MODULES:
        return _importlib.import_module(f"plugrad.{name}")
    if name == "vmap":
        return _importlib.import_module("plugrad.transforms.vmap").vmap
    if name == "capture":
        return _importlib.import_module("plugrad.transforms.capture").capture
    if name == "default_generator":
        return random.default_generator()
    return plugins.load_namespace(name)


def _is_public(name: str) -> _builtins.bool:
    """Whether a name is for users: no part of the core, and not the backward of an operator."""
    return not (
        name.startswith("_")
        or name in ("annotations", "graph", "levels")
        or name.endswith(("_backward", "_backward_data", "_forward"))
    )


def __dir__() -> list[str]:
    own = {name for name in globals() if _is_public(name) or name.endswith("__")}
    loaded_later = {
        *(*_AUTOCAST, *_FUNCTIONAL, *_MODULES, *_OBJECTS, *_on_demand.FUNCTIONS),
        *plugins.claimed_names(),
    }
    return sorted(own | {name for name in loaded_later if _is_public(name)})


def _names_for_star() -> list[str]:
    """`__all__`: `from plugrad import *` leaves Python's own types alone, and loads no plugin."""
    own = [
        name
        for name, value in globals().items()
        if not isinstance(value, type(_builtins)) and name not in ("bool", "float", "int")
    ]
    return [
        name
        for name in dict.fromkeys([*own, *_STORAGES, *_on_demand.FUNCTIONS])
        if _is_public(name)
    ]
