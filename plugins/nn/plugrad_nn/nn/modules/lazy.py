"""Layers that take their input's size from the first input: LazyLinear, LazyConv1d, ..."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import plugrad
from plugrad import Tensor
from plugrad_nn.nn.conv import Conv1d, Conv2d, Conv3d, _Conv
from plugrad_nn.nn.functional import IntOrPair
from plugrad_nn.nn.linear import Linear
from plugrad_nn.nn.module import Module
from plugrad_nn.nn.modules.conv_transpose import (
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
    _ConvTranspose,
)
from plugrad_nn.nn.modules.instancenorm import InstanceNorm1d, InstanceNorm2d, InstanceNorm3d
from plugrad_nn.nn.modules.uninitialized import (
    UninitializedBuffer,
    UninitializedParameter,
    UninitializedTensorMixin,
)
from plugrad_nn.nn.normalization import BatchNorm1d, BatchNorm2d, BatchNorm3d, NormBase
from plugrad_nn.nn.parameter import is_lazy

if TYPE_CHECKING:
    # At run time the mixin has another base.
    _Mixed = Module
else:
    _Mixed = object


class LazyModuleMixin(_Mixed):
    """Makes a module initialise parameters at its first call; must come before the other base.

    A custom class sets parameters to `UninitializedParameter()` in its constructor, and gives
    them memory in `initialize_parameters`, which is called with the arguments of the first call.
    After that the module's class is `cls_to_become`, if there is one.

    >>> import plugrad
    >>> nn = plugrad.nn
    >>> class Scaled(nn.modules.lazy.LazyModuleMixin, nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.scale = nn.UninitializedParameter()
    ...     def initialize_parameters(self, x):
    ...         self.scale.materialize(x.shape[-1:])
    ...         nn.init.ones_(self.scale)
    ...     def forward(self, x):
    ...         return x * self.scale
    >>> layer = Scaled()
    >>> layer(plugrad.ones(2, 3)).shape, layer.scale.shape
    (plugrad.Size([2, 3]), plugrad.Size([3]))
    """

    cls_to_become: ClassVar[type[Module] | None] = None

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Gives parameters memory; gets the arguments of `forward`."""
        raise NotImplementedError(
            f"initialize_parameters is not implemented for {type(self).__name__}"
        )

    def has_uninitialized_params(self) -> bool:
        """Whether a parameter or buffer has no shape yet.

        >>> import plugrad
        >>> layer = plugrad.nn.LazyLinear(2)
        >>> before = layer.has_uninitialized_params()
        >>> _ = layer(plugrad.ones(1, 5))
        >>> before, layer.in_features
        (True, 5)
        """
        return any(map(is_lazy, [*self._parameters.values(), *self._buffers.values()]))

    def _infer_parameters(
        self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None
    ) -> None:
        module.initialize_parameters(*args, **(kwargs or {}))
        if module.has_uninitialized_params():
            raise RuntimeError(f"module {self._get_name()} has not been fully initialized")
        if module.cls_to_become is not None:
            module.__class__ = module.cls_to_become

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.cls_to_become is not None or self.has_uninitialized_params():
            self._infer_parameters(self, args, kwargs)
        # The class may be another one by now.
        return Module.__call__(self, *args, **kwargs)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        for name, member in self._persistent_members().items():
            value = state_dict.get(prefix + name)
            known = isinstance(value, Tensor) and not is_lazy(value)
            if known and isinstance(member, UninitializedTensorMixin):
                member.materialize(state_dict[prefix + name].shape)
        super()._load_from_state_dict(state_dict, prefix, *rest)


def _materialize(module: Module, names: tuple[str, ...], shape: tuple[int, ...]) -> None:
    for name in names:
        member = getattr(module, name)
        if isinstance(member, UninitializedTensorMixin):
            member.materialize(shape)


class LazyLinear(LazyModuleMixin, Linear):
    """`Linear` that takes `in_features` from the first input.

    >>> import plugrad
    >>> layer = plugrad.nn.LazyLinear(2)
    >>> layer(plugrad.ones(1, 3)).shape
    plugrad.Size([1, 2])
    >>> layer
    Linear(in_features=3, out_features=2, bias=True)
    """

    cls_to_become = Linear

    def __init__(
        self,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: plugrad.dtype | None = None,
    ) -> None:
        super().__init__(0, 0, False)
        self.out_features = out_features
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Draws the initial weights again, if there are any yet."""
        if self.in_features and not self.has_uninitialized_params():
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        """Takes `in_features` from the input, and draws the weights if none were loaded."""
        if not self.has_uninitialized_params():
            self.in_features = self.weight.shape[-1]
            if input.shape[-1] != self.in_features:
                raise AssertionError(
                    f"The in_features inferred from input: {input.shape[-1]} is not equal to "
                    f"in_features from self.weight: {self.in_features}"
                )
            return
        self.in_features = input.shape[-1]
        _materialize(self, ("weight",), (self.out_features, self.in_features))
        _materialize(self, ("bias",), (self.out_features,))
        self.reset_parameters()


class _LazyConvolution(LazyModuleMixin, _Conv):
    """The base of lazy convolutions."""

    def _leave_open(self, out_channels: int, bias: bool, device: Any, dtype: Any) -> None:
        self.out_channels = out_channels
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Draws the initial weights again, if there are any yet."""
        if self.in_channels and not self.has_uninitialized_params():
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor, *rest: Any) -> None:
        """Takes `in_channels` from the input, and draws the weights if none were loaded."""
        least = self._spatial + 1
        if input.dim() not in (least, least + 1):
            raise RuntimeError(
                f"Expected {least}D (unbatched) or {least + 1}D (batched) input to "
                f"{type(self).__name__}, but got input of size: {input.shape}"
            )
        self.in_channels = input.shape[0 if input.dim() == least else 1]
        if not self.has_uninitialized_params():
            return
        if self.in_channels % self.groups:
            raise ValueError("in_channels must be divisible by groups")
        _materialize(self, ("weight",), (*self._channels_of_weight(), *self.kernel_size))
        _materialize(self, ("bias",), (self.out_channels,))
        self.reset_parameters()


