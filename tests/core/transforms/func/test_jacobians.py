"""`jacrev`. Oracle: closed forms; PyTorch's words."""

from __future__ import annotations

import pytest

import plugrad
from plugrad.func import grad, jacrev, vmap

X = plugrad.arange(1.0, 4.0)


def test_the_jacobian_of_every_output_with_respect_to_every_argument() -> None:
    def products(x: plugrad.Tensor, d: dict[str, plugrad.Tensor]) -> dict[str, plugrad.Tensor]:
        return {"xy": x * d["y"], "sum": (x * x).sum()}

    found = jacrev(products, argnums=(0, 1))(X, {"y": X * 2})
    assert found["xy"][0].tolist() == plugrad.diag(X * 2).tolist()
    assert found["xy"][1]["y"].tolist() == plugrad.diag(X).tolist()
    assert found["sum"][0].tolist() == [2.0, 4.0, 6.0]
    assert found["sum"][1]["y"].tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("chunk_size", [1, 2, 5, None])
def test_chunks_of_rows_give_the_same(chunk_size: int | None) -> None:
    def outer(x: plugrad.Tensor) -> tuple[plugrad.Tensor, plugrad.Tensor]:
        return plugrad.outer(x, x), x.sum()

    matrix, row = jacrev(outer, chunk_size=chunk_size)(X)
    unit = plugrad.eye(3)
    wanted = unit[:, None, :] * X[None, :, None] + X[:, None, None] * unit[None]
    assert matrix.tolist() == wanted.tolist()
    assert row.tolist() == [1.0, 1.0, 1.0]


def test_jacobians_nest_and_are_mapped() -> None:
    hessian = jacrev(jacrev(lambda x: (x * x * x).sum()))
    assert hessian(X).tolist() == plugrad.diag(6 * X).tolist()
    rows = vmap(jacrev(lambda x: x * x))(plugrad.stack([X, 2 * X]))
    assert rows[1].tolist() == plugrad.diag(4 * X).tolist()
    assert grad(lambda x: jacrev(lambda y: y * y)(x).sum())(X).tolist() == [2.0, 2.0, 2.0]


def test_auxiliary_results_come_beside() -> None:
    matrix, aux = jacrev(lambda x: (x * 2, {"x": x}), has_aux=True)(X)
    assert matrix.tolist() == plugrad.diag(2 * plugrad.ones(3)).tolist()
    assert aux["x"].tolist() == X.tolist()


def test_errors() -> None:
    with pytest.raises(ValueError, match="jacrev: `chunk_size` should be greater than 0"):
        jacrev(lambda x: x, chunk_size=0)
    with pytest.raises(RuntimeError, match="Got argnum=2, but only 1 positional inputs"):
        jacrev(lambda x: x, argnums=2)(X)
    with pytest.raises(RuntimeError, match="to return only tensors, got unsupported type"):
        jacrev(lambda x: 3)(X)
