"""Methods that older PyTorch programs call, or that call a Python function for each element."""

from __future__ import annotations

# Interpreted: it is mixed into an interpreted class.
from collections.abc import Callable
from typing import Any, NoReturn

from plugrad._generated import functions as F
from plugrad._torch_names.sharing import is_shared, share_memory
from plugrad.autograd.grad_mode import no_grad
from plugrad.tensor.base import TensorBase
from plugrad.tensor.calls.annotations import explain_receivers, explains, wrong_receiver
from plugrad.tensor.creation.from_data import tensor

_REMOVED = "{0}() is gone from PyTorch since version 1.9; use plugrad.linalg.{1}() instead"


def _never(doc: str) -> property:
    return property(lambda self: False, doc=doc)


def _check_no_grad(self: Any, name: str) -> None:
    if self.requires_grad:
        raise RuntimeError(
            f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() "
            "instead."
        )


def _mapped(name: str, function: Callable[..., Any], self: Any, *others: Any) -> Any:
    """`function` of the elements of all, written into the first tensor."""
    for operand in (self, *others):
        _check_no_grad(operand, name)
    if not callable(function):
        raise TypeError(f"'{type(function).__name__}' object is not callable")
    rows = [self.reshape(-1).tolist()] if not self.is_meta else []
    for other in others:
        if other.dtype is not self.dtype:
            raise TypeError(f"{name}: expected {self.type()} for 'other' (got {other.type()})")
        wide = other.expand(self.shape)
        if rows:
            rows.append(wide.reshape(-1).tolist())
    if rows:
        found = [function(*values) for values in zip(*rows, strict=True)]
        with no_grad():
            self.copy_(tensor(found, dtype=self.dtype, device=self.device).reshape(self.shape))
    return self