class _LazyConv(_LazyConvolution):
    def __init__(
        self,
        out_channels: int,
        kernel_size: IntOrPair,
        stride: IntOrPair = 1,
        padding: IntOrPair | str = 0,
        dilation: IntOrPair = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: plugrad.dtype | None = None,
    ) -> None:
        super().__init__(0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode)
        self._leave_open(out_channels, bias, device, dtype)


class LazyConv1d(_LazyConv, Conv1d):
    """`Conv1d` that takes `in_channels` from the first input.

    >>> import plugrad
    >>> plugrad.nn.LazyConv1d(5, 3, padding=1)(plugrad.ones(2, 3, 8)).shape
    plugrad.Size([2, 5, 8])
    """

    cls_to_become = Conv1d


class LazyConv2d(_LazyConv, Conv2d):
    """`Conv2d` that takes `in_channels` from the first input.

    >>> import plugrad
    >>> plugrad.nn.LazyConv2d(5, 3, padding=1)(plugrad.ones(2, 3, 8, 6)).shape
    plugrad.Size([2, 5, 8, 6])
    """

    cls_to_become = Conv2d


class LazyConv3d(_LazyConv, Conv3d):
    """`Conv3d` that takes `in_channels` from the first input.

    >>> import plugrad
    >>> plugrad.nn.LazyConv3d(5, 3, padding=1)(plugrad.ones(2, 3, 8, 6, 4)).shape
    plugrad.Size([2, 5, 8, 6, 4])
    """

    cls_to_become = Conv3d


class _LazyConvTranspose(_LazyConvolution, _ConvTranspose):
    def __init__(
        self,
        out_channels: int,
        kernel_size: IntOrPair,
        stride: IntOrPair = 1,
        padding: IntOrPair = 0,
        output_padding: IntOrPair = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: IntOrPair = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: plugrad.dtype | None = None,
    ) -> None:
        _ConvTranspose.__init__(
            self,
            0,
            0,
            kernel_size,
            stride,
            padding,
            output_padding,
            groups,
            False,
            dilation,
            padding_mode,
        )
        self._leave_open(out_channels, bias, device, dtype)


