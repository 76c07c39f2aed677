"""Kernels of operators that write into a tensor or return a view of it: memory that is shared.

If a backend lacks an in-place operator, the functional one runs, followed by `copy_`.
"""

from __future__ import annotations

import weakref
from typing import Any, Final, NoReturn, final

from mypy_extensions import i64

from plugrad.dispatch import keys
from plugrad.dispatch.adapters import BelowAutograd
from plugrad.dispatch.backends.active import ActiveBackend, find_backend
from plugrad.dispatch.backends.kernel_sources import DECLINED
from plugrad.dispatch.local_state import LocalState, current_state
from plugrad.dispatch.operator import Operator, find_operator
from plugrad.dtype import FLOATING, DType
from plugrad.errors import OperatorNotFoundError
from plugrad.tensor.aliasing.functionalize import extend, rebind
from plugrad.tensor.aliasing.layout import storage_offset, strides
from plugrad.tensor.aliasing.overlap import APART, check_operands, check_overlap
from plugrad.tensor.aliasing.view_steps import extended
from plugrad.tensor.base import (
    Geometry,
    TensorBase,
    bump_version,
    is_inference,
    keyset_without_tangent,
    make_tensor,
    replace_array,
    share_storage,
    sizes_of,
    version_of,
)
from plugrad.tensor.calls.broadcasting import broadcast_shapes
from plugrad.tensor.calls.cpp_names import CPP_NAMES
from plugrad.tensor.calls.elementwise_kernels import KEEPS_NUMBER, ONE, check_alpha
from plugrad.tensor.calls.kernel_failures import explained
from plugrad.tensor.calls.kernel_results import note_alone
from plugrad.tensor.calls.kernels import RawKernel
from plugrad.tensor.calls.operands import device_mismatch
from plugrad.tensor.calls.promotion import (
    cast,
    cast_array,
    check_inplace_cast,
    promote_with_scalar,
)
from plugrad.tensor.creation.transfer import cast_first, moved_array
from plugrad.tensor.views import (
    CREATION_DEFAULT,
    INFERENCE_MODE,
    MULTI_OUTPUT_NODE,
    NO_GRAD_MODE,
    ViewInfo,
    propagate_creation_meta,
)


