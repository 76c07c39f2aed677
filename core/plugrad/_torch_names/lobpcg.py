"""A few extreme eigenvalues of a symmetric matrix, by products with it: `lobpcg`.

Sources: Knyazev, "Toward the optimal preconditioned eigensolver: locally optimal block
preconditioned conjugate gradient method", 2001; Stathopoulos and Wu, "A block orthogonalization
procedure with constant synchronization requirements", 2002.
"""

from __future__ import annotations

# Interpreted: loaded on demand.
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from plugrad._generated import functions as F
from plugrad.autograd.grad_mode import no_grad
from plugrad.dispatch.local_state import current_state
from plugrad.dtype import complex64, complex128, float32, float64
from plugrad.tensor.base import TensorBase, needs_grad
from plugrad.tensor.calls.annotations import explains

if TYPE_CHECKING:
    from plugrad import Tensor

_EPSILON: Final = {float32: 1.2e-07, complex64: 1.2e-07, float64: 2.23e-16, complex128: 2.23e-16}
_METHODS: Final = ("basic", "ortho")
# Newton's steps from the pairs found: each doubles the order up to which derivatives are right.
_STEPS: Final = 2


class Worker:
    """The state of the iteration for one matrix, which a `tracker` is given after each step.

    Attributes:
        A, B, iK: the matrices; the last two may be None.
        X, E: approximations of eigenvectors (m, n) and eigenvalues (n).
        R, S: residuals (m, n), and the basis in which the next approximation was looked for.
        iparams, fparams, bparams: "m", "n", "k", "niter"; "tol"; "largest".
        ivars: "istep", "converged_count", "iterations_left".
        tvars: "rerr", the relative residuals (n).
        bvars: "force_stop", which a tracker may set to True.
    """

    def __init__(
        self, A: Any, B: Any, iK: Any, X: Any, *, k: int, niter: int, tol: float, largest: bool
    ) -> None:
        self.A, self.B, self.iK, self.X = A, B, iK, X
        self.iparams = {"m": A.shape[-1], "n": X.shape[-1], "k": k, "niter": niter}
        self.fparams = {"tol": tol}
        self.bparams = {"largest": largest}
        self.ivars = {"istep": 0, "converged_count": 0, "iterations_left": niter}
        self.tvars: dict[str, Any] = {}
        self.bvars = {"force_stop": False}
        self.P: Any = None
        self.S = X
        self.E: Any = None
        self.R: Any = None
        root = A.shape[-1] ** 0.5
        self._scale = F.linalg_vector_norm(A).item() / root
        self._weight = 1.0 if B is None else F.linalg_vector_norm(B).item() / root
        self._drop = _EPSILON[A.dtype] * A.shape[-1]

    def run(self, tracker: Callable[[Worker], object] | None) -> tuple[Any, Any]:
        """Iterate until `k` pairs are found, or no iteration is left."""
        self._choose(self.X)
        while not self._is_done():
            if tracker is not None:
                tracker(self)
                if self.bvars["force_stop"]:
                    break
            # Residuals, with the preconditioner, are where to look next.
            found = self.R if self.iK is None else F.matmul(self.iK, self.R)
            parts = [self.X, found] if self.P is None else [self.X, self.P, found]
            self._choose(F.cat(parts, -1))
            self.ivars["istep"] += 1
            self.ivars["iterations_left"] -= 1
        if tracker is not None:
            tracker(self)
        k = self.iparams["k"]
        return self.E[:k], self.X[:, :k]

    def _choose(self, directions: Any) -> None:
        """The best approximations in the space of some directions: Rayleigh and Ritz."""
        S = self._orthonormal(directions)
        values, vectors = F.linalg_eigh(F.matmul(F.mH(S), F.matmul(self.A, S)))
        n = min(self.iparams["n"], S.shape[-1])
        if self.bparams["largest"]:
            values, vectors = F.flip(values, (0,)), F.flip(vectors, (1,))
        X = F.matmul(S, vectors[:, :n])
        # Where the step went, without what was known before.
        former = self.X
        weighed = former if self.B is None else F.matmul(self.B, former)
        self.P = None if self.E is None else X - F.matmul(former, F.matmul(F.mH(weighed), X))
        self.S, self.X, self.E = S, X, values[:n]
        BX = X if self.B is None else F.matmul(self.B, X)
        self.R = F.matmul(self.A, X) - BX * self.E
        size: Any = F.linalg_vector_norm(X, 2, (0,))
        scale = size * (self._scale + self.E.abs() * self._weight)
        self.tvars["rerr"] = F.linalg_vector_norm(self.R, 2, (0,)) / scale

    def _orthonormal(self, directions: Any) -> Any:
        """A basis of the space of some directions, orthonormal with respect to B.

        Directions are scaled, those that others span are dropped, and the rest is orthonormalised
        by the eigenvectors of its Gram matrix; twice, since rounding leaves something after once.
        """
        S = directions
        for _ in range(3):
            size: Any = F.linalg_vector_norm(S, 2, (0,))
            S = S[:, size > 0] / size[size > 0]
            gram = F.matmul(F.mH(S), S if self.B is None else F.matmul(self.B, S))
            values, vectors = F.linalg_eigh(gram)
            kept = values > self._drop * values[-1]
            S = F.matmul(S, vectors[:, kept] / values[kept].sqrt())
        return S

    def _is_done(self) -> bool:
        k = min(self.iparams["k"], self.X.shape[-1])
        right = (self.tvars["rerr"][:k] < self.fparams["tol"]).tolist()
        self.ivars["converged_count"] = right.index(False) if False in right else k
        return self.ivars["converged_count"] == k or self.ivars["iterations_left"] == 0


