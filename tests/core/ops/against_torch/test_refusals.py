"""What operators refuse, in PyTorch 2.13's words; what they take beside it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plugrad

HALF = plugrad.eye(2, dtype=plugrad.float16)
POINTS = plugrad.zeros(2, 3)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: plugrad.linalg.solve(HALF, HALF), NotImplementedError, "\"lu_cpu\" .* 'Half'"),
        (lambda: plugrad.det(HALF.bfloat16()), NotImplementedError, "\"lu_cpu\" .* 'BFloat16'"),
        (lambda: plugrad.linalg.inv(HALF), RuntimeError, r"^linalg.inv: Low precision .* Got Half"),
        (lambda: plugrad.logdet(HALF), RuntimeError, r"^logdet: Low precision .* Got Half"),
        (lambda: plugrad.logdet(HALF.long()), RuntimeError, r"^logdet: Expected a .* Got Long"),
        (
            lambda: plugrad.linalg.solve(plugrad.eye(2), plugrad.ones(2), left=False),
            RuntimeError,
            r"equation XA = B \(2x2 and 2x1\)",
        ),
        (
            lambda: plugrad.cdist(POINTS, POINTS, compute_mode="foo"),
            ValueError,
            "^foo is not a valid value for compute_mode",
        ),
        (
            lambda: plugrad.histogramdd(plugrad.device("cpu"), 2),
            TypeError,
            r"^histogramdd\(\): argument 'input' \(position 1\) must be Tensor, not",
        ),
        (
            lambda: plugrad.histogramdd(POINTS, [2, plugrad.ones(3), 2]),
            TypeError,
            r"argument 'bins' .* at pos 2 .*got Tensor",
        ),
        (
            lambda: plugrad.mvlgamma(POINTS + 5, 10**9),
            NotImplementedError,
            r"^mvlgamma\(\): argument 'p' \(position 2\): more than 100,000 dimensions",
        ),
        (lambda: plugrad.Size(lengths=[1]), TypeError, "keyword"),
        (
            lambda: plugrad.FloatStorage(np.ones(3)),
            TypeError,
            r"^TypedStorage\(\): argument 'data' \(position 1\) must be int or sequence, not numpy",
        ),
        (lambda: plugrad.cdist(POINTS, POINTS.long()), RuntimeError, "dtypes, X2 got: Long"),
        (
            lambda: plugrad.hardtanh(plugrad.ones(2, dtype=plugrad.uint8)),
            RuntimeError,
            "cannot do hardtanh on an unsigned type with negative limits",
        ),
        (
            lambda: plugrad.rms_norm(plugrad.tensor([1, 7]), (2,)),
            NotImplementedError,
            "\"rms_norm\" not implemented for 'Long'",
        ),
        (
            lambda: plugrad.prelu(plugrad.tensor([1]), plugrad.tensor(0.5)),
            RuntimeError,
            "Got Long and Float",
        ),
        (
            lambda: plugrad.soft_margin_loss(POINTS, plugrad.zeros(2, 3, requires_grad=True)),
            RuntimeError,
            "'soft_margin_loss' is not differentiable with respect to argument 'target'",
        ),
        (
            lambda: plugrad.lu_unpack(plugrad.eye(2), plugrad.ones(2, dtype=plugrad.int64)),
            RuntimeError,
            "^torch.lu_unpack: LU_pivots is expected",
        ),
        (
            lambda: plugrad.lu_unpack(plugrad.eye(2), plugrad.full((2,), 3, dtype=plugrad.int32)),
            RuntimeError,
            "must be between 1 and LU.size",
        ),
        (
            lambda: plugrad.lu_unpack(plugrad.eye(4, 3), plugrad.ones(2, dtype=plugrad.int32)),
            RuntimeError,
            r"LU_pivots to have 3 elements for each matrix of 4 by 3, .* shape \[2\]",
        ),
        (
            lambda: plugrad._ctc_loss_backward(
                plugrad.ones(1),
                plugrad.zeros(4, 1, 3),
                plugrad.tensor([[1, 2], [1, 1]]),
                (4, 3),
                (2, 2),
                plugrad.ones(1),
                plugrad.zeros(1, 4, 5),
                0,
            ),
            RuntimeError,
            "^input_lengths must be of size batch_size",
        ),
        *[
            (
                lambda n=n: plugrad.gradient(plugrad.arange(4.0), spacing=(plugrad.arange(n),)),
                RuntimeError,
                f"a coordinate for each of the 4 samples along dimension 0, but got {n}",
            )
            for n in (1, 3, 5)
        ],
        (
            lambda: plugrad.histogramdd(POINTS, None),
            TypeError,
            r"'bins' \(position 2\) must be int, tuple of ints or tuple of Tensors, not NoneType",
        ),
        (
            lambda: plugrad.scatter_reduce(
                plugrad.ones(3), 0, plugrad.tensor([0, 0, 1]), plugrad.ones(2), "sum"
            ),
            RuntimeError,
            r"^Expected index \[3\] to be no larger than self \[3\] apart from dimension 0",
        ),
    ],
)
def test_operators_refuse_in_pytorchs_words(call: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()


def test_one_vector_is_solved_for_each_matrix_of_a_batch() -> None:
    a = plugrad.tensor([[[2.0, 0.0], [0.0, 4.0]], [[1.0, 0.0], [0.0, 1.0]]], requires_grad=True)
    x = plugrad.linalg.solve(a, plugrad.tensor([2.0, 4.0]))
    assert x.tolist() == [[1.0, 1.0], [2.0, 4.0]]
    x.sum().backward()
    assert a.grad is not None
    assert a.grad.shape == (2, 2, 2)
