"""What holds of each distribution: gradients, shapes, expansion, supports, divergences."""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad import distributions as d
from plugrad.distributions import constraints
from tests.distributions.table import CASES, Case

each = pytest.mark.parametrize("case", CASES, ids=str)


@each
def test_gradients_of_the_density(case: Case) -> None:
    made, tensors = case.make(plugrad, d, grad=True)
    plugrad.manual_seed(2)
    value = made.sample()

    def density(*parameters: plugrad.Tensor) -> plugrad.Tensor:
        names = [n for n in case.parameters if n not in ("total_count", "temperature", "dim")]
        rest = {
            n: v if isinstance(v, int) else plugrad.tensor(v, dtype=plugrad.float64)
            for n, v in case.parameters.items()
            if n not in names
        }
        given = dict(zip(names, parameters, strict=True))
        if case.name == "Wishart" or "covariance_matrix" in given or "precision_matrix" in given:
            # Only the symmetric part counts.
            for name in ("covariance_matrix", "precision_matrix"):
                if name in given:
                    given[name] = (given[name] + given[name].mT) / 2
        if "scale_tril" in given:
            given["scale_tril"] = given["scale_tril"].tril()
        found: plugrad.Tensor = getattr(d, case.name)(
            **given, **rest, validate_args=False
        ).log_prob(value)
        return found

    assert plugrad.autograd.gradcheck(density, tuple(tensors))


@each
def test_expanded(case: Case) -> None:
    made, _ = case.make(plugrad, d)
    shape = (3, *made.batch_shape)
    wide = made.expand(shape)
    assert tuple(wide.batch_shape) == shape
    assert wide.event_shape == made.event_shape
    value = wide.sample((2,))
    assert tuple(value.shape) == (2, *shape, *made.event_shape)
    assert wide.support.check(value).all()
    np.testing.assert_allclose(wide.log_prob(value).numpy(), made.log_prob(value).numpy())


@each
def test_samples_with_gradients(case: Case) -> None:
    made, tensors = case.make(plugrad, d, grad=True)
    if not made.has_rsample:
        with pytest.raises(NotImplementedError):
            made.rsample()
        return
    drawn = made.rsample((2,))
    assert drawn.requires_grad
    assert not made.sample((2,)).requires_grad
    # The last parameter of one-hot vectors is the whole simplex: its sum has no gradient.
    weights = plugrad.arange(1.0, drawn.numel() + 1, dtype=drawn.dtype).reshape(drawn.shape)
    grads = plugrad.autograd.grad((drawn * weights).sum(), tensors)
    assert all(grad.isfinite().all() for grad in grads)
    assert any(grad.abs().sum() > 0 for grad in grads)


@each
def test_bijections_to_the_support(case: Case) -> None:
    made, _ = case.make(plugrad, d)
    if made.support.is_discrete or made.support.event_dim == 2:
        return
    if case.name == "GeneralizedPareto":  # an interval; its end may be infinite
        return
    transform = d.biject_to(made.support)
    shape = transform.inverse_shape(made.batch_shape + made.event_shape)
    x = plugrad.linspace(-1, 1, math.prod(shape), dtype=plugrad.float64).reshape(shape)
    y = transform(x)
    assert made.support.check(y).all()
    np.testing.assert_allclose(transform.inv(y).numpy(), x.numpy(), atol=1e-9)


PAIRS = [
    *(("Beta", "Normal"), ("Beta", "Gamma"), ("Beta", "Uniform"), ("Exponential", "Gumbel")),
    *(("Gamma", "Exponential"), ("Gamma", "Normal"), ("Normal", "Laplace"), ("Normal", "Gumbel")),
    *(("Pareto", "Gamma"), ("Uniform", "Beta"), ("Uniform", "Gumbel"), ("Wishart", "Wishart")),
    *(("Laplace", "Laplace"), ("Dirichlet", "Dirichlet"), ("Cauchy", "Cauchy")),
    *(("LowRankMultivariateNormal", "LowRankMultivariateNormal"), ("Gumbel", "Gumbel")),
    *(("VonMises", None), ("Gumbel", "Normal")),
]


