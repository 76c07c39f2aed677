"""Ready-made parametrizations: orthogonal matrices, spectral and weight normalisation."""

from __future__ import annotations

from typing import Any

import plugrad
from plugrad import Tensor
from plugrad.plugins.arguments import explains
from plugrad_nn.nn import functional as F
from plugrad_nn.nn.module import Module
from plugrad_nn.nn.modules.conv_transpose import _ConvTranspose
from plugrad_nn.nn.utils.parametrize import register_parametrization

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


def _tensor_of(module: Module, name: str) -> Tensor:
    found = getattr(module, name, None)
    if not isinstance(found, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    return found


def _with_orthogonal_columns(matrix: Tensor) -> Tensor:
    """Q of its QR decomposition, with signs such that R has a positive diagonal."""
    reflectors, tau = plugrad.geqrf(matrix)
    signs = reflectors.diagonal(dim1=-2, dim2=-1).sgn()
    return plugrad.linalg.householder_product(reflectors, tau) * signs.unsqueeze(-2)


class _Orthogonal(Module):
    base: Tensor | None

    def __init__(self, weight: Tensor, orthogonal_map: str, use_trivialization: bool) -> None:
        super().__init__()
        if weight.is_complex() and orthogonal_map == "householder":
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        self.use_trivialization = use_trivialization
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X: Tensor) -> Tensor:
        wide = X.shape[-2] < X.shape[-1]
        tall = X.mT if wide else X
        made = self._reflected(tall) if self.orthogonal_map == "householder" else self._turned(tall)
        if self.use_trivialization and self.base is not None:
            made = self.base @ made
        return made.mT if wide else made

    def _reflected(self, X: Tensor) -> Tensor:
        """A product of Householder reflections by the columns of X."""
        vectors = X.tril(diagonal=-1)
        tau = 2.0 / (1.0 + (vectors * vectors).sum(dim=-2))
        made = plugrad.linalg.householder_product(vectors, tau)
        # The signs of the diagonal; they are numbers, and have no gradient.
        signs = X.diagonal(dim1=-2, dim2=-1).int().unsqueeze(-2)
        return made * signs

    def _turned(self, X: Tensor) -> Tensor:
        """The exponential, or the Cayley transform, of the skew matrix X - X^H."""
        rows, columns = X.shape[-2], X.shape[-1]
        X = X.tril()
        if rows != columns:
            X = plugrad.cat([X, X.new_zeros((*X.shape[:-1], rows - columns))], -1)
        skew = X - X.mH
        if self.orthogonal_map == "matrix_exp":
            made = plugrad.matrix_exp(skew)
        else:
            one = plugrad.eye(rows, dtype=skew.dtype, device=skew.device)
            made = plugrad.linalg.solve(one - 0.5 * skew, one + 0.5 * skew)
        return made[..., :columns]

    def right_inverse(self, Q: Tensor) -> Tensor:
        if Q.shape != self.shape:
            raise ValueError(
                f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of "
                f"shape {Q.shape}."
            )
        with plugrad.no_grad():
            wide = Q.shape[-2] < Q.shape[-1]
            tall = Q.mT if wide else Q
            if not self.use_trivialization:
                found = self._reflectors(tall)
                return found.mT if wide else found
            self.base = self._square(tall)
            # Here reflections and rotations are the identity, so that the result is the base.
            start = plugrad.zeros_like(Q)
            start.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
            return start

    def _reflectors(self, Q: Tensor) -> Tensor:
        if self.orthogonal_map != "householder":
            raise NotImplementedError(
                "It is not possible to assign to the matrix exponential or the Cayley "
                "parametrizations when use_trivialization=False."
            )
        found, tau = plugrad.geqrf(Q)
        diagonal = found.diagonal(dim1=-2, dim2=-1)
        signs = diagonal.sign()
        diagonal.copy_(plugrad.where(tau == 0.0, -signs, signs))
        return found

    def _square(self, Q: Tensor) -> Tensor:
        """A square orthogonal matrix; its first columns are Q's, orthogonalized."""
        rows, columns = Q.shape[-2], Q.shape[-1]
        if rows != columns:
            shape = (*Q.shape[:-1], rows - columns)
            more = plugrad.randn(shape, dtype=Q.dtype, device=Q.device)
            return _with_orthogonal_columns(plugrad.cat([Q, more], -1))
        one = plugrad.eye(rows, dtype=Q.dtype, device=Q.device)
        near = 10.0 * rows * plugrad.finfo(Q.dtype).eps
        if plugrad.allclose(Q.mH @ Q, one, atol=near):
            return Q.clone()
        return _with_orthogonal_columns(Q)


