"""Values: SciPy's, torch.special's, and identities where both are only our own kernel."""

from __future__ import annotations

import functools
import inspect
import math
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad import special
from plugrad_special.cases import Row
from tests.special.inputs import arguments, function_of, rows

sp = pytest.importorskip("scipy.special", reason="SciPy is not installed")

# What SciPy calls otherwise.
NAMES = {
    **{f"bessel_{name}": name for name in ("j0", "j1", "y0", "y1")},
    **{f"modified_bessel_{name}": name for name in ("i0", "i1", "k0", "k1")},
    "scaled_modified_bessel_k0": "k0e",
    "scaled_modified_bessel_k1": "k1e",
}
POLYNOMIALS = {
    "chebyshev_polynomial_t": "eval_chebyt",
    "chebyshev_polynomial_u": "eval_chebyu",
    "shifted_chebyshev_polynomial_t": "eval_sh_chebyt",
    "shifted_chebyshev_polynomial_u": "eval_sh_chebyu",
    "hermite_polynomial_h": "eval_hermite",
    "hermite_polynomial_he": "eval_hermitenorm",
    "laguerre_polynomial_l": "eval_laguerre",
    "legendre_polynomial_p": "eval_legendre",
}
EDGES = [
    *(-math.inf, -1e3, -2.5, -1.0, -1e-5, -0.0),
    *(0.0, 0.25, 0.5, 1.0, 2.0, 30.0, math.inf, math.nan),
]
FINITE = [value for value in EDGES if math.isfinite(value)]


def scipy_of(row: Row) -> Any:
    return getattr(sp, NAMES.get(row.name, row.name), None)


def results(value: Any) -> list[np.ndarray[Any, Any]]:
    values = value if isinstance(value, tuple) else (value,)
    return [v.detach().numpy() if isinstance(v, plugrad.Tensor) else np.asarray(v) for v in values]


def in_scipy(row: Row, values: list[Any]) -> list[np.ndarray[Any, Any]]:
    given = [v.detach().numpy() if isinstance(v, plugrad.Tensor) else v for v in values]
    with np.errstate(all="ignore"):
        found = results(scipy_of(row)(*given))
    return [v.real if row.name == "lambertw" and given[0].dtype.kind != "c" else v for v in found]


@pytest.mark.parametrize("row", rows(lambda row: scipy_of(row) is not None))
@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
def test_scipy(row: Row, dtype: str) -> None:
    if dtype == "complex128" and (not row.complex or row.name in ("cosm1", "polygamma")):
        return
    values = arguments(row, dtype, shape=(5,))
    ours = results(function_of(row)(*values))
    for our, its in zip(ours, in_scipy(row, values), strict=True):
        np.testing.assert_allclose(our, its, rtol=1e-5 if dtype == "float32" else 1e-12)


def has_one_operand(row: Row) -> bool:
    return scipy_of(row) is not None and len(row.ranges) == 1


@pytest.mark.parametrize("row", rows(has_one_operand))
def test_edges_of_the_domain(row: Row) -> None:
    """Infinities, nan and arguments outside of the domain give what SciPy gives."""
    x = plugrad.tensor(EDGES, dtype=plugrad.float64)
    values = [*row.first, x, *row.last]
    for our, its in zip(results(function_of(row)(*values)), in_scipy(row, values), strict=True):
        if row.name == "lambertw":
            its = np.where(np.isclose(sp.lambertw(x.numpy(), *row.last).imag, 0), its, np.nan)
        np.testing.assert_allclose(our, its, rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize("name", list(POLYNOMIALS))
@pytest.mark.parametrize("n", [0, 1, 2, 9])
def test_polynomials(name: str, n: int) -> None:
    x = np.linspace(-1, 1, 9)
    expected = getattr(sp, POLYNOMIALS[name])(n, x)
    found = getattr(special, name)(plugrad.from_numpy(x), n).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-12)


@functools.cache
def decompositions() -> dict[str, Any]:
    """The functions that other backends compute with, by operator."""
    from plugrad.codegen import parse_entries
    from plugrad_special import plugin

    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    found: dict[str, Any] = {}
    for family, modules in plugin.FAMILIES.items():
        given = {name: value for module in modules for name, value in vars(module).items()}
        for entry in parse_entries(
            family, yaml.safe_load((plugin.OPS / f"{family}.yaml").read_text())
        ):
            if entry.explicit:
                found[entry.schema.name] = given[entry.explicit]
    return found


@pytest.mark.parametrize("row", rows(lambda row: row.name in decompositions()))
def test_decompositions_agree_with_kernels(row: Row) -> None:
    """Other backends compute with these."""
    values = arguments(row, shape=(3, 4))
    found = decompositions()[row.name](*values).detach().numpy()
    np.testing.assert_allclose(found, function_of(row)(*values).detach().numpy(), rtol=1e-12)