class LazyConvTranspose1d(_LazyConvTranspose, ConvTranspose1d):
    """`ConvTranspose1d` that takes `in_channels` from the first input.

    >>> import plugrad
    >>> plugrad.nn.LazyConvTranspose1d(5, 2, stride=2)(plugrad.ones(2, 3, 8)).shape
    plugrad.Size([2, 5, 16])
    """

    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(_LazyConvTranspose, ConvTranspose2d):
    """`ConvTranspose2d` that takes `in_channels` from the first input.

    >>> import plugrad
    >>> plugrad.nn.LazyConvTranspose2d(5, 2, stride=2)(plugrad.ones(2, 3, 8, 6)).shape
    plugrad.Size([2, 5, 16, 12])
    """

    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(_LazyConvTranspose, ConvTranspose3d):
    """`ConvTranspose3d` that takes `in_channels` from the first input.

    >>> import plugrad
    >>> plugrad.nn.LazyConvTranspose3d(5, 2, stride=2)(plugrad.ones(2, 3, 8, 6, 4)).shape
    plugrad.Size([2, 5, 16, 12, 8])
    """

    cls_to_become = ConvTranspose3d


class _LazyNorm(LazyModuleMixin, NormBase):
    """The base of lazy batch and instance norms."""

    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: plugrad.dtype | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(0, eps, momentum, False, False, device, dtype, bias=False)
        self.affine = affine
        self.track_running_stats = track_running_stats
        if affine:
            self.weight = UninitializedParameter(device=device, dtype=dtype)
            if bias:
                self.bias = UninitializedParameter(device=device, dtype=dtype)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(device=device, dtype=dtype)
            self.running_var = UninitializedBuffer(device=device, dtype=dtype)
            self.num_batches_tracked = plugrad.tensor(0, device=device, dtype=plugrad.int64)

    def reset_parameters(self) -> None:
        """Back to scale one, shift zero and no statistics, if there are any yet."""
        if self.num_features and not self.has_uninitialized_params():
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        """Takes `num_features` from the input."""
        self.num_features = input.shape[1]
        if self.has_uninitialized_params():
            names = ("weight", "bias", "running_mean", "running_var")
            _materialize(self, names, (self.num_features,))
            self.reset_parameters()


class LazyBatchNorm1d(_LazyNorm, BatchNorm1d):
    """`BatchNorm1d` that takes `num_features` from the first input.

    >>> import plugrad
    >>> plugrad.nn.LazyBatchNorm1d()(plugrad.ones(2, 3, 8)).shape
    plugrad.Size([2, 3, 8])
    """

    cls_to_become = BatchNorm1d


class LazyBatchNorm2d(_LazyNorm, BatchNorm2d):
    """`BatchNorm2d` that takes `num_features` from the first input.

    >>> import plugrad
    >>> plugrad.nn.LazyBatchNorm2d()(plugrad.ones(2, 3, 8, 6)).shape
    plugrad.Size([2, 3, 8, 6])
    """

    cls_to_become = BatchNorm2d


class LazyBatchNorm3d(_LazyNorm, BatchNorm3d):
    """`BatchNorm3d` that takes `num_features` from the first input.

    >>> import plugrad
    >>> plugrad.nn.LazyBatchNorm3d()(plugrad.ones(2, 3, 8, 6, 4)).shape
    plugrad.Size([2, 3, 8, 6, 4])
    """

    cls_to_become = BatchNorm3d


class LazyInstanceNorm1d(_LazyNorm, InstanceNorm1d):
    """`InstanceNorm1d` that takes `num_features` from the first input.

    >>> import plugrad
    >>> plugrad.nn.LazyInstanceNorm1d()(plugrad.ones(2, 3, 8)).shape
    plugrad.Size([2, 3, 8])
    """

    cls_to_become = InstanceNorm1d


class LazyInstanceNorm2d(_LazyNorm, InstanceNorm2d):
    """`InstanceNorm2d` that takes `num_features` from the first input.

    >>> import plugrad
    >>> plugrad.nn.LazyInstanceNorm2d()(plugrad.ones(2, 3, 8, 6)).shape
    plugrad.Size([2, 3, 8, 6])
    """

    cls_to_become = InstanceNorm2d


class LazyInstanceNorm3d(_LazyNorm, InstanceNorm3d):
    """`InstanceNorm3d` that takes `num_features` from the first input.

    >>> import plugrad
    >>> plugrad.nn.LazyInstanceNorm3d()(plugrad.ones(2, 3, 8, 6, 4)).shape
    plugrad.Size([2, 3, 8, 6, 4])
    """

    cls_to_become = InstanceNorm3d