@explains
def lobpcg(
    A: Tensor,
    k: int | None = None,
    B: Tensor | None = None,
    X: Tensor | None = None,
    n: int | None = None,
    iK: Tensor | None = None,
    niter: int | None = None,
    tol: float | None = None,
    largest: bool | None = None,
    method: str | None = None,
    tracker: Any = None,
    ortho_iparams: dict[str, int] | None = None,
    ortho_fparams: dict[str, float] | None = None,
    ortho_bparams: dict[str, bool] | None = None,
) -> tuple[Tensor, Tensor]:
    """The `k` greatest or smallest eigenvalues of a symmetric matrix, and their vectors.

    (*, m, m) gives values (*, k) and vectors (*, m, k) with A @ x = e * B @ x. Good if `k` is small
    compared with `m`; `linalg.eigh` finds all of them. Gradients are correct for distinct
    eigenvalues, up to the second order; `A` is symmetrised first where they are requested.

    Args:
        A: symmetric or Hermitian, of float32, float64 or their complex dtypes.
        k: how many pairs; by default the columns of `X`, or 1.
        B: symmetric and positive definite; the identity if it is not given.
        X: (*, m, n) to begin with, n at least `k`; by default random.
        n: the columns of a random `X`, by default `k`.
        iK: (*, m, m), a preconditioner: about the inverse of A.
        niter: at most how many steps, 1000 by default; -1 for no end before all are found.
        tol: of the relative residuals, by default the root of the dtype's precision.
        largest: whether the greatest are looked for, as by default, or the smallest.
        method: "basic" or "ortho". Both are the robust one here.
        tracker: called with a `Worker` before each step and at the end.
        ortho_iparams, ortho_fparams, ortho_bparams: accepted; the basis needs no parameters.

    Raises:
        ValueError: m is less than three times n, `method` is neither, or a complex matrix requires
            a gradient.
        RuntimeError: shapes or dtypes do not fit.

    Source: Knyazev 2001, algorithm 4.1, with the basis of Stathopoulos and Wu 2002.

    >>> import plugrad
    >>> A = plugrad.diag(plugrad.arange(1.0, 10.0))
    >>> values, vectors = plugrad.lobpcg(A, k=2)
    >>> values.round(decimals=4)
    tensor([9., 8.])
    """
    matrix: Any = A
    weight: Any = B
    _check(matrix, weight, X, iK)
    name = "ortho" if method is None else method
    if name not in _METHODS:
        raise ValueError(f"lobpcg(): expected method to be 'basic' or 'ortho', got {method!r}")
    start: Any = X
    if k is None:
        k = 1 if start is None else start.shape[-1]
    if start is None:
        n = k if n is None else n
        start = F.randn((*matrix.shape[:-1], n), dtype=matrix.dtype, device=matrix.device)
    n = start.shape[-1]
    if k > n:
        raise ValueError(f"lobpcg(): expected at least k = {k} columns of X, got n = {n}")
    if matrix.shape[-1] < 3 * n:
        raise ValueError(
            f"LPBPCG algorithm is not applicable when the number of A rows (={matrix.shape[-1]}) "
            f"is smaller than 3 x the number of requested eigenpairs (={n})"
        )
    options = {
        "k": k,
        "niter": 1000 if niter is None else niter,
        "tol": _EPSILON[matrix.dtype] ** 0.5 if tol is None else tol,
        "largest": largest is None or largest,
    }
    recorded = [each for each in (matrix, weight) if each is not None and needs_grad(each)]
    wanted = current_state().grad_enabled and bool(recorded)
    if wanted:
        if matrix.dtype.is_complex:
            raise ValueError(
                "lobpcg.backward does not support complex input yet. Note that lobpcg.forward "
                "does though."
            )
        matrix = (matrix + F.mT(matrix)) / 2
        weight = None if weight is None else (weight + F.mT(weight)) / 2
    with no_grad():
        values, vectors = _of_each(matrix, weight, start, iK, options, tracker)
    for _ in range(_STEPS if wanted else 0):
        values, vectors = _refined(matrix, weight, values, vectors)
    return values, vectors


