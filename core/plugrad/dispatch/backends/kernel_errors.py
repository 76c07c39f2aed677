"""Errors that kernels raise, with PyTorch's messages, so that all backends agree.

The core checks arguments before it calls a kernel; these errors depend on elements. Backends import
them from `plugrad.plugins.kernel_errors`.
"""

from __future__ import annotations

# Interpreted: it runs when something goes wrong.
from collections.abc import Sequence
from typing import Any, Final

from plugrad.dtype import DType, from_numpy

OUTSIDE_TABLE: Final = "index out of range in self"
OUTSIDE_EMPTY: Final = "index is out of bounds for dimension with size 0"
TOO_FEW_ELEMENTS: Final = "Number of elements of source < number of ones in mask"
NEGATIVE_REPEATS: Final = "repeats can not be negative"
OTHER_OUTPUT_SIZE: Final = "allocated size does not match required size"
NO_PROBABILITIES: Final = "all elements of input should be between 0 and 1"
NO_TARGETS: Final = "all elements of target should be between 0 and 1"
NOT_A_VIEW: Final = (
    "view size is not compatible with input tensor's size and stride (at least one dimension "
    "spans across two contiguous subspaces). Use .reshape(...) instead."
)


def not_implemented(name: str, dtype: Any) -> NotImplementedError:
    """The error for a kernel that lacks a dtype.

    Args:
        name: what PyTorch calls the kernel.
        dtype: one of plugrad's, or NumPy's for it.

    >>> from plugrad.plugins.kernel_errors import not_implemented
    >>> import plugrad
    >>> not_implemented("sign_cpu", plugrad.complex64)
    NotImplementedError('"sign_cpu" not implemented for \\'ComplexFloat\\'')
    """
    known = dtype if isinstance(dtype, DType) else from_numpy(dtype)
    return NotImplementedError(f"\"{name}\" not implemented for '{known.scalar_name}'")


def no_signs() -> NotImplementedError:
    """The error of `signbit` for complex numbers.

    >>> from plugrad.plugins.kernel_errors import no_signs
    >>> no_signs()
    NotImplementedError('signbit is not implemented for complex tensors.')
    """
    return NotImplementedError("signbit is not implemented for complex tensors.")


def out_of_bounds(index: object, dim: int, size: int) -> str:
    """The message of most operators about an index outside a dimension.

    >>> from plugrad.plugins.kernel_errors import out_of_bounds
    >>> out_of_bounds(5, 0, 3)
    'index 5 is out of bounds for dimension 0 with size 3'
    """
    return f"index {index} is out of bounds for dimension {dim} with size {size}"


def out_of_range(index: object, count: int) -> str:
    """The message of `take` about an index outside a flattened tensor.

    >>> from plugrad.plugins.kernel_errors import out_of_range
    >>> out_of_range(7, 6)
    'out of range: tried to access index 7 on a tensor of 6 elements.'
    """
    return f"out of range: tried to access index {index} on a tensor of {count} elements."


def unlike_indices(shapes: Sequence[Sequence[int]]) -> IndexError:
    """The error for index tensors that do not broadcast."""
    shown = ", ".join([str(list(shape)) for shape in shapes])
    return IndexError(
        f"shape mismatch: indexing tensors could not be broadcast together with shapes {shown}"
    )


def unlike_values(shape: Sequence[int], wanted: Sequence[int] | str) -> RuntimeError:
    """The error for values that do not broadcast to their target.

    Args:
        wanted: the target's shape, or words for it if the shape is unknown.
    """
    what = wanted if isinstance(wanted, str) else f"indexing result of shape {list(wanted)}"
    return RuntimeError(
        f"shape mismatch: value tensor of shape {list(shape)} cannot be broadcast to {what}"
    )


def no_class(target: object) -> IndexError:
    """The error of a loss for a target that is not a class."""
    return IndexError(f"Target {target} is out of bounds.")


def no_one_hot_class(value: int) -> RuntimeError:
    """The error of `one_hot` for a value that is not a class."""
    what = "non-negative" if value < 0 else "smaller than num_classes"
    return RuntimeError(f"Class values must be {what}.")


def one_hot_classes(least: int, largest: int, classes: int) -> int:
    """The number of classes of `one_hot`; -1 means as many as needed.

    Raises:
        RuntimeError: a value is not one of the classes.
    """
    if least < 0:
        raise no_one_hot_class(least)
    if classes == -1:
        return largest + 1
    if largest >= classes:
        raise no_one_hot_class(largest)
    return classes
