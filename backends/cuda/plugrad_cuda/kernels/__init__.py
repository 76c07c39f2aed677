"""Raw kernels on CuPy arrays: a class per operator family, written against a `Namespace`.

Frequent kernels that are not elementwise have CUDA sources in `plugrad_cuda.fused`; the kernels
here take the dtypes and shapes that those do not.
"""

from __future__ import annotations

from typing import Final

from plugrad.plugins import joined_tables
from plugrad.plugins.lists import fused_lists, update_lists
from plugrad_cuda import fused
from plugrad_cuda.fused.runtime import CuPyRuntime
from plugrad_cuda.kernels.activation import Activation
from plugrad_cuda.kernels.attention import Attention
from plugrad_cuda.kernels.convolution import Convolution
from plugrad_cuda.kernels.creation import Creation
from plugrad_cuda.kernels.decompositions import Decompositions
from plugrad_cuda.kernels.distributions import Distributions
from plugrad_cuda.kernels.family import Family
from plugrad_cuda.kernels.indexing import Indexing
from plugrad_cuda.kernels.linalg import Linalg
from plugrad_cuda.kernels.linear_systems import LinearSystems
from plugrad_cuda.kernels.loss import Loss
from plugrad_cuda.kernels.namespace import CupyNamespace, Kernel, Namespace
from plugrad_cuda.kernels.nn import Norm, Tokens
from plugrad_cuda.kernels.pointwise import Pointwise
from plugrad_cuda.kernels.pooling import Pooling
from plugrad_cuda.kernels.reductions import Reductions
from plugrad_cuda.kernels.shape import Reordering
from plugrad_cuda.kernels.slices import Slices
from plugrad_cuda.kernels.special_functions import SpecialFunctions
from plugrad_cuda.kernels.spectral import Spectral
from plugrad_cuda.kernels.views import Views

FAMILIES: Final[tuple[type[Family], ...]] = (
    Pointwise,
    Activation,
    Reductions,
    Linalg,
    LinearSystems,
    Decompositions,
    Loss,
    Creation,
    Distributions,
    Indexing,
    Reordering,
    Views,
    Slices,
    Norm,
    Tokens,
    Attention,
    Convolution,
    Pooling,
    Spectral,
    SpecialFunctions,
)


def array_kernels(ns: Namespace) -> dict[str, Kernel]:
    """The kernels of all families; RuntimeError if two define the same operator."""
    found = joined_tables((family.__name__, family(ns).kernels()) for family in FAMILIES)
    found["_fused_lists"] = fused_lists(found)
    found["_update_lists"] = update_lists(found, found["copy_"])
    return found


def kernels(*, check: bool = True) -> dict[str, Kernel]:
    """All kernels by operator, the fused ones before those on arrays.

    Args:
        check: whether indices, probabilities and integer divisors are checked on the device, to
            raise the CPU's errors. This waits for the device, so it is skipped while a graph is
            captured. Without it wrong ones give wrong results, or stop the device.
    """
    ns = CupyNamespace(check=check)
    arrays = array_kernels(ns)
    return arrays | fused.kernels(arrays, CuPyRuntime(check))
