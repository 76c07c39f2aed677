"""`torch.library`: registrations by packages for operators that were compiled for PyTorch
itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import plugrad
from plugrad_as_torch.own.ops import is_refused

__all__ = ["Library", "impl", "register_fake", "triton_op"]

# Keys of PyTorch's devices and kinds of tensors end with one of these. Programs register kernels
# for kinds that do not exist here; such a kernel is never called.
_ELSEWHERE: Final = (
    *("CUDA", "HIP", "XLA", "MTIA", "MPS", "IPU", "XPU", "HPU", "VE", "Lazy", "MAIA"),
    *("PrivateUse1", "PrivateUse2", "PrivateUse3", "FPGA", "Vulkan", "Metal", "MkldnnCPU"),
    *("QuantizedCPU", "QuantizedCUDA", "SparseCPU", "SparseCUDA", "SparseCsrCPU", "SparseCsrCUDA"),
    *("NestedTensorCPU", "NestedTensorCUDA"),
)


class Library(plugrad.library.Library):
    """`plugrad.library.Library` with kernels that get tensors, as in PyTorch.

    >>> library = Library("my_as_torch", "DEF")
    >>> _ = library.define("twice(Tensor x) -> Tensor")
    >>> library.impl("twice", lambda x: x + x, "CPU")
    >>> library.impl("twice", lambda x: x + x, "CUDA")
    >>> import plugrad
    >>> plugrad.ops.my_as_torch.twice(plugrad.tensor([2.0]))
    tensor([4.])
    >>> library._destroy()
    """

    def impl(  # type: ignore[override]  # PyTorch gives nothing that could be removed
        self,
        op_name: Any,
        fn: Callable[..., Any],
        dispatch_key: str = "",
        *,
        with_keyset: bool = False,
        allow_override: bool = False,
    ) -> None:
        """Register a kernel on tensors; see `plugrad.library.Library.impl`. A kernel for a device
        or a kind of tensor that does not exist here is ignored."""
        name = dispatch_key or self.dispatch_key
        options = {"with_keyset": with_keyset, "allow_override": allow_override}
        try:
            super().impl(op_name, fn, name, raw=False, **options)
        except ValueError as error:
            if not str(error).startswith("unknown dispatch key"):
                raise
            if name.removeprefix("Autograd").removeprefix("Autocast") not in _ELSEWHERE:
                raise RuntimeError(f"could not parse dispatch key: {name}") from error


def impl(
    qualname: Any,
    types: Any,
    func: Any = None,
    *,
    lib: Library | None = None,
) -> Any:
    """Register a kernel on tensors; may be a decorator. See `plugrad.library.impl`.

    Args:
        qualname: the operator, ``"ns::name"``. It may also be a library; then `types` is the name
            of an operator in its namespace, and `func` a dispatch key.
        types: names of backends, dispatch keys, or ``"default"``.
        func: the kernel.
        lib: the library that owns the kernel: removing it removes the kernel.

    >>> library = Library("my_kernels", "DEF")
    >>> _ = library.define("same(Tensor x) -> Tensor")
    >>> @impl(library, "same", "CPU")
    ... def same(x):
    ...     return x.clone()
    >>> import plugrad
    >>> plugrad.ops.my_kernels.same(plugrad.tensor([2.0]))
    tensor([2.])
    >>> library._destroy()
    """
    if not isinstance(qualname, Library):
        return plugrad.library.impl(qualname, types, func, lib=lib, raw=False)

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        qualname.impl(types, function, func or "")
        return function

    return register


def register_fake(op: Any, func: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """`plugrad.library.register_fake`. If `torch.ops.load_library` refused a package's compiled
    library, the package's operators are ignored, because they cannot be called.

    Raises:
        RuntimeError: any other operator does not exist.
    """
    if isinstance(op, str) and is_refused(op):
        return (lambda function: function) if func is None else func
    register: Any = plugrad.library.register_fake
    return register(op, **options) if func is None else register(op, func, **options)


def triton_op(
    name: str,
    fn: Callable[..., Any] | None = None,
    /,
    *,
    mutates_args: Any,
    schema: str | None = None,
) -> Any:
    """`plugrad.library.custom_op`. The two differ in PyTorch only for its compiler, which traces
    into the function; there is none here. May be a decorator."""
    return plugrad.library.custom_op(name, fn, mutates_args=mutates_args, schema=schema)
