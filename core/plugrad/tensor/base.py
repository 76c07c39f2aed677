"""TensorBase: an array with a dtype, a device, a key set and, only when needed, autograd data.

Tensor (interpreted, plugrad._tensor.classes)      weak references, user attributes
  TensorMethods (generated)                every operator as a method
    TensorBase (here)                      fields, autograd properties
      _backend_array    the backend's array, which users see as `array`
      _autograd_meta    AutogradMeta | None    grad, grad_fn, hooks
      _shared_storage   Storage | None         the version that views share
      _view_info        ViewInfo | None        what this is a view of, and how to make it again
"""

from __future__ import annotations

from operator import index
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np
from mypy_extensions import i16, i32, i64, mypyc_attr

from plugrad._intrinsics import array_shape, hold_tensor_class, new_tensor
from plugrad.device import Device
from plugrad.dispatch.backends.active import find_backend
from plugrad.dispatch.keys import AUTOGRAD_KEYS, FORWARD_AD_BIT, FUNCTIONALIZE_BIT
from plugrad.dispatch.local_state import WATCH, current_state
from plugrad.dtype import DType
from plugrad.tensor.size import Size

if TYPE_CHECKING:
    from plugrad.graph.node import Node
    from plugrad.tensor.dual import Tangent
    from plugrad.tensor.views import ViewInfo


# A weak reference to a tensor, and what its sizes, strides and storage offset were.
Geometry = tuple[Any, tuple[int, ...], tuple[int, ...], int]


@final
class Storage:
    """What a tensor shares with its views: the number of writes to their memory, and whether there
    are views, which matters for immutable arrays.

    `geometries` are former geometries of tensors that had views, before operators such as `t_`
    changed them: a weak reference to the tensor, sizes, strides, offset.
    """

    def __init__(self) -> None:
        self.version: i64 = 0
        self.has_views: bool = False
        self.geometries: list[Geometry] | None = None


_NUMPY: Final[Any] = np.ndarray
# What `as_size` calls, without a call of a function of Python.
_new_tuple: Final[Any] = tuple.__new__

OWN_GRAD_DTYPE: Final = 0
ANY_GRAD_DTYPE: Final = -1


@final
class AutogradMeta:
    """What autograd keeps for a tensor; made only when a tensor needs it.

    Attributes:
        grad: the accumulated gradient of a leaf, or of a tensor that retains it.
        grad_fn: the node that made the tensor; None for a leaf.
        output_nr: which output of `grad_fn` it is.
        requires_grad: the setting of a leaf.
        accumulator: weak reference to the leaf's AccumulateGrad node.
        hooks: gradient hooks by handle number, in order of registration.
        post_hooks: hooks to run after accumulation into a leaf.
        grad_dtype: the dtype of a leaf's gradient: `OWN_GRAD_DTYPE`, `ANY_GRAD_DTYPE` or 1 more
            than the index of a dtype. It is this small because every tensor of a graph has one.
        tangent: the tensor's tangent in forward mode, if it is a dual tensor.
    """

    def __init__(self) -> None:
        self.grad: TensorBase | None = None
        self.grad_fn: Node | None = None
        self.output_nr: i32 = 0
        self.requires_grad: bool = False
        self.retains_grad: bool = False
        self.grad_dtype: i16 = OWN_GRAD_DTYPE
        self.accumulator: Any = None
        self.tangent: Tangent | None = None
        self.hooks: dict[int, Any] | None = None
        self.post_hooks: dict[int, Any] | None = None


def _keep_until_here(value: object) -> None:
    """Do nothing, with a value that lives until then.

    A compiled assignment frees what an attribute was before it puts the new value in place.
    Freeing an array may let other threads go on, as JAX does, and these must not find it there.
    """


