"""The kernels of the Autocast keys: cast an operator's arguments by its policy, then call it."""

from __future__ import annotations

from typing import Any, Final, final

from mypy_extensions import i64

from plugrad._generated.calls import call__to_copy
from plugrad.dispatch.autocast_state import AutocastState
from plugrad.dispatch.backends.active import ActiveBackend, find_backend
from plugrad.dispatch.kernel_hooks import keyset_of_arguments, set_autocast
from plugrad.dispatch.keys import AFTER_AUTOCAST, AUTOCAST_BIT, BACKEND_SHIFT, OUTER_LEVEL
from plugrad.dispatch.local_state import LocalState, current_state
from plugrad.dispatch.operator import Operator
from plugrad.dtype import FLOATING, DType, bfloat16, float16, float32, float64
from plugrad.ops.autocast_lists import policy_of
from plugrad.tensor.base import TensorBase
from plugrad.tensor.calls.schema_facts import position_of

# The answer if there is no backend "cuda"; PyTorch always has these.
CUDA_DTYPES: Final = (float16, bfloat16)

_BANNED: Final = (
    "plugrad.nn.functional.binary_cross_entropy and plugrad.nn.BCELoss are unsafe to autocast.\n"
    "Many models use a sigmoid layer right before the binary cross entropy layer.\n"
    "In this case, combine the two layers using "
    "plugrad.nn.functional.binary_cross_entropy_with_logits\n"
    "or plugrad.nn.BCEWithLogitsLoss.  binary_cross_entropy_with_logits and BCEWithLogits are\n"
    "safe to autocast."
)


def autocast_dtypes(device_type: str) -> tuple[DType, ...]:
    """The dtypes that autocast supports on a backend, its default first; empty if it has no
    autocast.

    Raises:
        BackendNotFoundError: there is no such backend. ``"cuda"`` is always accepted.
    """
    if device_type == "meta":
        return ()
    try:
        return tuple(find_backend(device_type).backend.autocast_dtypes())
    except RuntimeError:
        if device_type == "cuda":
            return CUDA_DTYPES
        raise


