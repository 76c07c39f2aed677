"""The core's samples of its operators: each is exported and agrees, or is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from plugrad.onnx import OnnxExporterError
from plugrad.testing.cases import Arguments, OpCase, core_cases, resolve, seed_of
from tests.onnx.exported import compare, exported

# Samples of an operator that are tried, the first ones.
ENOUGH = 2


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Operators that refuse some of these samples, by reason.
REFUSED = {
    "complex numbers": _names(
        """
        view_as_real view_as_complex polar complex _conj real imag Tensor.to
        Tensor.cfloat Tensor.cdouble fft.fft fft.ifft fft.hfft fft.irfft fft.rfft
        fft.ihfft fft.fftn fft.ifftn fft.rfftn fft.irfftn fft.hfftn fft.ihfftn fft.fft2
        fft.ifft2 fft.irfft2 fft.hfft2 fft.rfft2 fft.ihfft2 _fft_c2c _fft_r2c _fft_c2r
        stft istft view_as_complex_copy view_as_real_copy
        """
    ),
    "random numbers": _names(
        """
        poisson binomial _standard_gamma _sample_dirichlet Tensor.cauchy_
        Tensor.log_normal_ Tensor.geometric_
        """
    ),
    "shapes that depend on values": _names(
        """
        masked_select masked_scatter nonzero argwhere one_hot unique unique_consecutive
        Tensor.unique repeat_interleave bincount histc histogram histogramdd
        """
    ),
    "factorisations of matrices": _names(
        """
        pdist linalg.solve_triangular triangular_solve cholesky_solve cholesky_inverse
        linalg.cholesky linalg.cholesky_ex cholesky linalg.qr qr geqrf
        linalg.householder_product orgqr ormqr linalg.eigvalsh linalg.svdvals
        linalg.slogdet slogdet linalg.lu linalg.lu_factor linalg.lu_factor_ex lu
        lu_unpack linalg.lu_solve lu_solve linalg.solve_ex linalg.inv_ex
        linalg.ldl_factor linalg.ldl_factor_ex linalg.ldl_solve linalg.inv inverse
        linalg.solve linalg.matrix_norm linalg.pinv pinverse linalg.matrix_rank
        linalg.cond linalg.lstsq linalg.matrix_exp matrix_exp linalg.tensorinv
        linalg.tensorsolve nuclear_norm norm
        """
    ),
    "no counterpart": _names(
        """
        scatter_reduce hash_tensor _embedding_bag _embedding_bag_forward_only
        empty_permuted Tensor.new_empty_strided _foreach_lgamma gather embedding_bag
        _ctc_loss _ctc_loss_backward _neg_view index_reduce lgamma digamma erfinv i0
        special_i1 polygamma mvlgamma igamma igammac gcd lcm nextafter frexp quantile
        nanquantile view_copy Tensor.view as_strided
        """
    ),
}
# What onnxruntime does not compute as ONNX says: it has no bfloat16 in NumPy's arrays, refuses an
# output padding that only a dilation allows, and has another maximum of nan in volumes.
RUNTIME = _names("Tensor.bfloat16 conv_transpose1d max_pool3d_with_indices")
ALL_REFUSED = frozenset().union(*REFUSED.values())


class Called:
    """A function of tensors only, as a model is; other arguments are as in the sample."""

    def __init__(self, function: Any, kwargs: dict[str, Any]) -> None:
        self.function = function
        self.kwargs = kwargs

    def __call__(self, *args: Any) -> Any:
        return self.function(*args, **self.kwargs)


def made(case: OpCase) -> Any:
    for sample in case.all_samples()[:ENOUGH]:
        arguments = Arguments("float32", seed_of(case, sample), overlapping=False)
        yield arguments.make(sample.args), arguments.make(sample.kwargs)


def by_operator() -> dict[str, list[OpCase]]:
    found: dict[str, list[OpCase]] = {}
    for case in core_cases():
        found.setdefault(case.op, []).append(case)
    return found


CASES = by_operator()
# They give Python a value, which no graph can.
for name in ("allclose", "equal"):
    del CASES[name]


@pytest.mark.parametrize("op", CASES)
def test_samples_agree_or_are_refused(op: str) -> None:
    refused = ""
    for args, kwargs in (sample for case in CASES[op] for sample in made(case)):
        model = Called(resolve(op), kwargs)
        try:
            program = exported(model, *args)
        except OnnxExporterError as error:
            refused = str(error)
            continue
        if op not in RUNTIME:
            with np.errstate(all="ignore"):
                compare(program, model, *args)
    assert bool(refused) == (op in ALL_REFUSED), refused