@pytest.mark.parametrize(("name", "other"), PAIRS)
def test_divergence_is_the_mean_of_the_quotient(name: str, other: str | None) -> None:
    """By as many samples as make it sure to some percent."""
    by_name = {case.name: case for case in reversed(CASES)}
    p, _ = by_name[name].make(plugrad, d)
    if other is None:
        with pytest.raises(NotImplementedError, match=r"No KL\(p \|\| q\) is implemented"):
            d.kl_divergence(p, p)
        return
    q, _ = by_name[other].make(plugrad, d, validate_args=False)
    if name == other:
        changed = {"loc": 0.5, "concentration": 1.5, "df": 1.0}
        given = {
            key: plugrad.tensor(value, dtype=plugrad.float64) + changed.get(key, 0)
            for key, value in by_name[name].parameters.items()
        }
        q = getattr(d, name)(**given, validate_args=False)
    plugrad.manual_seed(3)
    value = p.sample((20000,))
    quotient = (p.log_prob(value) - q.log_prob(value)).numpy()
    found = d.kl_divergence(p, q).detach().numpy()
    finite = np.isfinite(found)
    assert not np.isfinite(quotient[:, ~finite].mean(0)).any()
    error = quotient[:, finite].std(0) / math.sqrt(len(quotient))
    assert (abs(quotient[:, finite].mean(0) - found[finite]) < 6 * error + 1e-9).all()


def test_divergence_without_common_values_is_infinite() -> None:
    assert d.kl_divergence(d.Normal(0.0, 1.0), d.Gamma(1.0, 1.0)) == math.inf
    assert d.kl_divergence(d.Bernoulli(0.5), d.Bernoulli(0.0)) == math.inf
    assert d.kl_divergence(d.Uniform(0.0, 2.0), d.Uniform(0.0, 1.0)) == math.inf


