"""The interpreted subclasses of native classes: with weak references and free attributes.

`Tensor` also has the methods that are not operators; each delegates to compiled code.
"""

from __future__ import annotations

# Interpreted: native classes have no weak references and no free attributes; these have.
import inspect
from typing import Any

from plugrad._generated import calls, functions
from plugrad._generated.methods import TensorMethods
from plugrad._tensor import namespace
from plugrad._tensor import numpy_functions as _numpy_functions
from plugrad._tensor.on_demand import OnDemandMethods
from plugrad._torch_names.attributes import TensorAttributes
from plugrad._torch_names.older_names import OlderNames
from plugrad.autograd.imperative_engine import DEFAULT_ENGINE
from plugrad.autograd.run_backward import backward
from plugrad.autograd.variable import accumulate_grad, grad_dtype, properties
from plugrad.autograd.variable import hooks as retain
from plugrad.device import Device, as_device
from plugrad.dispatch.device_block import DeviceBlock
from plugrad.dispatch.scope import is_made_for_with
from plugrad.graph import history
from plugrad.graph.node import Node
from plugrad.graph.saved_tensor import saved_attribute, saved_attribute_names
from plugrad.memory_format import contiguous_format
from plugrad.ops.composite.constructor import constructed
from plugrad.ops.composite.selection import getitem
from plugrad.ops.prepare.reductions import wrap_dim
from plugrad.tensor import base, printing
from plugrad.tensor.aliasing import layout
from plugrad.tensor.base import TensorBase, sizes_of
from plugrad.tensor.calls.annotations import (
    explain_receivers,
    guard_receivers,
    wrong_receiver,
)
from plugrad.tensor.calls.arguments import int_argument, memory_format_argument
from plugrad.tensor.calls.overridable import OVERRIDES, declare_subclass
from plugrad.tensor.interop import arrays, copying, dlpack, values
from plugrad.tensor.size import as_size


class AccumulateGrad(accumulate_grad.AccumulateGradBase):
    """The node at a leaf; the leaf refers to it weakly."""