@explain_receivers
class OlderNames:
    """Mixed into `Tensor`."""

    is_xla = _never("Whether it lives on a device of XLA's: never.")
    is_ipu = _never("Whether it lives on Graphcore's: never.")
    is_maia = _never("Whether it lives on Microsoft's: never.")
    is_mtia = _never("Whether it lives on Meta's: never.")
    is_vulkan = _never("Whether it is Vulkan's: never.")

    def __rdiv__(self: Any, other: Any) -> Any:
        return F.mul(F.reciprocal(self), other)

    def __div__(self: Any, other: Any) -> Any:
        return F.div(self, other)

    def __idiv__(self: Any, other: Any) -> Any:
        if not isinstance(self, TensorBase):
            raise wrong_receiver("__idiv__", self)
        return F.div_(self, other)

    def __long__(self: Any) -> int:
        tensor: Any = self
        if not isinstance(tensor, TensorBase):
            raise wrong_receiver("__long__", tensor)
        return int(self.item())

    def __nonzero__(self: Any) -> bool:
        return bool(self)

    def __delitem__(self, index: Any) -> None:
        raise TypeError("Tensor does not support deleting items")

    def apply_(self: Any, callable: Callable[[Any], Any]) -> Any:
        """Replace each element by the result of a Python function of it; slow.

        Raises:
            RuntimeError: the tensor requires grad.

        >>> import plugrad
        >>> plugrad.tensor([1.0, 2.0]).apply_(lambda x: x**2 + 1)
        tensor([2., 5.])
        """
        return _mapped("apply_", callable, self)

    @explains
    def map_(self: Any, other: TensorBase, callable: Callable[[Any, Any], Any]) -> Any:
        """Replace each element by the result of a Python function of it and of the element of
        `other`, which must have the same dtype and broadcasts; slow.

        Raises:
            RuntimeError: one of the tensors requires grad, or the shapes do not fit.
            TypeError: the dtypes differ.

        >>> import plugrad
        >>> plugrad.tensor([1.0, 2.0]).map_(plugrad.tensor([10.0, 20.0]), lambda x, y: x + y)
        tensor([11., 22.])
        """
        return _mapped("map_", callable, self, other)

    @explains
    def map2_(
        self: Any, x: TensorBase, y: TensorBase, callable: Callable[[Any, Any, Any], Any]
    ) -> Any:
        """`map_` with two other tensors.

        Raises:
            RuntimeError: one of the tensors requires grad, or the shapes do not fit.
            TypeError: the dtypes differ.

        >>> import plugrad
        >>> x, y = plugrad.tensor([10.0, 20.0]), plugrad.tensor([100.0, 200.0])
        >>> plugrad.tensor([1.0, 2.0]).map2_(x, y, lambda a, b, c: a + b + c)
        tensor([111., 222.])
        """
        return _mapped("map2_", callable, self, x, y)

    def chalf(self, *, memory_format: Any = None) -> NoReturn:
        """Complex numbers of 16-bit floats, of which no array library has arithmetic.

        Raises:
            NotImplementedError: always.

        >>> import plugrad
        >>> plugrad.ones(2).cfloat().dtype
        plugrad.complex64
        """
        raise NotImplementedError(
            "Tensor.chalf(): there is no dtype complex32, because neither NumPy, CuPy nor JAX has "
            "complex numbers of 16-bit floats; use cfloat() for complex64"
        )

    def const_data_ptr(self: Any) -> int:
        """`data_ptr`, for memory that is only read.

        Raises:
            RuntimeError: the backend's arrays have no address.

        >>> import plugrad
        >>> x = plugrad.arange(4)
        >>> x.const_data_ptr() == x.data_ptr()
        True
        """
        return int(self.data_ptr())

    def dense_dim(self: Any) -> int:
        """The number of dimensions: all are dense.

        >>> import plugrad
        >>> plugrad.ones(2, 3).dense_dim()
        2
        """
        return int(self.ndim)

    def sparse_dim(self) -> int:
        """0: no dimension is sparse.

        >>> import plugrad
        >>> plugrad.ones(2, 3).sparse_dim()
        0
        """
        return 0

    def to_dense(self: Any, dtype: Any = None, *, masked_grad: bool | None = None) -> Any:
        """The tensor itself, which is dense, or in another dtype.

        >>> import plugrad
        >>> x = plugrad.ones(2)
        >>> x.to_dense() is x, x.to_dense(plugrad.float64).dtype
        (True, plugrad.float64)
        """
        return self if dtype is None else self.to(dtype)

    def is_distributed(self) -> bool:
        """False: a tensor is on one machine.

        >>> import plugrad
        >>> plugrad.ones(2).is_distributed()
        False
        """
        return False

    def is_shared(self: Any) -> bool:
        """Whether other processes see the memory; on a GPU always, as in PyTorch.

        >>> import plugrad
        >>> x = plugrad.ones(2)
        >>> x.is_shared(), x.share_memory_().is_shared()
        (False, True)
        """
        return bool(self.is_cuda) or is_shared(self)

    def share_memory_(self: Any) -> Any:
        """Move the memory to where other processes see it, with all views; returns the tensor.

        On a GPU there is nothing to do.

        Raises:
            NotImplementedError: the device's arrays cannot live there, or plugrad-nn, which has
                `plugrad.multiprocessing`, is not installed.

        >>> import plugrad
        >>> x = plugrad.zeros(3)
        >>> row = x[1:]
        >>> _ = x.share_memory_()
        >>> _ = row.fill_(5)
        >>> x, row.is_shared()
        (tensor([0., 5., 5.]), True)
        """
        if not self.is_cuda:
            share_memory(self)
        return self

    def storage_type(self: Any) -> Any:
        """The class of `storage()`.

        >>> import plugrad
        >>> plugrad.ones(2).storage_type().__name__
        'TypedStorage'
        """
        return type(self.storage())

    def module_load(self: Any, other: Any, assign: bool = False) -> Any:
        """What becomes of `self`, a parameter or buffer, when `other` is loaded into it.

        With `assign` it is `other`, else `self` with the elements of `other`; detached.

        >>> import plugrad
        >>> own, loaded = plugrad.zeros(2), plugrad.ones(2)
        >>> own.module_load(loaded)
        tensor([1., 1.])
        >>> own.module_load(loaded, assign=True).data_ptr() == loaded.data_ptr()
        True
        """
        return other.detach() if assign else self.copy_(other).detach()

    def resize(self: Any, *sizes: Any) -> Any:
        """`reshape` under a name that PyTorch no longer recommends.

        Raises:
            RuntimeError: the number of elements differs.

        >>> import plugrad
        >>> plugrad.arange(6).resize(2, 3)
        tensor([[0, 1, 2],
                [3, 4, 5]])
        """
        wanted = sizes[0] if len(sizes) == 1 and isinstance(sizes[0], (list, tuple)) else sizes
        count = 1
        for size in wanted:
            count *= size
        if count != self.numel():
            raise RuntimeError(
                f"requested resize to {'x'.join(map(str, wanted))} ({count} elements in total), "
                f"but the given tensor has a size of {'x'.join(map(str, self.shape))} "
                f"({self.numel()} elements); resize() only changes the shape"
            )
        return self.reshape(tuple(wanted))

    @explains
    def resize_as(self: Any, tensor: TensorBase) -> Any:
        """`resize` to the shape of another tensor.

        Raises:
            RuntimeError: the number of elements differs.

        >>> import plugrad
        >>> plugrad.arange(6).resize_as(plugrad.zeros(3, 2)).shape
        plugrad.Size([3, 2])
        """
        return self.resize(tuple(tensor.shape))

    def reinforce(self, reward: Any) -> NoReturn:
        """Removed from PyTorch; RuntimeError."""
        raise RuntimeError("reinforce() was removed from PyTorch; use log_prob of a distribution")

    def lstsq(self, other: Any) -> NoReturn:
        """Removed from PyTorch in favour of `plugrad.linalg.lstsq`; RuntimeError."""
        raise RuntimeError(_REMOVED.format("lstsq", "lstsq"))

    def solve(self, other: Any) -> NoReturn:
        """Removed from PyTorch in favour of `plugrad.linalg.solve`; RuntimeError."""
        raise RuntimeError(_REMOVED.format("solve", "solve"))

    def eig(self, eigenvectors: bool = False) -> NoReturn:
        """Removed from PyTorch in favour of `plugrad.linalg.eig`; RuntimeError."""
        raise RuntimeError(_REMOVED.format("eig", "eig"))

    def symeig(self, eigenvectors: bool = False) -> NoReturn:
        """Removed from PyTorch in favour of `plugrad.linalg.eigh`; RuntimeError."""
        raise RuntimeError(_REMOVED.format("symeig", "eigh"))