def test_nearest_divergence_is_used() -> None:
    class Mine(d.Normal):
        pass

    @d.register_kl(Mine, d.Normal)
    def mine_to_normal(p: Any, q: Any) -> plugrad.Tensor:
        return plugrad.tensor(42.0)

    assert d.kl_divergence(Mine(0.0, 1.0), d.Normal(0.0, 1.0)) == 42
    assert d.kl_divergence(d.Normal(0.0, 1.0), Mine(0.0, 1.0)) == 0
    with pytest.raises(TypeError, match="type_p has to be a class"):
        d.register_kl(3, d.Normal)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: d.Normal(0.0, -1.0), r"Expected parameter scale .*GreaterThan\(lower_bound=0.0\)"),
        (lambda: d.Normal("a", 1.0), "Input arguments must all be instances of Number"),
        (lambda: d.Bernoulli(), "Either `probs` or `logits` must be specified, but not both"),
        (lambda: d.Bernoulli(0.5, 0.0), "Either `probs` or `logits` must be specified"),
        (lambda: d.Categorical(plugrad.tensor(1.0)), "`probs` parameter must be at least one"),
        (lambda: d.Independent(d.Normal(0.0, 1.0), 1), "Expected reinterpreted_batch_ndims <="),
        (lambda: d.Uniform(1.0, 0.0), "Expected parameter low"),
        (
            lambda: d.MultivariateNormal(plugrad.zeros(2), plugrad.zeros(2, 2)),
            "Expected parameter covariance_matrix .* PositiveDefinite",
        ),
        (lambda: d.MultivariateNormal(plugrad.zeros(2)), "Exactly one of covariance_matrix or"),
        (lambda: d.Normal(0.0, 1.0).log_prob(1.0), "value argument to log_prob must be a Tensor"),
        (
            lambda: d.Poisson(2.0).log_prob(plugrad.tensor(0.5)),
            r"to be within the support \(IntegerGreaterThan\(lower_bound=0\)\)",
        ),
        (
            lambda: d.Normal(plugrad.zeros(2), plugrad.ones(2)).log_prob(plugrad.zeros(3)),
            "Value is not broadcastable with batch_shape",
        ),
        (lambda: d.ReshapeTransform((2,), (3,)), "in_shape, out_shape have different numbers"),
        (lambda: d.Transform(3), "cache_size must be 0 or 1"),
        (lambda: d.LKJCholesky(1), "Expected dim to be an integer greater than or equal to 2"),
    ],
)
def test_errors(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_subclasses_say_how_they_expand() -> None:
    class Mine(d.Normal):
        def __init__(self) -> None:
            super().__init__(0.0, 1.0)

    with pytest.raises(NotImplementedError, match=r"must also define a custom \.expand"):
        Mine().expand((2,))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_pickled(case: Case) -> None:
    made, _ = case.make(plugrad, d)
    again = pickle.loads(pickle.dumps(made))
    plugrad.manual_seed(4)
    value = made.sample()
    np.testing.assert_array_equal(again.log_prob(value).numpy(), made.log_prob(value).numpy())


class TestTransforms:
    @pytest.mark.parametrize(
        ("transform", "x"),
        [
            (d.ExpTransform(), [[0.5, -1.0]]),
            (d.PowerTransform(3.0), [[0.5, 1.5]]),
            (d.SigmoidTransform(), [[0.5, -1.0]]),
            (d.SoftplusTransform(), [[0.5, -1.0]]),
            (d.TanhTransform(), [[0.5, -1.0]]),
            (d.AffineTransform(1.0, -2.0), [[0.5, -1.0]]),
            (d.ComposeTransform([d.ExpTransform(), d.AffineTransform(1.0, 2.0)]), [[0.5, -1.0]]),
            (d.CumulativeDistributionTransform(d.Normal(0.0, 1.0)), [[0.5, -1.0]]),
        ],
        ids=lambda value: type(value).__name__ if isinstance(value, d.Transform) else "",
    )
    def test_slope_of_numbers(self, transform: Any, x: Any) -> None:
        value = plugrad.tensor(x, dtype=plugrad.float64, requires_grad=True)
        y = transform(value)
        (slope,) = plugrad.autograd.grad(y.sum(), value)
        found = transform.log_abs_det_jacobian(value, y)
        np.testing.assert_allclose(found.detach(), slope.abs().log().numpy(), atol=1e-9)
        np.testing.assert_allclose(transform.inv(y).detach(), x, atol=1e-9)
        assert transform.sign == slope.sign().flatten()[0]
        assert transform.inv.inv is transform

    @pytest.mark.parametrize(
        ("transform", "used"),
        [
            (d.StickBreakingTransform(), lambda y: y[..., :-1]),
            (
                d.CorrCholeskyTransform(),
                lambda y: y[..., *plugrad.tril_indices(3, 3, -1)],
            ),
        ],
        ids=["sticks", "correlations"],
    )
    def test_determinant_of_vectors(self, transform: Any, used: Any) -> None:
        x = plugrad.tensor([0.3, -0.5, 0.8], dtype=plugrad.float64)
        matrix = plugrad.autograd.functional.jacobian(lambda v: used(transform(v)), x)
        y = transform(x)
        expected = plugrad.linalg.slogdet(matrix).logabsdet
        np.testing.assert_allclose(transform.log_abs_det_jacobian(x, y), expected, atol=1e-9)
        assert transform.codomain.check(y).all()
        np.testing.assert_allclose(transform.inv(y), x, atol=1e-9)
        assert transform.forward_shape(x.shape) == y.shape
        assert transform.inverse_shape(y.shape) == x.shape

    def test_cache_gives_back_what_it_took(self) -> None:
        transform = d.TanhTransform(cache_size=1)
        x = plugrad.tensor(30.0)
        assert transform.inv(transform(x)) is x
        assert transform.with_cache(0)._cache_size == 0

    def test_parts(self) -> None:
        x = plugrad.tensor([[1.0, 2.0, 3.0]])
        cat = d.CatTransform([d.ExpTransform(), d.AffineTransform(0.0, 2.0)], 1, [1, 2])
        np.testing.assert_allclose(cat(x), [[math.e, 4.0, 6.0]], rtol=1e-6)
        np.testing.assert_allclose(cat.inv(cat(x)), x, rtol=1e-6)
        np.testing.assert_allclose(
            cat.log_abs_det_jacobian(x, cat(x)), [[1.0, math.log(2), math.log(2)]], rtol=1e-6
        )
        stack = d.StackTransform([d.ExpTransform(), d.AbsTransform()], 0)
        pair = plugrad.tensor([[1.0], [-2.0]])
        np.testing.assert_allclose(stack(pair), [[math.e], [2.0]], rtol=1e-6)

    def test_to_matrices(self) -> None:
        x = plugrad.tensor([[0.1, 9.0], [0.5, -0.3]], dtype=plugrad.float64)
        for kind in ("lower_cholesky", "positive_definite", "positive_semidefinite"):
            constraint = getattr(constraints, kind)
            transform = d.transform_to(constraint)
            y = transform(x)
            assert constraint.check(y)
            np.testing.assert_allclose(transform(transform.inv(y)), y, atol=1e-12)


class TestConstraints:
    @pytest.mark.parametrize(
        ("constraint", "inside", "outside"),
        [
            (constraints.boolean, 1.0, 0.5),
            (constraints.nonnegative_integer, 0.0, -1.0),
            (constraints.integer_interval(1, 3), 3.0, 4.0),
            (constraints.real, 0.0, math.nan),
            (constraints.half_open_interval(0, 1), 0.0, 1.0),
            (constraints.simplex, [0.5, 0.5], [0.5, 0.6]),
            (constraints.one_hot, [0.0, 1.0], [1.0, 1.0]),
            (constraints.multinomial(3), [1.0, 2.0], [2.0, 2.0]),
            (constraints.symmetric, [[1.0, 2.0], [2.0, 1.0]], [[1.0, 2.0], [0.0, 1.0]]),
            (constraints.positive_definite, [[2.0, 1.0], [1.0, 2.0]], [[1.0, 2.0], [2.0, 1.0]]),
            (constraints.positive_semidefinite, [[1.0, 1.0], [1.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]),
            (constraints.lower_triangular, [[1.0, 0.0], [1.0, 1.0]], [[1.0, 1.0], [0.0, 1.0]]),
            (constraints.corr_cholesky, [[1.0, 0.0], [0.6, 0.8]], [[1.0, 0.0], [0.6, 0.6]]),
            (constraints.independent(constraints.positive, 1), [1.0, 2.0], [1.0, -2.0]),
        ],
        ids=str,
    )
    def test_check(self, constraint: Any, inside: Any, outside: Any) -> None:
        assert constraint.check(plugrad.tensor(inside, dtype=plugrad.float64))
        assert not constraint.check(plugrad.tensor(outside, dtype=plugrad.float64))

    def test_dependent_ones_cannot_be_checked(self) -> None:
        assert constraints.is_dependent(d.Uniform.support)
        assert not constraints.is_dependent(d.Uniform(0.0, 1.0).support)
        with pytest.raises(ValueError, match="Cannot determine validity of dependent constraint"):
            constraints.dependent.check(plugrad.zeros(()))
        with pytest.raises(NotImplementedError, match="is_discrete cannot be determined"):
            _ = constraints.dependent.is_discrete
        with pytest.raises(NotImplementedError, match="Cannot transform _Dependent constraints"):
            d.biject_to(constraints.dependent)

    def test_parts(self) -> None:
        both = constraints.cat([constraints.positive, constraints.real], 0, [1, 2])
        assert both.check(plugrad.tensor([-1.0, -1.0, 1.0])).tolist() == [False, True, True]
        stacked = constraints.stack([constraints.positive, constraints.real], 0)
        assert stacked.check(plugrad.tensor([-1.0, -1.0])).tolist() == [False, True]


def test_mixture() -> None:
    parts = d.Normal(plugrad.tensor([-1.0, 2.0]), plugrad.tensor([0.5, 1.0]))
    mixture = d.MixtureSameFamily(d.Categorical(plugrad.tensor([0.25, 0.75])), parts)
    assert float(mixture.mean) == pytest.approx(1.25)
    assert float(mixture.variance) == pytest.approx(0.25 * 0.25 + 0.75 + 0.1875 * 9)
    at = plugrad.tensor(0.5)
    assert float(mixture.log_prob(at).exp()) == pytest.approx(
        float((parts.log_prob(at).exp() * plugrad.tensor([0.25, 0.75])).sum())
    )
    assert mixture.expand((3,)).sample((2,)).shape == (2, 3)


def test_generalized_pareto_is_exponential_for_concentration_0() -> None:
    made, other = d.GeneralizedPareto(1.0, 2.0, 0.0), d.Exponential(0.5)
    value = plugrad.tensor([1.0, 2.0, 5.0])
    np.testing.assert_allclose(made.log_prob(value), other.log_prob(value - 1), rtol=1e-6)
    np.testing.assert_allclose(made.cdf(value), other.cdf(value - 1), rtol=1e-6)
    np.testing.assert_allclose(made.icdf(made.cdf(value)), value, rtol=1e-5)


def test_independent_sums_over_its_event() -> None:
    base = d.Normal(plugrad.zeros(2, 3), plugrad.ones(2, 3))
    made = d.Independent(base, 1)
    assert (made.batch_shape, made.event_shape) == ((2,), (3,))
    value = plugrad.ones(2, 3)
    np.testing.assert_allclose(made.log_prob(value), base.log_prob(value).sum(-1))
    assert d.kl_divergence(made, made).tolist() == [0, 0]
    assert repr(made) == (
        "Independent(Normal(loc: plugrad.Size([2, 3]), scale: plugrad.Size([2, 3])), 1)"
    )


def test_singular_samples_of_wishart_are_rare() -> None:
    matrices = d.Wishart(plugrad.tensor(5.0), plugrad.eye(3)).sample((50,))
    assert constraints.positive_definite.check(matrices).all()