@explain_receivers
class Tensor(TensorAttributes, OlderNames, OnDemandMethods, TensorMethods):
    """A multi-dimensional array of one dtype on one device, which autograd can follow.

    Make tensors with `plugrad.tensor(data)` and factory functions such as `plugrad.zeros`. If
    `requires_grad` is True, autograd records the operators that use the tensor, and `backward()`
    writes its gradient to `.grad`.

    >>> import plugrad
    >>> x = plugrad.tensor([[1., 2., 3.], [4., 5., 6.]], requires_grad=True)
    >>> x.shape, x.dtype, x.device
    (plugrad.Size([2, 3]), plugrad.float32, device(type='cpu'))
    >>> (x * x).sum().backward()
    >>> x.grad
    tensor([[ 2.,  4.,  6.],
            [ 8., 10., 12.]])
    """

    __module__ = "plugrad"
    _printed_as = "tensor"
    _execution_engine: Any = DEFAULT_ENGINE

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """A tensor of given sizes, or with given data, of the default dtype."""
        made: Any = constructed(args, kwargs)
        if cls is not Tensor:
            made.__class__ = cls
        return made

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Nothing to do: `__new__` made the tensor."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        declare_subclass(cls)

    @classmethod
    def __plugrad_function__(
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Call `func` and give its results this class; see `plugrad.overrides`."""
        return OVERRIDES.machinery.default_implementation(cls, func, types, args, kwargs)

    __torch_function__ = __plugrad_function__

    requires_grad = property(
        base.needs_grad, properties.set_requires_grad, properties.refuse_deletion
    )
    grad = property(
        properties.grad_of, properties.set_grad, lambda self: properties.set_grad(self, None)
    )
    grad_fn = property(history.grad_fn_of)
    _grad_fn = property(history.grad_fn_of, properties.set_grad_fn, properties.refuse_deletion)
    grad_dtype = property(grad_dtype.grad_dtype_of, grad_dtype.set_grad_dtype)
    _backward_hooks = property(
        retain.backward_hooks, retain.set_backward_hooks, retain.delete_backward_hooks
    )
    _post_accumulate_grad_hooks = property(
        retain.post_accumulate_grad_hooks,
        retain.set_post_accumulate_grad_hooks,
        retain.delete_post_accumulate_grad_hooks,
    )
    is_leaf = property(properties.is_leaf)
    output_nr = property(properties.output_nr)
    data = property(properties.data_of, properties.set_data, properties.refuse_deletion)
    _version = property(base.counted_version)
    T = property(functions.numpy_T)
    mT = property(functions.mT)
    H = property(functions.matrix_H)
    mH = property(functions.mH)
    real = property(functions.real)
    imag = property(functions.imag)

    def size(self, dim: int | None = None) -> Any:
        """The shape, or the size of dimension `dim`.

        >>> import plugrad
        >>> x = plugrad.zeros(2, 3)
        >>> x.size(), x.size(-1)
        (plugrad.Size([2, 3]), 3)
        """
        try:
            sizes = sizes_of(self)
        except AttributeError:
            raise wrong_receiver("size", self) from None
        if dim is None:
            return as_size(sizes)
        dim = int_argument(dim, "size", "dim", 1)
        if not -len(sizes) <= dim < max(len(sizes), 1):
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-max(len(sizes), 1)}, "
                f"{max(len(sizes), 1) - 1}], but got {dim})"
            )
        return sizes[dim]

    ndimension = TensorMethods.dim

    def nelement(self) -> int:
        """The number of elements.

        >>> import plugrad
        >>> plugrad.zeros(2, 3).nelement()
        6
        """
        return self.numel()

    def element_size(self) -> int:
        """Bytes per element.

        >>> import plugrad
        >>> plugrad.zeros(2).element_size(), plugrad.zeros(2, dtype=plugrad.float16).element_size()
        (4, 2)
        """
        return int(self.dtype.itemsize)

    @property
    def itemsize(self) -> int:
        """Bytes per element.

        >>> import plugrad
        >>> plugrad.zeros(2, dtype=plugrad.int64).itemsize
        8
        """
        return int(self.dtype.itemsize)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements.

        >>> import plugrad
        >>> plugrad.zeros(2, 3, dtype=plugrad.float64).nbytes
        48
        """
        return self.numel() * int(self.dtype.itemsize)

    def stride(self, dim: int | None = None) -> Any:
        """The strides, in elements, of all dimensions or of dimension `dim`.

        >>> import plugrad
        >>> plugrad.zeros(2, 3).t().stride()
        (1, 3)
        """
        strides = layout.strides(self)
        if dim is None:
            return strides
        if not strides:
            raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
        return strides[wrap_dim(int_argument(dim, "stride", "dim", 1), len(strides))]

    def storage_offset(self) -> int:
        """The position of the first element in the storage, in elements.

        >>> import plugrad
        >>> plugrad.arange(6).view(2, 3)[1].storage_offset()
        3
        """
        return layout.storage_offset(self)

    def is_contiguous(self, *, memory_format: Any = contiguous_format) -> bool:
        """Whether elements are in memory without gaps, in row-major order or a memory format's.

        >>> import plugrad
        >>> plugrad.zeros(2, 3).t().is_contiguous()
        False
        """
        wanted = memory_format_argument(memory_format, "is_contiguous", "memory_format", 0)
        return layout.is_contiguous(self, wanted)

    def is_signed(self) -> bool:
        """Whether the dtype has negative values.

        >>> import plugrad
        >>> plugrad.tensor([1.0]).is_signed(), plugrad.tensor([1], dtype=plugrad.uint8).is_signed()
        (True, False)
        """
        return bool(self.dtype.is_signed)

    @property
    def is_cpu(self) -> bool:
        """Whether the tensor is on the host.

        >>> import plugrad
        >>> plugrad.ones(2).is_cpu, plugrad.ones(2, device="meta").is_cpu
        (True, False)
        """
        return bool(self.device.type == "cpu")

    @property
    def _base(self) -> Any:
        """The tensor that this one is a view of, or None."""
        return None if self._view_info is None else self._view_info.base

    def _is_view(self) -> bool:
        return self._view_info is not None

    @property
    def retains_grad(self) -> bool:
        """Whether a non-leaf keeps its gradient.

        >>> import plugrad
        >>> y = plugrad.ones(2, requires_grad=True) * 3
        >>> y.retains_grad
        False
        >>> y.retain_grad()
        >>> y.retains_grad
        True
        """
        return self._autograd_meta is not None and bool(self._autograd_meta.retains_grad)

    def backward(
        self,
        gradient: Any = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        inputs: Any = None,
    ) -> None:
        """Compute gradients of this tensor and add them to `.grad` of the graph's leaves.

        Gradients accumulate: set `.grad` to None, or call an optimizer's `zero_grad()`, between
        steps.

        Args:
            gradient: the vector of the vector-Jacobian product, of this tensor's shape; may be
                None if the tensor has one element.
            retain_graph: keep the saved tensors, so that backward can run again; default
                `create_graph`.
            create_graph: record the computation of the gradients, for higher derivatives.
            inputs: accumulate only into these tensors, given as one or as a sequence; default
                all leaves.

        Raises:
            RuntimeError: the tensor does not require grad, has more than one element and no
                `gradient` was given, a shape does not fit, `inputs` is empty, or an earlier
                backward freed the graph.

        >>> import plugrad
        >>> x = plugrad.tensor([1., 2., 3.], requires_grad=True)
        >>> y = x * x                          # (3,)
        >>> y.sum().backward()
        >>> x.grad
        tensor([2., 4., 6.])
        >>> x.grad = None
        >>> (x * x).backward(plugrad.tensor([1., 0., 10.]))
        >>> x.grad
        tensor([ 2.,  0., 60.])
        """
        tensor: Any = self
        backward(tensor, gradient, retain_graph, create_graph, inputs=inputs)

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Set `requires_grad` in place and return the tensor.

        Raises:
            RuntimeError: the tensor is not a leaf and `requires_grad` is False, or its dtype is
                neither floating point nor complex.

        >>> import plugrad
        >>> plugrad.zeros(2).requires_grad_()
        tensor([0., 0.], requires_grad=True)
        """
        properties.requires_grad_(self, requires_grad)
        return self

    def detach_(self) -> Tensor:
        """Detach the tensor from the graph in place, which makes it a leaf, and return it.

        Raises:
            RuntimeError: the tensor is a view; use `detach()`.

        >>> import plugrad
        >>> y = plugrad.ones(2, requires_grad=True) * 2
        >>> y.detach_()
        tensor([2., 2.])
        """
        properties.detach_(self)
        return self

    def retain_grad(self) -> None:
        """Make backward keep the gradient of a non-leaf in `.grad`; a leaf keeps its own anyway.

        Raises:
            RuntimeError: the tensor does not require grad.

        >>> import plugrad
        >>> x = plugrad.tensor([1., 2.], requires_grad=True)
        >>> y = x * 3
        >>> y.retain_grad()
        >>> (y * y).sum().backward()
        >>> y.grad
        tensor([ 6., 12.])
        """
        retain.retain_grad(self)

    def register_hook(self, hook: Any) -> Any:
        """Call `hook(grad)` in every backward pass, once this tensor's gradient is computed.

        If the hook returns a tensor, it replaces the gradient; if it returns None, the gradient
        stays. The hook must not change `grad` in place.

        Returns:
            A handle; its `remove()` removes the hook.

        Raises:
            RuntimeError: the tensor does not require grad.

        >>> import plugrad
        >>> x = plugrad.tensor([1., 2.], requires_grad=True)
        >>> handle = x.register_hook(lambda grad: grad * 10)
        >>> (x * x).sum().backward()
        >>> x.grad
        tensor([20., 40.])
        >>> handle.remove()
        """
        return retain.register_hook(self, hook)

    def register_post_accumulate_grad_hook(self, hook: Any) -> Any:
        """Call `hook(tensor)` each time backward has accumulated a gradient into this leaf.

        The hook can use `tensor.grad`, for example to update the parameter at once.

        Returns:
            A handle; its `remove()` removes the hook.

        Raises:
            RuntimeError: the tensor does not require grad, or is not a leaf.

        >>> import plugrad
        >>> x = plugrad.tensor([1., 2.], requires_grad=True)
        >>> handle = x.register_post_accumulate_grad_hook(lambda leaf: print(leaf.grad))
        >>> (x * x).sum().backward()
        tensor([2., 4.])
        """
        return retain.register_post_accumulate_grad_hook(self, hook)

    @staticmethod
    def _make_subclass(cls: Any, data: Any, require_grad: bool = False) -> Any:
        """A leaf of class `cls` that shares `data`'s memory."""
        if not isinstance(data, TensorBase):
            raise TypeError(
                "_make_subclass(): argument 'data' (position 2) must be Tensor, not "
                f"{type(data).__name__}"
            )
        return properties.make_leaf(_subclass(cls), data, require_grad)

    def as_subclass(self, cls: Any) -> Any:
        """A view of the whole tensor with the class `cls`, in the graph.

        >>> import plugrad
        >>> class Metres(plugrad.Tensor):
        ...     pass
        >>> x = plugrad.ones(2, requires_grad=True)
        >>> length = x.as_subclass(Metres)
        >>> type(length).__name__, length.grad_fn is not None
        ('Metres', True)
        """
        made = calls.call_alias(self)
        made.__class__ = _subclass(cls)
        return made

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return printing.tensor_repr(self)

    def _repr_html_(self) -> str:
        from plugrad._notebooks import tensor_html  # only notebooks need it

        return tensor_html(self)

    __hash__ = TensorMethods.__hash__

    def __getitem__(self, index: Any) -> Any:
        return getitem.getitem(self, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        getitem.setitem(self, index, value)

    def __len__(self) -> int:
        return values.length(self)

    def __iter__(self) -> Any:
        return values.iterate(self)

    def __reversed__(self) -> Any:
        return self.flip(0) if self.ndim else self

    def __contains__(self, element: Any) -> bool:
        return values.contains(self, element)

    def __bool__(self) -> bool:
        return values.to_bool(self)

    def __int__(self) -> int:
        return values.to_int(self)

    def __float__(self) -> float:
        return values.to_float(self)

    def __complex__(self) -> complex:
        return values.to_complex(self)

    def __index__(self) -> int:
        return values.index(self)

    def __format__(self, spec: str) -> str:
        return values.to_format(self, spec)

    def tolist(self) -> Any:
        """The elements as nested lists of Python numbers; of a 0-dim tensor, one number.

        >>> import plugrad
        >>> plugrad.tensor([[1, 2], [3, 4]]).tolist()
        [[1, 2], [3, 4]]
        """
        return values.tolist(self)

    def numpy(self, *, force: bool = False) -> Any:
        """The tensor as a NumPy array, which shares its memory.

        Args:
            force: detach the tensor, copy it to the host and resolve its conjugation first, as
                needed.

        Raises:
            RuntimeError: the tensor requires grad while grad mode is on, or is lazily conjugated.
            TypeError: the tensor is not on the host.

        >>> import plugrad
        >>> plugrad.tensor([1., 2.]).numpy()
        array([1., 2.], dtype=float32)
        """
        return arrays.to_numpy(self, force=force)

    __array_priority__ = 1000

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return arrays.array(self, dtype, copy)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """NumPy's operators and universal functions; see `plugrad._tensor.numpy_functions`."""
        return _numpy_functions.array_ufunc(ufunc, method, inputs, options)

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        return arrays.array_wrap(self, array, context, return_scalar)

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: Any = None,
        dl_device: Any = None,
        copy: bool | None = None,
    ) -> Any:
        given = {
            "stream": stream,
            "max_version": max_version,
            "dl_device": dl_device,
            "copy": copy,
        }
        # Older arrays reject the newer options, so only those that are given are passed on.
        options = {name: value for name, value in given.items() if value is not None}
        return dlpack.dlpack(self, **options)

    def __dlpack_device__(self) -> Any:
        return dlpack.dlpack_device(self)

    def __array_namespace__(self, /, *, api_version: str | None = None) -> Any:
        """The functions of the Python array API standard; see `plugrad.array_api`."""
        return namespace.array_namespace(api_version)

    def to_device(self, device: Any, /, *, stream: Any = None) -> Any:
        """The tensor on another device, as the array API standard calls `to`.

        >>> import plugrad
        >>> plugrad.ones(2, 3).to_device("meta").device
        device(type='meta')
        """
        if stream is not None:
            raise ValueError("to_device(): stream must be None, devices have queues of their own")
        return self.to(device)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return copying.reduce_ex(self, protocol)

    def __setstate__(self, state: Any) -> None:
        copying.set_state(self, state)

    def __deepcopy__(self, memo: Any) -> Any:
        return copying.deepcopy(self, memo)


if inspect.isfunction(vars(TensorMethods)["item"]):  # The core is interpreted.
    guard_receivers(TensorBase)
    guard_receivers(TensorMethods)
    guard_receivers(Tensor)


def _subclass(cls: Any) -> Any:
    """Check that tensors can be of a class."""
    if not isinstance(cls, type):
        raise TypeError(f"cls must be a type (got {type(cls).__name__})")
    if not issubclass(cls, Tensor):
        raise TypeError(
            "Creating a Tensor subclass from a class that does not inherit from Tensor is not "
            "possible. Make sure your class inherits from Tensor."
        )
    return cls


class _DeviceType(type):
    def __call__(cls, device: Any, index: int | None = None) -> Any:
        found = as_device(device, index)
        return DeviceBlock(found) if is_made_for_with() else found

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Device)


class device(metaclass=_DeviceType):
    """The device of a tensor: ``plugrad.device("cuda:1")`` or ``plugrad.device("cuda", 1)``.

    Equal devices are one object. As a context manager it sets the default device of its block.

    Raises:
        RuntimeError: the string is not a device, or has an index beside `index`.

    >>> import plugrad
    >>> plugrad.device("cpu")
    device(type='cpu')
    >>> with plugrad.device("meta"):
    ...     plugrad.zeros(2).device
    device(type='meta')
    """

    __module__ = "plugrad"


def _node_getattr(node: Node, name: str) -> Any:
    return saved_attribute(node, name)


def _node_dir(node: Node) -> list[str]:
    return [*object.__dir__(node), *saved_attribute_names(node)]


# mypyc allows no `__getattr__` on a class that has interpreted subclasses.
setattr(Node, "__getattr__", _node_getattr)  # noqa: B010  # mypy forbids the assignment
setattr(Node, "__dir__", _node_dir)  # noqa: B010
base.set_tensor_class(Tensor, TensorMethods)
history.set_accumulate_grad_class(AccumulateGrad)