def _check(A: Any, B: Any, X: Any, iK: Any) -> None:
    if not isinstance(A, TensorBase):
        raise TypeError(f"lobpcg(): argument 'A' must be Tensor, not {type(A).__name__}")
    shape = tuple(A.shape)
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise RuntimeError(f"lobpcg(): expected A to be (*, m, m), got shape {list(shape)}")
    if A.dtype not in _EPSILON:
        raise RuntimeError(
            f"lobpcg(): expected A to be float32, float64 or complex of these, got {A.dtype}"
        )
    for name, given in (("B", B), ("X", X), ("iK", iK)):
        if given is None:
            continue
        if given.dtype is not A.dtype:
            raise RuntimeError(f"lobpcg(): expected {name} to be {A.dtype}, got {given.dtype}")
        found = tuple(given.shape)
        if found != shape and (name != "X" or found[:-1] != shape[:-1]):
            wanted = [*shape[:-1], "n"] if name == "X" else list(shape)
            raise RuntimeError(f"lobpcg(): expected {name} of shape {wanted}, got {list(found)}")


def _of_each(
    A: Any, B: Any, X: Any, iK: Any, options: dict[str, Any], tracker: Any
) -> tuple[Any, Any]:
    """The pairs of each matrix of a batch."""
    batch = A.shape[:-2]
    given = [None if each is None else each.detach() for each in (A, B, X, iK)]
    count = math.prod(batch)
    flat = [
        None if each is None else each.reshape(count, *each.shape[len(batch) :]) for each in given
    ]
    found: list[tuple[Any, Any]] = []
    for number in range(count):
        matrices = [None if each is None else each[number] for each in flat]
        worker = Worker(matrices[0], matrices[1], matrices[3], matrices[2], **options)
        found.append(worker.run(tracker))
    rows, k = A.shape[-1], options["k"]
    if not found:
        real = A.dtype.to_real()
        return (
            F.zeros((*batch, k), dtype=real, device=A.device),
            F.zeros((*batch, rows, k), dtype=A.dtype, device=A.device),
        )
    values = F.stack([pair[0] for pair in found]).reshape(*batch, k)
    return values, F.stack([pair[1] for pair in found]).reshape(*batch, rows, k)


def _refined(A: Any, B: Any, values: Any, vectors: Any) -> tuple[Any, Any]:
    """A step of Newton's for A x = e B x and x' B x = 1, which brings the derivatives with it."""
    x: Any = F.mT(vectors)  # (*, k, m)
    unit: Any = F.eye(A.shape[-1], dtype=A.dtype, device=A.device)
    shift = values[..., None, None] * (unit if B is None else B[..., None, :, :])
    each = A[..., None, :, :] - shift
    weighed: Any = x if B is None else F.matmul(x, F.mT(B))
    residual: Any = F.matmul(each, x[..., None])
    excess = (1 - (x * weighed).sum((-1,), True)) / 2
    corner: Any = F.zeros_like(excess)
    upper = F.cat([each, -weighed[..., None]], -1)
    lower = F.cat([-weighed[..., None, :], corner[..., None]], -1)
    side: Any = F.cat([residual[..., 0], excess], -1)
    step: Any = F.linalg_solve(F.cat([upper, lower], -2), -side[..., None])
    return values + step[..., -1, 0], F.mT(x + step[..., :-1, 0])