@mypyc_attr(allow_interpreted_subclasses=True)
class TensorBase:
    """The fields of a tensor.

    A subclass may have attributes of any name, `array` among them: the core reads those that begin
    with an underscore, and `dtype` and `device`.

    Attributes:
        dtype: the type of the elements, such as `plugrad.float32`.
        device: where the elements are, such as `device(type='cpu')`.
    """

    _autograd_meta: AutogradMeta | None = None
    _shared_storage: Storage | None = None
    _view_info: ViewInfo | None = None
    _known_sizes: tuple[int, ...] | None = None

    def __init__(self, array: Any, dtype: DType, device: Device, keyset: i64) -> None:
        self._backend_array: Any = array
        self.dtype: DType = dtype
        self.device: Device = device
        self._keyset: i64 = keyset

    @property
    def array(self) -> Any:
        """The elements, as an array of the backend's library.

        To write to it is not noticed by autograd.

        >>> import plugrad
        >>> plugrad.tensor([1.0, 2.0]).array
        array([1., 2.], dtype=float32)
        """
        return self._backend_array

    @array.setter
    def array(self, value: Any) -> None:
        self._backend_array = value

    @property
    @final
    def shape(self) -> Size:
        """The lengths along each dimension.

        >>> import plugrad
        >>> plugrad.zeros(2, 3).shape, plugrad.tensor(1.0).shape
        (plugrad.Size([2, 3]), plugrad.Size([]))
        """
        shape: Size = _new_tuple(Size, sizes_of(self))
        return shape

    @property
    @final
    def ndim(self) -> int:
        """The number of dimensions.

        >>> import plugrad
        >>> plugrad.zeros(2, 3).ndim, plugrad.tensor(1.0).ndim
        (2, 0)
        """
        return len(sizes_of(self))

    @final
    def dim(self) -> int:
        """The number of dimensions.

        >>> import plugrad
        >>> plugrad.zeros(2, 3).dim()
        2
        """
        return len(sizes_of(self))

    @final
    def is_floating_point(self) -> bool:
        """Whether the dtype is a floating point one.

        >>> import plugrad
        >>> plugrad.ones(2).is_floating_point(), plugrad.tensor([1 + 2j]).is_floating_point()
        (True, False)
        """
        return self.dtype.is_floating_point

    @final
    def is_complex(self) -> bool:
        """Whether the dtype is complex.

        >>> import plugrad
        >>> plugrad.tensor([1 + 2j]).is_complex()
        True
        """
        return self.dtype.is_complex

    @final
    def numel(self) -> int:
        """The number of elements.

        >>> import plugrad
        >>> plugrad.zeros(2, 3, 4).numel(), plugrad.tensor(1.0).numel()
        (24, 1)
        """
        return numel_of(self)

    @final
    def is_inference(self) -> bool:
        """Whether the tensor was made in inference mode, and autograd must not see it.

        >>> import plugrad
        >>> with plugrad.inference_mode():
        ...     x = plugrad.ones(2)
        >>> x.is_inference(), (x + 1).is_inference(), x.clone().is_inference()
        (True, False, False)
        """
        return is_inference(self)


# Functions, and no methods: compiled code would look up the name of a method, since the class has
# interpreted subclasses; and users would find them among what is theirs.


def sizes_of(tensor: TensorBase) -> tuple[int, ...]:
    """The shape as a plain tuple."""
    sizes = tensor._known_sizes
    if sizes is None:
        array: Any = tensor._backend_array
        # Other libraries have lengths, and tuples of them, of their own classes.
        shape = array_shape(array)
        sizes = shape if type(array) is _NUMPY else whole_numbers(shape, array)
        tensor._known_sizes = sizes
    return sizes


def ndim_of(tensor: TensorBase) -> int:
    """The number of dimensions."""
    return len(sizes_of(tensor))


def numel_of(tensor: TensorBase) -> int:
    """The number of elements."""
    count = 1
    for size in sizes_of(tensor):
        count *= size
    return count


def whole_numbers(found: Any, array: Any) -> tuple[int, ...]:
    """The dimensions of an array as a plain tuple of Python's integers.

    Raises:
        TypeError: an element is not an integer, for example a length unknown to the library.
    """
    plain = type(found) is tuple
    if plain:
        for item in found:
            if not isinstance(item, int):
                plain = False
    if plain:
        same: tuple[int, ...] = found
        return same
    try:
        return tuple([index(item) for item in found])
    except TypeError as error:
        cls = type(array)
        raise TypeError(
            f"an array of type {cls.__module__}.{cls.__qualname__} must have whole numbers for "
            f"shape and strides, got {found!r}: {error}"
        ) from error


def version_of(tensor: TensorBase) -> i64:
    """How often the tensor's memory was written to."""
    storage = tensor._shared_storage
    return 0 if storage is None else storage.version


def counted_version(tensor: TensorBase) -> i64:
    """How often the tensor's memory was written to.

    Raises:
        RuntimeError: it is an inference tensor.
    """
    if is_inference(tensor):
        raise RuntimeError("Inference tensors do not track version counter.")
    return version_of(tensor)


def is_inference(tensor: TensorBase) -> bool:
    """Whether a tensor was made in inference mode, and autograd must not see it."""
    return tensor._keyset & AUTOGRAD_KEYS == 0


def needs_grad(tensor: TensorBase) -> bool:
    """Whether operations on a tensor are recorded (grad mode apart).

    >>> import plugrad
    >>> weight = plugrad.ones(2, requires_grad=True)
    >>> weight.requires_grad, (weight * 2).requires_grad, weight.detach().requires_grad
    (True, True, False)
    """
    if tensor._view_info is not None:
        return view_needs_grad(tensor)
    meta = tensor._autograd_meta
    return meta is not None and (meta.requires_grad or meta.grad_fn is not None)


def share_storage(tensor: TensorBase) -> Storage:
    """The storage, created on first use."""
    storage = tensor._shared_storage
    if storage is None:
        storage = Storage()
        tensor._shared_storage = storage
    return storage