@pytest.mark.parametrize("name", ["entr", "rel_entr", "kl_div", "xlog1py", "exprel"])
def test_decompositions_at_edges(name: str) -> None:
    function = decompositions()[name]
    grids = np.meshgrid(*[FINITE] * len(inspect.signature(function).parameters))
    with np.errstate(all="ignore"):
        expected = getattr(sp, name)(*grids)
        found = function(*(plugrad.from_numpy(grid) for grid in grids)).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("row", rows(lambda row: row.torch))
def test_torch(row: Row, torch_oracle: ModuleType) -> None:
    values = arguments(row, shape=(5,))
    theirs = getattr(torch_oracle.special, row.name)(
        *(
            torch_oracle.from_numpy(v.detach().numpy()) if isinstance(v, plugrad.Tensor) else v
            for v in values
        )
    )
    found = function_of(row)(*values)
    # PyTorch's Bessel functions are good for single precision in places.
    loose = "bessel" in row.name or "airy" in row.name
    np.testing.assert_allclose(
        found.detach().numpy(), theirs.numpy(), rtol=1e-6 if loose else 1e-11, atol=1e-8
    )


@pytest.mark.parametrize("row", rows(lambda row: row.torch))
@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_dtypes_are_those_of_torch(row: Row, dtype: str, torch_oracle: ModuleType) -> None:
    if dtype in row.wider:
        return
    values = arguments(row, dtype)
    theirs = getattr(torch_oracle.special, row.name)(
        *(
            torch_oracle.from_numpy(v.detach().numpy()) if isinstance(v, plugrad.Tensor) else v
            for v in values
        )
    )
    assert str(function_of(row)(*values).dtype).split(".")[1] == str(theirs.dtype).split(".")[1]


def test_carlson_integrals_by_quadrature() -> None:
    """The kernel behind the derivatives, where SciPy has the integral itself."""
    from plugrad_special.kernels.carlson import carlson_integral

    rng = np.random.default_rng(0)
    x, y, z, p = rng.uniform(0.1, 20.0, (4, 50))
    zero = np.zeros_like(x)
    for powers, factor, expected in (
        ((1, 1, 1, 0), 1 / 2, sp.elliprf(x, y, z)),
        ((1, 1, 3, 0), 3 / 2, sp.elliprd(x, y, z)),
        ((1, 1, 1, 2), 3 / 2, sp.elliprj(x, y, z, p)),
        ((1, 0, 0, 2), 1 / 2, sp.elliprc(x, p)),
    ):
        found = factor * carlson_integral(x, y, z, p, powers)
        np.testing.assert_allclose(found, expected, rtol=1e-13)
    at_zero = carlson_integral(zero, y, z, p, (1, 1, 1, 0)) / 2
    np.testing.assert_allclose(at_zero, sp.elliprf(zero, y, z), rtol=1e-13)
    apart = carlson_integral(x * 1e-9, y, z, p, (1, 1, 1, 0)) / 2
    np.testing.assert_allclose(apart, sp.elliprf(x * 1e-9, y, z), rtol=1e-12)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_complex_polygamma(n: int) -> None:
    real = np.array([-3.3, -0.5, 0.2, 0.7, 5.0, 40.0])
    found = special.polygamma(n, plugrad.from_numpy(real + 0j)).numpy()
    # SciPy's polygamma is for positive arguments: left of 0 by the recurrence DLMF 5.15.5.
    shifted = sum((-1) ** n * math.factorial(n) / (real + k) ** (n + 1) for k in range(4))
    expected = sp.polygamma(n, real + 4) - shifted
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11)
    z = np.array([0.3 + 4j, -2.5 - 30j, 100 + 1j])
    conjugated = special.polygamma(n, plugrad.from_numpy(z.conj())).numpy()
    np.testing.assert_allclose(
        special.polygamma(n, plugrad.from_numpy(z)).numpy(), conjugated.conj(), rtol=1e-12
    )


@pytest.mark.parametrize("n", [61, 90, 2**40])
def test_complex_polygamma_of_large_orders(n: int) -> None:
    z = np.array([0.3 - 0.1j, -2.4 + 0.3j, 50 + 3j, -33 + 200j])
    found = special.polygamma(n, plugrad.from_numpy(z)).numpy()
    if n > 1000:
        assert not np.isfinite(found).all()
        return
    # DLMF 5.15.1: all terms that count.
    terms = (math.factorial(n) * np.exp(-(n + 1) * np.log(z + k)) for k in range(1000))
    np.testing.assert_allclose(found, (-1) ** (n + 1) * sum(terms), rtol=1e-11)
