"""Operators that the core computes on the host if a backend has no kernel: Fourier transforms,
operators on single matrices, and counts. The core loads most of them on demand, so they are listed
here by name, which loads nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from plugrad_distributed.tensor.placement import Partial, Placement, Replicate, Shard
from plugrad_distributed.tensor.rules.reductions import reduced_dims
from plugrad_distributed.tensor.spec import Choice, DTensorSpec, Rule, aligned, specs_in

__all__ = ["GATHERED", "RULES"]


def _transform(self: DTensorSpec, dim: Sequence[int], *rest: Any) -> list[Choice]:
    """A Fourier transform is linear, and needs its transformed dimensions whole."""
    none = [None] * (1 + len(rest))
    dims = reduced_dims(self, dim) if dim else ()
    found: list[Choice] = [
        ([Shard(one)], [Shard(one), *none]) for one in range(self.ndim) if one not in dims
    ]
    found.extend(([one], [one, *none]) for one in (Partial("sum"), Partial("avg")))
    return found


def _matrices(results: int, taken: int = 2) -> Callable[..., list[Choice]]:
    """The rule of an operator on each matrix of a batch; batches may be broadcast.

    Args:
        results: the number of results, which all have the batch dimensions first.
        taken: the number of dimensions that are not batch dimensions.
    """

    def choices(*args: Any) -> list[Choice]:
        batch = max(spec.ndim for spec in specs_in(args)) - taken

        def cut(dim: int) -> Callable[[DTensorSpec], Placement]:
            def placement(spec: DTensorSpec) -> Placement:
                own = dim - (batch - (spec.ndim - taken))
                return Replicate() if own < 0 or spec.shape[own] == 1 else Shard(own)

            return placement

        found = [([Shard(dim)] * results, aligned(args, cut(dim))) for dim in range(batch)]
        return [one for one in found if any(isinstance(each, Shard) for each in one[1])]

    return choices


def _with_vectors(results: int) -> Callable[..., list[Choice]]:
    """The same, if vectors are requested: without them a result has no elements, and no batch."""
    batches = _matrices(results)

    def choices(self: DTensorSpec, *rest: Any) -> list[Choice]:
        return [] if any(value is False for value in rest[-2:]) else batches(self, *rest)

    return choices


RULES: dict[str, Rule] = {
    **{name: Rule(_transform) for name in ("_fft_c2c", "_fft_r2c", "_fft_c2r")},
    **{name: Rule(_matrices(1)) for name in ("linalg_det", "linalg_matrix_exp")},
    **{name: Rule(_matrices(1)) for name in ("_linalg_solve", "linalg_solve_triangular")},
    **{name: Rule(_matrices(2)) for name in ("_linalg_cholesky", "linalg_slogdet", "geqrf")},
    **{name: Rule(_matrices(2)) for name in ("linalg_eig", "linalg_qr")},
    **{name: Rule(_matrices(3)) for name in ("_linalg_lu_factor", "_linalg_ldl_factor")},
    "_lu_permutation": Rule(_matrices(1, taken=1)),
    "frexp.Tensor": Rule(_matrices(2, taken=0)),
    "_linalg_eigh": Rule(_with_vectors(2)),
    "_linalg_svd": Rule(_with_vectors(3)),
}

# Operators with results that depend on all elements at once.
GATHERED = frozenset([
    *("_linalg_lstsq", "linalg_ldl_solve", "bincount", "histc", "histogram.bin_ct"),
    *("_histogramdd_bin_edges", "_histogramdd_from_bin_cts"),
    *("_unique2", "unique_dim", "_unique_consecutive"),
])  # fmt: skip
