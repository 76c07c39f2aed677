"""Moving and casting: the part of Module that changes its members' device and dtype."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import plugrad
from plugrad import Tensor
from plugrad_nn.nn.parameter import Parameter

T = TypeVar("T", bound="ModuleConversion")


class ModuleConversion:
    """Conversions in place. Fields are set up by `Module.__init__`."""

    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Any]

    def _apply(self: T, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> T:
        for child in self._modules.values() if recurse else ():
            if child is not None:
                child._apply(fn)
        for name, parameter in list(self._parameters.items()):
            if parameter is None:
                continue
            with plugrad.no_grad():
                moved = fn(parameter)
                moved_grad = None if parameter.grad is None else fn(parameter.grad)
            if moved.is_meta != parameter.is_meta:
                # One of them has no memory: another object takes its place, as in PyTorch.
                made = type(parameter)(moved, parameter.requires_grad)
                made.grad = moved_grad
                self._parameters[name] = made
            elif moved is not parameter:
                # The gradient is converted first, because it must always fit its tensor.
                parameter.grad = None
                parameter.data = moved
                parameter.grad = moved_grad
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def to(self: T, *args: Any, **kwargs: Any) -> T:
        """Moves and casts in place: `to(device)`, `to(dtype)`, `to(device, dtype)` or `to(tensor)`.

        Only floating point and complex members are cast; the others only move. Parameters stay the
        same objects, so optimizers still refer to them; gradients move along.

        Args:
            non_blocking: may return before copies are done, if the device supports it.
            memory_format: the format of members with 4 and 5 dimensions; only as a keyword.

        >>> import plugrad
        >>> plugrad.nn.Linear(2, 3).to(plugrad.float64).weight.dtype
        plugrad.float64
        >>> plugrad.nn.Linear(2, 3).to("meta").weight.device
        device(type='meta')
        """
        device, dtype, non_blocking = _parse_to(args, kwargs)
        memory_format = kwargs.get("memory_format")
        if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
            raise TypeError(
                "nn.Module.to only accepts floating point or complex dtypes, "
                f"but got desired dtype={dtype}"
            )

        def convert(tensor: Tensor) -> Tensor:
            if memory_format is not None and tensor.dim() in (4, 5):
                return tensor.to(
                    tensor.device if device is None else device,
                    dtype if tensor.is_floating_point() or tensor.is_complex() else None,
                    non_blocking,
                    memory_format=memory_format,
                )
            cast = dtype if tensor.is_floating_point() or tensor.is_complex() else None
            if device is not None and cast is not None:
                return tensor.to(device, cast, non_blocking)
            if device is not None:
                return tensor.to(device, non_blocking=non_blocking)
            return tensor if cast is None else tensor.to(cast)

        return self._apply(convert)

    def float(self: T) -> T:
        """Casts floating point members to float32.

        >>> import plugrad
        >>> plugrad.nn.Linear(2, 3, dtype=plugrad.float64).float().weight.dtype
        plugrad.float32
        """
        return self._cast(plugrad.float32)

    def double(self: T) -> T:
        """Casts floating point members to float64.

        >>> import plugrad
        >>> plugrad.nn.Linear(2, 3).double().weight.dtype
        plugrad.float64
        """
        return self._cast(plugrad.float64)

    def half(self: T) -> T:
        """Casts floating point members to float16.

        >>> import plugrad
        >>> plugrad.nn.Linear(2, 3).half().weight.dtype
        plugrad.float16
        """
        return self._cast(plugrad.float16)

    def bfloat16(self: T) -> T:
        """Casts floating point members to bfloat16.

        >>> import plugrad
        >>> plugrad.nn.Linear(2, 3).bfloat16().weight.dtype
        plugrad.bfloat16
        """
        return self._cast(plugrad.bfloat16)

    def _cast(self: T, dtype: plugrad.dtype) -> T:
        return self._apply(lambda t: t.to(dtype) if t.is_floating_point() else t)

    def type(self: T, dst_type: Any) -> T:
        """Casts all members, whatever their dtype, as `Tensor.type` does.

        >>> import plugrad
        >>> plugrad.nn.Linear(2, 3).type(plugrad.float64).weight.dtype
        plugrad.float64
        """
        return self._apply(lambda t: t.type(dst_type))

    def to_empty(self: T, *, device: Any, recurse: bool = True) -> T:
        """Moves all members to a device without their values, which are then not set.

        This is how a module made on the "meta" device gets memory.

        >>> import plugrad
        >>> layer = plugrad.nn.Linear(2, 3, device="meta").to_empty(device="cpu")
        >>> layer.reset_parameters()
        >>> layer.weight.device
        device(type='cpu')
        """
        return self._apply(lambda t: plugrad.empty_like(t, device=device), recurse)

    def cpu(self: T) -> T:
        """Moves all members to the CPU.

        >>> import plugrad
        >>> plugrad.nn.Linear(2, 3).cpu().weight.device
        device(type='cpu')
        """
        return self._apply(lambda t: t.to("cpu"))

    def cuda(self: T, device: Any = None) -> T:
        """Moves all members to a GPU, by default the current one.

        >>> import plugrad
        >>> layer = plugrad.nn.Linear(2, 3)
        >>> layer = layer.cuda() if plugrad.cuda.is_available() else layer
        >>> layer.weight.shape
        plugrad.Size([3, 2])
        """
        return self._apply(lambda t: t.cuda(device))

    def share_memory(self: T) -> T:
        """Moves all members, in place, to memory that other processes see.

        Raises NotImplementedError if their device's arrays cannot live there.

        >>> import plugrad
        >>> plugrad.nn.Linear(2, 3).share_memory().weight.is_shared()
        True
        """
        return self._apply(lambda t: t.share_memory_())


def _parse_to(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any, bool]:
    """The device, dtype and `non_blocking` that the arguments of `Module.to` name."""
    device, dtype = kwargs.get("device"), kwargs.get("dtype")
    non_blocking = bool(kwargs.get("non_blocking", False))
    positional = list(args)
    if "tensor" in kwargs:
        positional.insert(0, kwargs["tensor"])
    for argument in positional:
        if isinstance(argument, Tensor):
            device, dtype = argument.device, argument.dtype
        elif isinstance(argument, plugrad.dtype):
            dtype = argument
        elif isinstance(argument, bool):
            non_blocking = argument
        elif argument is not None:
            device = argument
    return device, dtype, non_blocking