def bump_version(tensor: TensorBase) -> None:
    """Record a write to the memory.

    Raises:
        RuntimeError: it belongs to an inference tensor, and this is not inference mode.
    """
    if is_inference(tensor) and not current_state().inference_mode:
        raise RuntimeError(
            "Inplace update to inference tensor outside InferenceMode is not allowed.You can make "
            "a clone to get a normal tensor before doing inplace update.See "
            "https://github.com/pytorch/rfcs/pull/17 for more details."
        )
    storage = share_storage(tensor)
    storage.version += 1


def keyset_without_tangent(tensor: TensorBase) -> i64:
    """The key set of another tensor around the same array, which is not a dual tensor."""
    return tensor._keyset & ~FORWARD_AD_BIT


def materialize_meta(tensor: TensorBase) -> AutogradMeta:
    meta = tensor._autograd_meta
    if meta is None:
        meta = AutogradMeta()
        tensor._autograd_meta = meta
    return meta


def replace_array(tensor: TensorBase, array: Any) -> None:
    """Put another array in place of a tensor's, as set_data and immutable backends do."""
    former: Any = tensor._backend_array
    tensor._backend_array = array
    tensor._known_sizes = None
    _keep_until_here(former)


def detached(tensor: TensorBase) -> TensorBase:
    """A tensor with the same array and version counter, outside the graph."""
    keyset = keyset_without_tangent(tensor)
    result = make_tensor(tensor._backend_array, tensor.dtype, tensor.device, keyset)
    result._keyset = keyset
    result._shared_storage = share_storage(tensor)
    result._known_sizes = tensor._known_sizes
    note_alias(result, tensor)
    return result


@final
class _Aliases:
    """Holds the function that is called for tensors that share an immutable array."""

    def __init__(self) -> None:
        self.listener: Any = None


_sharing: Final = _Aliases()


def set_alias_listener(listener: Any) -> None:
    """Call `listener(tensor, source)` for each tensor that must follow writes to another one, on
    backends with immutable arrays."""
    _sharing.listener = listener


def note_alias(tensor: TensorBase, source: TensorBase) -> None:
    """Note that `tensor` has the elements of `source`, also after those are written to."""
    if source._keyset & FUNCTIONALIZE_BIT:
        _sharing.listener(tensor, source)


def view_needs_grad(tensor: TensorBase) -> bool:
    """Whether a view requires grad: by itself or because its base does."""
    meta = tensor._autograd_meta
    if meta is not None and (meta.requires_grad or meta.grad_fn is not None):
        return True
    view = tensor._view_info
    if view is None:
        return False
    above = view.base._autograd_meta
    return above is not None and (above.requires_grad or above.grad_fn is not None)


@final
class _Classes:
    """The interpreted classes that native code makes; `plugrad._tensor.classes` fills them in."""

    def __init__(self) -> None:
        self.tensor: Any = TensorBase


_classes: Final = _Classes()


def set_tensor_class(cls: Any, native: Any) -> None:
    """Set the class of new tensors for native code, and its native base class."""
    _classes.tensor = cls
    hold_tensor_class(cls, native)


def tensor_class() -> Any:
    return _classes.tensor


def empty_shell(cls: Any) -> TensorBase:
    """A tensor of a class, without contents."""
    made: TensorBase = new_tensor(cls)
    if WATCH.threads > 0:
        note_made(made)
    return made


def note_made(tensor: TensorBase) -> None:
    """Notify the thread's array log, if there is one, of a new tensor, which may have no
    contents."""
    log = current_state().array_log
    if log is not None:
        log.made(tensor)


def note_read(tensor: TensorBase) -> None:
    """Notify the thread's array log, if there is one, before Python reads values."""
    log = current_state().array_log
    if log is not None:
        log.read(tensor)


def note_grad(tensor: TensorBase) -> None:
    """Notify the thread's array log, if there is one, before Python assigns `.grad`."""
    log = current_state().array_log
    if log is not None:
        log.grad_assigned(tensor)


def make_tensor(array: Any, dtype: DType, device: Device, keyset: i64) -> TensorBase:
    """A new tensor of the public class; `keyset` is its backend's `tensor_keyset`.

    In inference mode it is an inference tensor, which lacks autograd's keys.
    """
    # Fields are set natively: passing them through the class call costs half as much again.
    result: TensorBase = new_tensor(_classes.tensor)
    result._backend_array = array
    result.dtype = dtype
    result.device = device
    if WATCH.threads > 0:
        note_made(result)
        if current_state().inference_mode:
            keyset = keyset & ~AUTOGRAD_KEYS
    result._keyset = keyset
    return result


def wrap(array: Any, dtype: DType, device: Device) -> TensorBase:
    """A new tensor of the public class around a backend's array."""
    return make_tensor(array, dtype, device, find_backend(device.type).tensor_keyset)