@explains
def orthogonal(
    module: Module,
    name: str = "weight",
    orthogonal_map: str | None = None,
    *,
    use_trivialization: bool = True,
) -> Module:
    """Keeps the columns of a matrix, or the rows if it is wide, orthogonal and of norm 1.

    Args:
        module: has the matrix, or batch of matrices.
        name: its name there.
        orthogonal_map: "matrix_exp" and "cayley" (of skew matrices), or "householder" (products of
            reflections); by default the first for square or complex matrices, else the last.
        use_trivialization: multiply with a fixed matrix, so that any value can be assigned.

    Source: Lezcano-Casado, Trivializations for Gradient-Based Optimization on Manifolds, 2019.

    >>> import plugrad
    >>> from plugrad.nn.utils import parametrizations
    >>> weight = parametrizations.orthogonal(plugrad.nn.Linear(5, 3)).weight
    >>> plugrad.allclose(weight @ weight.T, plugrad.eye(3), atol=1e-5)
    True
    """
    weight = _tensor_of(module, name)
    if weight.ndim < 2:
        raise ValueError(
            f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions."
        )
    if orthogonal_map is None:
        square = weight.shape[-2] == weight.shape[-1]
        orthogonal_map = "matrix_exp" if square or weight.is_complex() else "householder"
    if orthogonal_map not in ("matrix_exp", "cayley", "householder"):
        raise ValueError(
            'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". '
            f"Got: {orthogonal_map}"
        )
    made = _Orthogonal(weight, orthogonal_map, use_trivialization)
    return register_parametrization(module, name, made, unsafe=True)


class _WeightNorm(Module):
    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        return plugrad._weight_norm(weight_v, weight_g, self.dim)

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        return plugrad.norm_except_dim(weight, 2, self.dim), weight


@explains
def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Separates a weight's norms, along all dimensions but `dim`, from its directions.

    They are `parametrizations.weight.original0` and `original1`. `dim=None` takes a single norm.

    Args:
        module: has the parameter.
        name: of the parameter.
        dim: the dimension along which each entry has its own norm; None for a single norm.

    Source: Salimans and Kingma, Weight Normalization, 2016.

    >>> import plugrad
    >>> from plugrad.nn.utils import parametrizations
    >>> layer = parametrizations.weight_norm(plugrad.nn.Linear(2, 3))
    >>> layer.parametrizations.weight.original0.shape
    plugrad.Size([3, 1])
    """
    register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def from_older_names(module: Module, state: dict[str, Any], prefix: str, *rest: Any) -> None:
        """State dicts of `nn.utils.weight_norm` have `weight_g` and `weight_v`."""
        old = [f"{prefix}{name}_{letter}" for letter in "gv"]
        if all(key in state for key in old):
            for place, key in enumerate(old):
                state[f"{prefix}parametrizations.{name}.original{place}"] = state.pop(key)

    module.register_load_state_dict_pre_hook(from_older_names)
    return module


class _SpectralNorm(Module):
    _u: Tensor
    _v: Tensor

    def __init__(
        self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12
    ) -> None:
        super().__init__()
        rank = weight.ndim
        if not -rank <= dim < rank:
            raise IndexError(
                "Dimension out of range (expected to be in range of "
                f"[-{rank}, {rank - 1}] but got {dim})"
            )
        if n_power_iterations <= 0:
            raise ValueError(
                "Expected n_power_iterations to be positive, but got "
                f"n_power_iterations={n_power_iterations}"
            )
        self.dim = dim % rank
        self.eps = eps
        if rank > 1:
            self.n_power_iterations = n_power_iterations
            matrix = self._matrix(weight)
            for name, size in zip(("_u", "_v"), matrix.shape, strict=True):
                drawn = matrix.new_empty(size).detach().normal_(0, 1)
                self.register_buffer(name, F.normalize(drawn, dim=0, eps=eps))
            self._iterate(matrix, 15)

    def _matrix(self, weight: Tensor) -> Tensor:
        return weight.movedim(self.dim, 0).flatten(1)

    def _iterate(self, matrix: Tensor, times: int) -> None:
        with plugrad.no_grad():
            for _ in range(times):
                self._u.copy_(F.normalize(matrix @ self._v, dim=0, eps=self.eps))
                self._v.copy_(F.normalize(matrix.mH @ self._u, dim=0, eps=self.eps))

    def forward(self, weight: Tensor) -> Tensor:
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = self._matrix(weight)
        if self.training:
            self._iterate(matrix, self.n_power_iterations)
        # Copies: the next call writes into the buffers, which this one's backward needs.
        sigma = plugrad.vdot(self._u.clone(), matrix @ self._v.clone())
        return weight / sigma

    def right_inverse(self, value: Tensor) -> Tensor:
        return value


@explains
def spectral_norm(
    module: Module,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Module:
    """Divides a weight by an estimate of its largest singular value.

    Args:
        module: has the weight.
        name: its name there.
        n_power_iterations: by how many steps each call in training improves the estimate.
        eps: the least norm of the singular vectors.
        dim: the dimension of outputs, which are the rows of the matrix; by default 0, and 1 for
            transposed convolution.

    Source: Miyato et al., Spectral Normalization for GANs, 2018.

    >>> import plugrad
    >>> from plugrad.nn.utils import parametrizations
    >>> layer = parametrizations.spectral_norm(plugrad.nn.Linear(4, 4))
    >>> abs(float(plugrad.linalg.matrix_norm(layer.weight, 2)) - 1) < 0.1
    True
    """
    weight = _tensor_of(module, name)
    if dim is None:
        dim = 1 if isinstance(module, _ConvTranspose) else 0
    made = _SpectralNorm(weight, n_power_iterations, dim, eps)
    return register_parametrization(module, name, made)