@final
class InplaceKernel:
    """An in-place operator: the backend's own where dtypes agree, else compute and copy."""

    def __init__(self, op: Operator, functional: Operator, active: ActiveBackend, raw: Any) -> None:
        self.op = op
        self.functional = functional
        self.active = active
        self.raw: Any = raw
        self.elementwise: bool = op.structure != ""
        self.makes_real: bool = functional.result == "real"
        self.keeps_number: bool = functional.name in KEEPS_NUMBER
        self.scale: Any = active.raw_kernel("mul", "Scalar")
        self.dense: i64 = active.tensor_keyset & (keys.BACKEND_MASK | keys.DENSE_BIT)
        # Where among the other arguments the dtype of the computation is, if there is one.
        names = [argument.name for argument in op.schema.arguments[1:]]
        self.dtype_at: i64 = names.index("dtype") if "dtype" in names else -1

    def __call__(self, keyset: i64, target: TensorBase, *args: Any) -> TensorBase:
        return self.compute(target, args)

    def compute(self, target: TensorBase, args: tuple[Any, ...]) -> TensorBase:
        """Write the result for `target` and the other arguments into `target`."""
        if self.makes_real and target.dtype.is_complex:
            raise RuntimeError(
                f"In-place {self.functional.name} is not supported for complex tensors."
            )
        if self.raw is not None and self.elementwise and self._runs_directly(target, args):
            if self._run_raw(target, args) is not DECLINED:
                return target
            note_alone(self.op, self.active, self.raw)
        if self.dtype_at >= 0:
            args = self._in_own_dtype(target, args)
        result: TensorBase = self.functional.lookup(self.dense)(self.dense, target, *args)
        if result.device is not target.device:
            raise device_mismatch(result.device, target.device)
        check_inplace_cast(result.dtype, target.dtype)
        check_inplace_shape(target, result)
        self._write(target, result)
        return target

    def _in_own_dtype(self, target: TensorBase, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments with the target's dtype; RuntimeError if another was requested."""
        wanted = args[self.dtype_at]
        if wanted is not None and wanted is not target.dtype:
            raise RuntimeError(
                f"Bad in-place call: input tensor dtype {CPP_NAMES[target.dtype.name]} and output "
                f"tensor dtype {CPP_NAMES[wanted.name]} should match"
            )
        return (*args[: self.dtype_at], target.dtype, *args[self.dtype_at + 1 :])

    def _runs_directly(self, target: TensorBase, args: tuple[Any, ...]) -> bool:
        if self.op.result != "promote" and target.dtype.category < FLOATING:
            return False
        if self.op.result == "bool":
            return False
        if not args:
            return True
        other = args[0]
        narrow = target.dtype.itemsize == 2
        if len(args) > 1 and args[1] != 1 and (narrow or target.dtype.category < FLOATING):
            return False
        if isinstance(other, TensorBase):
            return other.dtype is target.dtype and other.device is target.device
        if narrow and self.keeps_number:
            return False
        return promote_with_scalar(target, other) is target.dtype

    def _run_raw(self, target: TensorBase, args: tuple[Any, ...]) -> Any:
        try:
            if not args:
                return self.raw(target._backend_array)
            if len(args) > 1 and args[1] is not ONE:
                check_alpha(args[1], target.dtype)
            if not isinstance(args[0], TensorBase):
                number = args[0] * args[1] if len(args) > 1 else args[0]
                return self.raw(target._backend_array, number)
            if len(args) > 1 and args[1] != 1:
                factor = self.scale(args[0]._backend_array, args[1])
                return factor if factor is DECLINED else self.raw(target._backend_array, factor)
            return self.raw(target._backend_array, args[0]._backend_array)
        except Exception as error:
            if args and isinstance(args[0], TensorBase):
                shape = broadcast_shapes(sizes_of(target), sizes_of(args[0]))
                if shape != sizes_of(target):
                    _raise_shape(target, shape)
            if isinstance(error, (RuntimeError, IndexError, NotImplementedError)):
                raise
            found: Exception | None = explained(self.op, (target, *args), error)
            if found is not None:
                raise found from None
            raise RuntimeError(f"{self.op.qualified_name}: {error}") from error

    def _write(self, target: TensorBase, result: TensorBase) -> None:
        write_array(self.op, self.active, target, result._backend_array, result.dtype)


def check_inplace_shape(target: TensorBase, result: TensorBase) -> None:
    """Raise PyTorch's RuntimeError if a result has another shape than its target."""
    if sizes_of(result) != sizes_of(target):
        broadcast = broadcast_shapes(sizes_of(result), sizes_of(target))
        if broadcast != sizes_of(target) or sizes_of(result) == broadcast:
            _raise_shape(target, sizes_of(result))


def _raise_shape(target: TensorBase, shape: tuple[int, ...]) -> NoReturn:
    raise RuntimeError(
        f"output with shape {list(sizes_of(target))} doesn't match the broadcast shape "
        f"{list(shape)}"
    )


@final
class RebindingKernel:
    """An in-place operator without a functional one, such as `uniform_`, on immutable arrays: the
    kernel returns the tensor's new elements."""

    def __init__(self, op: Operator, active: ActiveBackend, raw: Any) -> None:
        self.op = op
        self.active = active
        self.compute_new = RawKernel(op, active, raw)
        self.compute_new.inplace = False

    def __call__(self, keyset: i64, target: TensorBase, *args: Any) -> TensorBase:
        result: TensorBase = self.compute_new.compute((target, *args))
        write_array(self.op, self.active, target, result._backend_array, result.dtype)
        return target


def write_array(
    op: Operator, active: ActiveBackend, target: TensorBase, array: Any, dtype: DType
) -> None:
    """Put an array of the backend into `target`: written into its memory, or put in its place.

    Raises:
        OperatorNotFoundError: the backend's arrays are mutable, but it has no `copy_` kernel.
    """
    if active.backend.mutable:
        copy = active.raw_kernel("copy_", "")
        if copy is None:
            raise OperatorNotFoundError(
                f"Could not run '{op.qualified_name}' on backend {active.name!r}: it needs a "
                "kernel for 'copy_(target, source)', which the backend does not have"
            )
        if copy(target._backend_array, array) is DECLINED:
            raise OperatorNotFoundError(
                f"Could not run '{op.qualified_name}' on backend {active.name!r}: "
                f"{active.kernels_of('copy_')} declined by returning NotImplemented"
            )
        return
    if dtype is not target.dtype:
        place = target.device
        array = cast_array(array, place.type, target.dtype, place.index or 0)
    if tuple(array.shape) != sizes_of(target):
        whole: i64 = active.tensor_keyset & (keys.BACKEND_MASK | keys.DENSE_BIT)
        part = make_tensor(array, target.dtype, target.device, whole)
        array = _expand(whole, part, sizes_of(target))._backend_array
    rebind(target, array)


def _expand(dense: i64, part: TensorBase, sizes: tuple[int, ...]) -> TensorBase:
    expand = find_operator("plugrad::expand")
    assert expand is not None
    whole: TensorBase = expand.lookup(dense)(dense, part, sizes, False)
    return whole


@final
class CopyKernel:
    """`copy_`, which may cross devices: the target's backend writes, whatever the source's is."""

    def __init__(self, op: Operator) -> None:
        self.op = op
        self.prepare: Any = op.prepare

    def __call__(
        self, keyset: i64, target: TensorBase, source: TensorBase, non_blocking: bool
    ) -> TensorBase:
        self.prepare(target, source, non_blocking)
        device = target.device
        active = find_backend(device.type)
        if source.device is not device:
            if source.dtype is not target.dtype and cast_first(source, target.dtype, device):
                source = cast(source, target.dtype)
            array = moved_array(source, device, non_blocking, not active.backend.mutable)
        else:
            array = source._backend_array
        write_array(self.op, active, target, array, source.dtype)
        return target


@final
class ViewKernel:
    """ADInplaceOrView of a view operator: the result shares version and base with its input."""

    def __init__(self, op: Operator, differentiable: bool) -> None:
        self.op = op
        self.differentiable = differentiable

    def __call__(self, keyset: i64, *args: Any) -> Any:
        return self.compute(current_state(), keyset, args)

    def compute(self, state: LocalState, keyset: i64, args: tuple[Any, ...]) -> Any:
        """Run the kernel below on all arguments; the first one is viewed."""
        below = keyset & keys.AFTER_AD_INPLACE_OR_VIEW
        if state.trace is not None:
            out = state.trace.dispatch("redispatch", self.op, below, args)
        else:
            kernel: Any = self.op.lookup_dense(below)
            if isinstance(kernel, RawKernel):  # noqa: SIM114  # a native call for each class
                out = kernel.compute(args)
            elif isinstance(kernel, BelowAutograd):
                out = kernel.compute(args)
            else:
                out = kernel(below, *args)
        source: TensorBase = args[0]
        others = args[1:]
        if isinstance(out, TensorBase):
            self._mark(state, source, others, out, -1)
        else:
            for position, item in enumerate(out):
                self._mark(state, source, others, item, position)
        return out

    def _mark(
        self,
        state: LocalState,
        source: TensorBase,
        args: tuple[Any, ...],
        out: TensorBase,
        position: int,
    ) -> None:
        if out is source:
            return
        storage = share_storage(source)
        storage.has_views = True
        out._shared_storage = storage
        # Its own bits: a view may be conjugated where the source is not.
        own: i64 = keyset_without_tangent(source) & ~keys.MATH_BITS
        out._keyset = own | (out._keyset & keys.MATH_BITS)
        if self.differentiable and not is_inference(source):
            creation: i64 = CREATION_DEFAULT if position < 0 else MULTI_OUTPUT_NODE
            if state.inference_mode:
                creation = INFERENCE_MODE
            elif not state.grad_enabled:
                creation = NO_GRAD_MODE
            out._view_info = make_view_info(source, self.op, args, position, creation)


def make_view_info(
    source: TensorBase, op: Operator, args: tuple[Any, ...], position: int, creation: i64
) -> ViewInfo:
    """What makes the result of `op(source, *args)` a view of the source's base."""
    outer = source._view_info
    if outer is None:
        made = ViewInfo(source, None, op, args, position, version_of(source), creation)
        storage = source._shared_storage
        if storage is not None and storage.geometries is not None:
            made.geometries = len(storage.geometries)
        return made
    made = extended(outer, source, op, args, position)
    made.version = version_of(source)
    made.creation_meta = propagate_creation_meta(outer.creation_meta, creation)
    return made


@final
class _Writes:
    """Holds the function that is called before a tensor is written to."""

    def __init__(self) -> None:
        self.listener: Any = None


_writes: Final = _Writes()


def observe_writes(listener: Any) -> None:
    """Call `listener(tensor)` before every in-place operator from now on; None stops it."""
    _writes.listener = listener


def announce_write(tensor: TensorBase) -> None:
    """Notify the observers (`observe_writes`) before a write to a tensor."""
    if _writes.listener is not None:
        _writes.listener(tensor)


@final
class MutationKernel:
    """ADInplaceOrView of an in-place operator: counts the write."""

    def __init__(self, op: Operator) -> None:
        self.op = op
        self.apart: bool = op.name in APART

    def __call__(self, keyset: i64, target: TensorBase, *args: Any) -> TensorBase:
        return self.compute(current_state(), keyset, target, args)

    def compute(
        self, state: LocalState, keyset: i64, target: TensorBase, args: tuple[Any, ...]
    ) -> TensorBase:
        """Write, and count the write."""
        if target._shared_storage is not None:
            check_overlap(target, self.op.name)
            if args:
                check_operands(target, args, self.op.name)
        elif self.apart:
            check_operands(target, args, self.op.name)
        if _writes.listener is not None:
            _writes.listener(target)
        below = keyset & keys.AFTER_AD_INPLACE_OR_VIEW
        kernel = self.op.lookup_dense(below)
        if state.trace is None and isinstance(kernel, InplaceKernel):
            kernel.compute(target, args)
            bump_version(target)
            return target
        if state.trace is not None:
            state.trace.dispatch("redispatch", self.op, below, (target, *args))
        else:
            kernel(below, target, *args)
        if kernel is not self.op.kernel_for(keys.COMPOSITE_IMPLICIT_AUTOGRAD):
            bump_version(target)  # what a composition calls has counted its writes
        return target


@final
class ListMutationKernel:
    """ADInplaceOrView of an operator that writes into lists of tensors: counts each write."""

    def __init__(self, op: Operator, positions: tuple[int, ...]) -> None:
        self.op = op
        self.positions = positions

    def __call__(self, keyset: i64, *args: Any) -> Any:
        targets: list[TensorBase] = []
        for position in self.positions:
            targets.extend(args[position])
        for target in targets:
            if target._shared_storage is not None:
                check_overlap(target, self.op.name)
            announce_write(target)
        below = keyset & keys.AFTER_AD_INPLACE_OR_VIEW
        kernel = self.op.lookup_dense(below)
        state = current_state()
        if state.trace is not None:
            out = state.trace.dispatch("redispatch", self.op, below, args)
        else:
            out = kernel(below, *args)
        if kernel is not self.op.kernel_for(keys.COMPOSITE_IMPLICIT_AUTOGRAD):
            for target in targets:
                bump_version(target)  # what a composition calls has counted its writes
        return out


@final
class ArrayViewKernel:
    """An in-place view operator on a backend: the functional one's array takes the place of the
    tensor's."""

    def __init__(self, functional: Operator, active: ActiveBackend) -> None:
        self.functional = functional
        self.active = active
        self.dense: i64 = active.tensor_keyset & (keys.BACKEND_MASK | keys.DENSE_BIT)

    def __call__(self, keyset: i64, target: TensorBase, *args: Any) -> TensorBase:
        if self.active.backend.mutable:
            replace_array(
                target, self.functional.lookup(self.dense)(self.dense, target, *args)._backend_array
            )
            return target
        noticed: i64 = self.dense | keys.FUNCTIONALIZE_BIT
        extend(target, self.functional.lookup(noticed)(noticed, target, *args))
        return target


@final
class InplaceViewKernel:
    """ADInplaceOrView of an in-place view operator, such as `t_`.

    PyTorch counts it as a write. A view stays one of its base, one step further. A base stores its
    former geometry, since its views start from there; see `graph/former_geometry.py`.
    """

    def __init__(self, op: Operator, functional: Operator) -> None:
        self.op = op
        self.functional = functional

    def __call__(self, keyset: i64, target: TensorBase, *args: Any) -> TensorBase:
        return self.compute(current_state(), keyset, target, args)

    def compute(
        self, state: LocalState, keyset: i64, target: TensorBase, args: tuple[Any, ...]
    ) -> TensorBase:
        """Change the tensor, and count that."""
        if _writes.listener is not None:
            _writes.listener(target)
        former: Geometry | None = None
        storage = target._shared_storage
        if storage is not None and storage.has_views and target._view_info is None:
            former = (
                weakref.ref(target),
                sizes_of(target),
                strides(target),
                storage_offset(target),
            )
        below = keyset & keys.AFTER_AD_INPLACE_OR_VIEW
        kernel = self.op.lookup_dense(below)
        if state.trace is not None:
            state.trace.dispatch("redispatch", self.op, below, (target, *args))
        else:
            kernel(below, target, *args)
        if kernel is self.op.kernel_for(keys.COMPOSITE_IMPLICIT_AUTOGRAD):
            return target  # what it calls has done all that follows
        bump_version(target)
        if former is not None and storage is not None:
            geometries = storage.geometries
            if geometries is None:
                geometries = []
                storage.geometries = geometries
            geometries.append(former)
        view = target._view_info
        if view is not None:
            target._view_info = extended(view, target, self.functional, args, -1)
        return target
