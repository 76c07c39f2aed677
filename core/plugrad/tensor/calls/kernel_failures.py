"""Replaces an array library's error by PyTorch's message when a kernel has failed.

Arguments are checked before a kernel runs; this is for errors that only the array library notices.
Errors that the kernel itself raised are left as they are. A kernel whose context was busy has not
failed: it runs again. So does a kernel if its backend can fix the arguments.
"""

from __future__ import annotations

# Interpreted: it runs when something goes wrong.
import math
import re
from typing import Any, NoReturn

from plugrad.dispatch.backends.active import ActiveBackend, active_backends
from plugrad.dispatch.backends.kernel_context import InContext, is_busy
from plugrad.dispatch.backends.kernel_errors import not_implemented
from plugrad.dispatch.operator import Operator
from plugrad.tensor.base import TensorBase, sizes_of
from plugrad.tensor.calls.broadcasting import broadcast_shapes

TOO_LARGE_NUMBER = "value cannot be converted to type int64_t without overflow"

# `re` compiles a pattern when it is first needed.
_TOO_BIG = "array is too big|[Mm]aximum allowed|negative dimensions|too large an array"
_TOO_MANY = "maximum supported dimension|too many dimensions"
_OTHER_SIZES = (
    "cannot reshape array|axes don't match|setting an array element|all the input array dimensions|"
    "mismatch in its core dimension|size mismatch|shapes .* not aligned"
)
# Python's words for a complex number where only a real one makes sense.
_NOT_REAL = (
    "not supported between instances|must be real number|convert complex|not .complex|"
    "cannot be interpreted as an integer"
)
# Python's words for a function that is called with other arguments than it takes.
_WRONG_SIGNATURE = r"\(\) (missing \d+ required|takes .* positional argument)"
_NO_LOOP = "not supported for the input types|did not contain a loop|Cannot cast ufunc"


def explained(op: Operator, args: tuple[Any, ...], error: Exception) -> Exception | None:
    """The error to raise instead of what a kernel raised; None to keep that error."""
    if isinstance(error, MemoryError):
        return RuntimeError(out_of_memory(error))
    if isinstance(error, OverflowError):
        return RuntimeError(TOO_LARGE_NUMBER)
    text = str(error)
    if not isinstance(error, (ValueError, TypeError)):
        unfit = isinstance(error, (AttributeError, KeyError, ArithmeticError, AssertionError))
        if _is_internal(op) and (unfit or "broadcast" in text):
            return unfitting(op, args)
        return None
    tensors = [item for value in args for item in tensors_of(value)]
    if "broadcast" in text:
        try:
            shape: tuple[int, ...] = ()
            for tensor in tensors:
                shape = broadcast_shapes(shape, sizes_of(tensor))
        except RuntimeError as mismatch:
            return mismatch
    if re.search(_TOO_MANY, text):
        return RuntimeError(f"{op.name}: tensors of more than 64 dimensions are not supported")
    if re.search(_TOO_BIG, text):
        sizes = next((list(v) for v in args if isinstance(v, (tuple, list)) and _are_ints(v)), [])
        return RuntimeError(f"Storage size calculation overflowed with sizes={sizes}")
    if re.search(_NO_LOOP, text) and tensors:
        widest = max(tensors, key=lambda tensor: tensor.dtype.category)
        return not_implemented(op.name, widest.dtype)
    if re.search(_OTHER_SIZES, text) and tensors:
        shapes = ", ".join([str(list(sizes_of(tensor))) for tensor in tensors])
        return RuntimeError(f"{op.name}: the sizes of the arguments do not fit: {shapes}")
    if re.search(_NOT_REAL, text) and any(isinstance(value, complex) for value in args):
        return RuntimeError(TOO_LARGE_NUMBER.replace("int64_t", "double"))
    if _is_internal(op):
        return unfitting(op, args)
    if isinstance(error, TypeError) and re.search(_WRONG_SIGNATURE, text):
        _add_once(error, _about_signature(op, tensors))
    return None


def _add_once(error: Exception, note: str) -> None:
    """Add a note once: a composite operator fails with the operators it calls, and each would
    explain the error."""
    if not getattr(error, "__notes__", ()):
        error.add_note(note)


def _about_signature(op: Operator, tensors: list[TensorBase]) -> str:
    """The error for a kernel that cannot be called: names its owner and the operator."""
    owner = ""
    for active in active_backends():
        if tensors and active.name == tensors[0].device.type:
            found = active.candidates(op.kernel_name, op.overload)
            owner = f", from {found[0].owner}" if found else ""
    return (
        f"A kernel for {op.qualified_name} was called{owner}. Kernels get arrays and numbers by "
        f"position, in the order of the schema: {op.schema_text}"
    )


def _is_internal(op: Operator) -> bool:
    """Whether an operator is one that formulas call, with arguments that fit: only a call by its
    handle can have others, because they are not checked."""
    if op.namespace != "plugrad":
        return False
    return op.name.startswith("_") or "_backward" in op.name


def unfitting(op: Operator, args: tuple[Any, ...]) -> RuntimeError:
    """The error for arguments that do not fit each other."""
    shown = ", ".join([_shown(value) for value in args])
    return RuntimeError(f"{op.name}: the arguments do not fit together: {shown}")


def _shown(value: Any) -> str:
    if isinstance(value, TensorBase):
        return f"{value.dtype.scalar_name}{list(sizes_of(value))}"
    return type(value).__name__ if isinstance(value, (list, tuple)) else str(value)[:50]


def tensors_of(value: Any) -> list[TensorBase]:
    """The tensors that an argument is or has."""
    if isinstance(value, TensorBase):
        return [value]
    if isinstance(value, (list, tuple)):
        return [item for item in value if isinstance(item, TensorBase)]
    return []


def _are_ints(value: Any) -> bool:
    return all(type(item) is int for item in value)


def out_of_memory(error: MemoryError) -> str:
    """PyTorch's message for too little memory. NumPy's errors contain the requested size."""
    shape: Any = getattr(error, "shape", None)
    dtype: Any = getattr(error, "dtype", None)
    if shape is None or dtype is None:
        return "DefaultCPUAllocator: can't allocate memory"
    return allocation_failed(math.prod(shape) * dtype.itemsize)


def allocation_failed(nbytes: int) -> str:
    """PyTorch's words for memory that there is not."""
    return f"DefaultCPUAllocator: can't allocate memory: you tried to allocate {nbytes} bytes."


def fail(op: Operator, args: tuple[Any, ...], error: Exception) -> NoReturn:
    """Raise a kernel's error, or PyTorch's error for it."""
    found: Exception | None = explained(op, args, error)
    if found is not None:
        raise found from None
    raise error


def run_again_or_fail(
    op: Operator,
    active: ActiveBackend,
    raw: Any,
    arrays: tuple[Any, ...],
    args: tuple[Any, ...],
    error: Exception,
) -> Any:
    """Run a kernel again if its context could not be entered, or if the backend can fix its
    arguments; raise any other error as `fail` does."""
    try:
        return run_again(active, raw, arrays, error)
    except Exception as its_own:
        fail(op, args, its_own)


def run_again(active: ActiveBackend, raw: Any, arrays: tuple[Any, ...], error: Exception) -> Any:
    """Run a kernel again, if there is reason to expect that it succeeds; else raise its error."""
    if isinstance(raw, InContext) and is_busy(error):
        return raw.run_in_copy(arrays)
    return active.backend.run_again(raw, arrays, error)