@final
class AutocastKernel:
    """An operator's kernel at a backend's Autocast key.

    Args:
        policy: one of `ops/autocast_lists.py`, "whole", or "inputs": floating inputs are cast to
            `dtype`.
    """

    def __init__(
        self, op: Operator, device_type: str, number: int, policy: str, dtype: DType = float32
    ) -> None:
        self.op = op
        self.device_type = device_type
        self.backend: i64 = 1 << (BACKEND_SHIFT + number)
        self.policy = policy
        self.dtype = dtype
        self.dtype_position: int = position_of(op, "ScalarType")

    def __call__(self, keyset: i64, *args: Any) -> Any:
        state = current_state()
        autocast = state.autocast
        lower = None if autocast is None else autocast.enabled.get(self.device_type)
        if autocast is None or lower is None:
            # It is on for another backend.
            return self.op.redispatch(keyset & AFTER_AUTOCAST, *args)
        included = state.included
        state.autocast = autocast.off()
        state.included = included & ~AUTOCAST_BIT
        try:
            values = self._cast_all(state, autocast, lower, args)
            # Tensors of other dtypes may have other key sets, but not above this key.
            below: i64 = keyset_of_arguments(values)
            below = (below | state.included) & state.kept & AFTER_AUTOCAST
            if state.trace is not None:
                return state.trace.dispatch("redispatch", self.op, below, values)
            return self.op.lookup(below)(below, *values)
        finally:
            state.autocast = autocast
            state.included = included

    def _cast_all(
        self, state: LocalState, autocast: AutocastState, lower: DType, args: tuple[Any, ...]
    ) -> tuple[Any, ...]:
        """The arguments, cast according to the policy."""
        policy = self.policy
        if policy == "whole":
            return args
        if policy == "banned":
            raise RuntimeError(_BANNED)
        if policy == "fp32_set_opt_dtype":
            first = args[0]
            if args[self.dtype_position] is not None or not self._is_eligible(first):
                return args
            position = self.dtype_position
            return (*args[:position], float32, *args[position + 1 :])
        dtype = float32
        if policy == "lower_precision_fp":
            dtype = lower
        elif policy == "promote":
            dtype = self._widest(lower, args)
        elif policy == "inputs":
            dtype = self.dtype
        values: list[Any] = []
        for value in args:
            if isinstance(value, TensorBase):
                values.append(self._cast(state, autocast, value, dtype, lower))
            elif isinstance(value, (list, tuple)):
                items: list[Any] = []
                for item in value:
                    if isinstance(item, TensorBase):
                        items.append(self._cast(state, autocast, item, dtype, lower))
                    else:
                        items.append(item)
                values.append(tuple(items) if isinstance(value, tuple) else items)
            else:
                values.append(value)
        return tuple(values)

    def _is_eligible(self, value: Any) -> bool:
        """Whether it is a tensor of the backend that autocast concerns."""
        if not isinstance(value, TensorBase):
            return False
        dtype = value.dtype
        on_backend = value._keyset & self.backend != 0
        return on_backend and dtype.category == FLOATING and dtype is not float64

    def _widest(self, lower: DType, args: tuple[Any, ...]) -> DType:
        """float32 if a floating argument is, else the region's dtype."""
        dtype = lower
        for value in args:
            items: Any = value if isinstance(value, (list, tuple)) else (value,)
            for item in items:
                if not self._is_eligible(item):
                    continue
                tensor: TensorBase = item
                if dtype is float32 or tensor.dtype is float32:
                    dtype = float32
                elif tensor.dtype is not lower:
                    raise RuntimeError("Unexpected floating ScalarType in at::autocast::prioritize")
        return dtype

    def _cast(
        self,
        state: LocalState,
        autocast: AutocastState,
        tensor: TensorBase,
        dtype: DType,
        lower: DType,
    ) -> TensorBase:
        if tensor.dtype is dtype or not self._is_eligible(tensor):
            return tensor
        # A trace must see the cast as its own, and its arrays are not for anybody else.
        kept = dtype is lower and autocast.cache_enabled and state.array_log is None
        if not kept or self.policy == "inputs" or not _is_weight(tensor):
            return call__to_copy(tensor, dtype, None)
        key = (id(tensor), dtype.index)
        found: Any = autocast.cache.get(key)
        if found is not None:
            cast: TensorBase = found[1]
            return cast
        if state.inference_mode:
            return call__to_copy(tensor, dtype, None)
        # It may be needed with its history later on, whatever the grad mode is now.
        grad_enabled = state.grad_enabled
        state.grad_enabled = True
        try:
            made: TensorBase = call__to_copy(tensor, dtype, None)
        finally:
            state.grad_enabled = grad_enabled
        autocast.cache[key] = (tensor, made)
        return made


def _is_weight(tensor: TensorBase) -> bool:
    """Whether it is a float32 leaf that requires grad, and no view."""
    meta = tensor._autograd_meta
    if meta is None or tensor.dtype is not float32 or tensor._view_info is not None:
        return False
    return meta.requires_grad and meta.grad_fn is None


def _make_autocast_kernel(op: Operator, active: ActiveBackend) -> AutocastKernel | None:
    policy = policy_of(op, active.name)
    return AutocastKernel(op, active.name, active.number, policy) if policy else None


@final
class LevelAutocastKernel:
    """Autocast of tensors of a level, as on the backend of the tensors that they wrap."""

    def __init__(self, op: Operator) -> None:
        self.op = op
        self.kernels: dict[str, AutocastKernel | None] = {}

    def __call__(self, keyset: i64, *args: Any) -> Any:
        device_type = _device_type(args)
        if device_type not in self.kernels:
            policy = policy_of(self.op, device_type)
            made = AutocastKernel(self.op, device_type, OUTER_LEVEL, policy) if policy else None
            self.kernels[device_type] = made
        kernel = self.kernels[device_type]
        if kernel is None:
            return self.op.redispatch(keyset & AFTER_AUTOCAST, *args)
        return kernel(keyset, *args)


def _device_type(args: tuple[Any, ...]) -> str:
    """The device type of the first tensor that is not on the host; "cpu" if there is none."""
    found = "cpu"
    for value in args:
        items: Any = value if isinstance(value, (list, tuple)) else (value,)
        for item in items:
            if isinstance(item, TensorBase) and not item.device.is_host:
                found = item.device.type
    return found


def _make_level_autocast(op: Operator) -> LevelAutocastKernel:
    return LevelAutocastKernel(op)


def default_autocast_dtype(device_type: str) -> DType | None:
    """The default dtype of a region; None where there is no autocast."""
    found = autocast_dtypes(device_type)
    return found[0] if len(found) != 0 else None


set_autocast(_make_autocast_kernel, _make_level_autocast)
