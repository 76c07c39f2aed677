"""A seed gives PyTorch's numbers on the CPU: some of them are written down, the others compared."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Final

import numpy as np
import pytest

import plugrad
from plugrad_cpu.generator import CpuGenerator
from plugrad_cpu.kernels.random import largest
from plugrad_cpu.numerics.permutations import exchanged

Program = Callable[[Any], Any]

# What PyTorch 2.13 draws after manual_seed(1234).
DRAWN: Final[dict[str, tuple[Program, Any]]] = {
    "float32": (
        lambda t: t.rand(3),
        [0.028979241847991943, 0.4018985629081726, 0.25984418392181396],
    ),
    "float64": (
        lambda t: t.rand(2, dtype=t.float64),
        [0.2318341720884639, 0.07875386135027063],
    ),
    "bfloat16": (
        lambda t: t.rand(3, dtype=t.bfloat16),
        [0.0289306640625, 0.40234375, 0.259765625],
    ),
    "few normal numbers": (
        lambda t: t.randn(3),
        [0.0461304634809494, 0.4024028182029724, -1.0115290880203247],
    ),
    "blocks of normal numbers": (
        lambda t: t.randn(17)[[0, 8, 16]],
        [-0.1117185652256012, 0.6369126439094543, -2.5273351669311523],
    ),
    "blocks in float64": (
        lambda t: t.randn(17, dtype=t.float64)[[0, 8, 16]],
        [-0.0883100793877292, 0.11481509212436923, -0.3660114751930042],
    ),
    "blocks in float16": (
        lambda t: t.randn(17, dtype=t.float16)[[0, 8, 16]],
        [-0.1116943359375, -0.7119140625, 1.2158203125],
    ),
    "normal numbers in strided memory": (
        lambda t: t.zeros(20, 2)[:, 0].normal_(1, 2)[:2],
        [1.0922609567642212, 1.8048056364059448],
    ),
    "complex": (
        lambda t: t.view_as_real(t.randn(1, dtype=t.complex64)),
        [[0.032619163393974304, 0.2845417559146881]],
    ),
    "integers": (lambda t: t.randint(1000, (4,)), [775, 171, 806, 365]),
    "large integers": (lambda t: t.randint(2**40, (2,)), [204000912083, 166721346613]),
    "all integers": (
        lambda t: t.zeros(2, dtype=t.int64).random_(),
        [3532910284440527571, 2252509165406510133],
    ),
    "permutation": (lambda t: t.randperm(8), [7, 5, 2, 3, 4, 6, 1, 0]),
    "coins": (lambda t: t.full((8,), 0.5).bernoulli(), [1, 1, 1, 1, 1, 0, 1, 1]),
    "exponential": (
        lambda t: t.zeros(2).exponential_(2.0),
        [0.13187482953071594, 0.041014011949300766],
    ),
    "without replacement": (lambda t: t.tensor([1.0, 2, 3, 4]).multinomial(3), [1, 3, 2]),
    "with replacement": (
        lambda t: t.tensor([1.0, 2, 3, 4]).multinomial(6, True),
        [1, 0, 2, 2, 2, 1],
    ),
    "range": (lambda t: t.zeros(2).uniform_(-1, 3), [-0.8840830326080322, 0.6075942516326904]),
    "order of memory": (
        lambda t: t.zeros(2, 2).t().uniform_(),
        [[0.028979241847991943, 0.25984418392181396], [0.4018985629081726, 0.3666413426399231]],
    ),
}

FLOATS = ("float32", "float64", "float16", "bfloat16")

# Others, compared with PyTorch's where it is installed: for each dtype, in odd sizes and layouts.
COMPARED: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "normal": lambda t, d: [t.empty(n, dtype=d).normal_(0.3, 1.7) for n in (1, 15, 16, 39)],
    "uniform": lambda t, d: [t.empty(n, dtype=d).uniform_(-1.31, 2.6) for n in (1, 999)],
    "of tensors": lambda t, d: [
        t.normal(t.ones(17, dtype=d), 0.7),
        t.normal(0.3, t.full((17,), 0.7, dtype=d)),
        t.normal(t.ones(3, 1, dtype=d), t.full((7,), 0.7, dtype=d)),
    ],
    "in strides": lambda t, d: [
        t.empty(9, 6, dtype=d)[:, ::2].normal_(),
        t.empty(5, 4, 3, dtype=d).permute(2, 0, 1).uniform_(),
        t.empty(5, 4, dtype=d).t().exponential_(),
        t.empty(5, 4, dtype=d).t().bernoulli_(t.full((4, 5), 0.3)),
        t.randn_like(t.empty(5, 4, dtype=d).t()),
    ],
    "coins": lambda t, d: [
        t.empty(50, dtype=d).bernoulli_(0.3),
        t.full((50,), 0.3, dtype=d).bernoulli(),
        t.nn.functional.dropout(t.ones(50, dtype=d), 0.1),
    ],
    "by one formula": lambda t, d: [
        t.empty(50, dtype=d).cauchy_(0.3, 1.7),
        t.empty(9, 6, dtype=d).t().log_normal_(0.3, 1.7),
        t.empty(50, dtype=d).geometric_(0.3),
    ],
    "by rejection": lambda t, d: [
        t.poisson(t.full((40,), rate, dtype=d)) for rate in (0.0, 0.3, 9.99, 77.3)
    ],
    "integers": lambda t, d: [
        t.empty(20, dtype=d).random_(),
        t.empty(20, dtype=d).random_(5, 2050),
        t.empty(20, dtype=d).random_(-7, None),
    ],
    "weights": lambda t, d: [
        t.full((3, 40), 0.1, dtype=d).multinomial(k, r) for k, r in ((1, False), (5, True))
    ],
}


def numbers(value: Any) -> Any:
    return [numbers(item) for item in value] if isinstance(value, list) else value.tolist()


@pytest.mark.parametrize("name", DRAWN)
def test_numbers_are_those_of_pytorch(name: str) -> None:
    program, expected = DRAWN[name]
    plugrad.manual_seed(1234)
    assert program(plugrad).tolist() == expected


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", COMPARED)
def test_numbers_and_state_are_those_of_pytorch(name: str, dtype: str, torch_oracle: Any) -> None:
    found = []
    for lib in (plugrad, torch_oracle):
        lib.manual_seed(2**40 + 5)
        drawn = numbers(COMPARED[name](lib, getattr(lib, dtype)))
        found.append((drawn, lib.get_rng_state().tolist()))
    assert found[0] == found[1]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_numbers_by_rejection_are_those_of_pytorch(dtype: str, torch_oracle: Any) -> None:
    def program(lib: Any) -> Any:
        d = getattr(lib, dtype)

        def full(value: float, *shape: int) -> Any:
            return lib.full(shape or (30,), value, dtype=d)

        return [
            *(
                lib.binomial(full(n), full(p))
                for n, p in ((5, 0.3), (5, 0.9), (1000, 0.013), (100, 0.4), (100, 0.83))
            ),
            *(lib._standard_gamma(full(alpha)) for alpha in (0.03, 1.0, 7.0)),
            *(lib._sample_dirichlet(full(0.7, 3, size)) for size in (1, 3, 5, 18, 40)),
            lib.rand(2),
        ]

    found = []
    for lib in (plugrad, torch_oracle):
        lib.manual_seed(77)
        found.append(numbers(program(lib)))
    assert found[0] == found[1]


def test_a_gamma_distribution_has_the_gradient_of_its_quantiles() -> None:
    """With shape 1 the distribution is exponential: the derivative of the distribution function by
    the shape is known there, as a series."""
    alpha = plugrad.ones(4, dtype=plugrad.float64, requires_grad=True)
    drawn = plugrad._standard_gamma(alpha, plugrad.Generator().manual_seed(3))
    drawn.sum().backward()
    expected = []
    for x in drawn.tolist():
        # d/da of the lower incomplete gamma function over gamma(a), at a = 1, by differences.
        step = 1e-5
        high, low = (_gamma_distribution(1 + side * step, x) for side in (1, -1))
        expected.append(-(high - low) / (2 * step) / math.exp(-x))
    assert np.allclose(alpha.grad.tolist(), expected, rtol=2e-3)


def _gamma_distribution(alpha: float, x: float) -> float:
    term = total = 1 / alpha
    for n in range(1, 200):
        term *= x / (alpha + n)
        total += term
    return total * math.exp(alpha * math.log(x) - x - math.lgamma(alpha))


def test_the_twister_is_that_of_the_c_standard() -> None:
    """[rand.predef] of C++: the 10000th number of mt19937 with its default seed."""
    assert CpuGenerator(5489).words(10_000)[-1] == 4123659995


@pytest.mark.parametrize("count", [1, 3, 623, 624, 625, 5000])
def test_words_come_in_turn_whatever_asks_for_them(count: int) -> None:
    whole = CpuGenerator(3).words(12_000)
    generator = CpuGenerator(3)
    start = 0
    while start + 2 * count <= 12_000:
        assert (generator.words(count) == whole[start : start + count]).all()
        start += count
        if start > 7000:
            break


def test_numbers_one_by_one_leave_the_others_to_be_read() -> None:
    expected = CpuGenerator(7).doubles(1000)
    generator = CpuGenerator(7)
    start = 0
    for count in (1, 2, 310, 5, 400):
        stream = generator.one_by_one()
        assert [next(stream) for _ in range(count)] == expected[start : start + count].tolist()
        stream.close()
        start += count
        assert generator.doubles(1)[0] == expected[start]
        start += 1
        state = generator.get_state()
        generator = CpuGenerator(0)
        generator.set_state(state)


def test_a_state_of_pytorch_is_one_here_and_the_other_way_round(torch_oracle: Any) -> None:
    torch = torch_oracle
    theirs, ours = torch.Generator().manual_seed(-5), plugrad.Generator().manual_seed(2)
    torch.rand(700, generator=theirs)
    torch.empty(3).normal_(generator=theirs)  # one number is left
    ours.set_state(theirs.get_state().numpy())
    assert ours.initial_seed() == theirs.initial_seed() == 2**64 - 5
    for _ in range(2):
        drawn = plugrad.empty(3).normal_(generator=ours)
        assert drawn.tolist() == torch.empty(3).normal_(generator=theirs).tolist()
        other = torch.Generator()
        other.set_state(torch.from_numpy(ours.get_state().numpy()))
        theirs = other


def test_what_is_no_state_is_refused() -> None:
    generator = plugrad.Generator().manual_seed(2)
    with pytest.raises(TypeError, match=r"RNG state must be a torch\.ByteTensor"):
        generator.set_state(plugrad.zeros(5056))
    with pytest.raises(RuntimeError, match=r"of size 5056 but found the input .* to be 10"):
        generator.set_state(plugrad.zeros(10, dtype=plugrad.uint8))
    with pytest.raises(RuntimeError, match="Invalid mt19937 state"):
        generator.set_state(plugrad.zeros(5056, dtype=plugrad.uint8))
    for call in (generator.get_offset, lambda: generator.set_offset(4)):
        with pytest.raises(RuntimeError, match="CPU Generator does not use offset"):
            call()
    assert generator.initial_seed() == 2


def test_a_clone_has_the_number_that_is_left() -> None:
    generator = plugrad.Generator().manual_seed(2)
    plugrad.empty(3).normal_(generator=generator)
    clone = generator.clone_state()
    drawn = plugrad.empty(2).normal_(generator=generator)
    assert plugrad.equal(plugrad.empty(2).normal_(generator=clone), drawn)
    assert clone.device == generator.device


def test_integers_of_a_float_stay_inside_their_range() -> None:
    """2**24 + 3 is no float32; the end moves to where no integer is rounded to it."""
    drawn = plugrad.empty(500).random_(2**24 - 2, 2**24 + 3)
    assert drawn.min().item() >= 2**24 - 2
    assert drawn.max().item() < 2**24 + 3
    with pytest.raises(RuntimeError, match="to - 1 is out of bounds for c10::Half"):
        plugrad.empty(2, dtype=plugrad.float16).random_(0, 10**5)
    with pytest.raises(RuntimeError, match="'from' casted to dtype to be less than 'to' casted"):
        plugrad.empty(2, dtype=plugrad.bfloat16).random_(2**9 + 1, 2**9 + 2)


def test_ranges_are_checked_as_by_pytorch() -> None:
    x = plugrad.empty(2)
    for call, message in (
        (lambda: x.uniform_(float("nan"), 1), "from is out of bounds for float"),
        (lambda: x.uniform_(0, 1e39), "to is out of bounds for float"),
        (lambda: x.uniform_(-3e38, 3e38), "uniform_ expects to-from <= std::numeric_limits<Float>"),
        (lambda: x.exponential_(float("nan")), "exponential_ expects lambda > 0.0"),
    ):
        with pytest.raises(RuntimeError, match=message):
            call()


def test_indices_go_into_a_tensor_of_integers() -> None:
    weights = plugrad.ones(3)
    with pytest.raises(RuntimeError, match="multinomial expects Long tensor out, got: Float"):
        plugrad.multinomial(weights, 2, out=plugrad.empty(2))
    out = plugrad.empty(2, dtype=plugrad.int64)
    assert plugrad.multinomial(weights, 2, out=out) is out


def test_a_product_and_sum_are_rounded_once() -> None:
    """If float64 is halfway between two numbers of float32, the lost part decides."""
    from plugrad_cpu.numerics.box_muller import fused_doubles, fused_floats

    # 2**24 + 1 is halfway; 2**-60 more or less decides the rounding.
    x = np.array([2.0**-30, -(2.0**-30)], np.float32)
    factor = np.float32(2.0**-30)
    assert fused_floats(x, factor, np.float64(2.0**24 + 1)).tolist() == [2.0**24 + 2, 2.0**24]
    exact = 1 + 2.0**-52
    fused = fused_doubles(np.array([exact]), exact, -1.0)[0]
    assert fused == 2.0**-51 + 2.0**-104


def test_angles_next_to_the_axes_are_pytorchs() -> None:
    """There the cosine shows each rounding; written down from PyTorch."""
    from plugrad_cpu.numerics.box_muller import in_blocks

    class Given(CpuGenerator):
        def floats(self, count: int) -> Any:
            drawn = np.full(count, 0.5, np.float32)
            drawn[8] = 12582909 / 2**24
            return drawn

    drawn = in_blocks(Given(), 16, 0.0, 1.0, np.dtype(np.float32))
    assert [drawn[0], drawn[8]] == [np.float32(-1.1088252e-06), np.float32(-1.17741)]


def test_normal_numbers_are_no_negative_zeros() -> None:
    """As in PyTorch, which adds the mean. A uniform number of 0 gives a radius of 0."""
    from plugrad_cpu.numerics.box_muller import in_blocks

    class Given(CpuGenerator):
        def floats(self, count: int) -> Any:
            drawn = np.zeros(count, np.float32)
            drawn[8:] = np.linspace(0, 0.99, 8)
            return drawn

    drawn = in_blocks(Given(), 16, 0.0, 1.0, np.dtype(np.float32))
    assert not drawn.any()
    assert not np.signbit(drawn).any()


def test_a_range_may_be_as_wide_as_float64() -> None:
    drawn = plugrad.empty(20, dtype=plugrad.float64).uniform_(
        -8e307, 8e307, generator=plugrad.Generator().manual_seed(2)
    )
    uniform = plugrad.rand(
        20, dtype=plugrad.float64, generator=plugrad.Generator().manual_seed(2)
    ).tolist()
    exact = [float(Fraction(x) * Fraction(8e307 + 8e307) - Fraction(8e307)) for x in uniform]
    assert drawn.tolist() == exact


@pytest.mark.parametrize("count", [1, 7, 600, 4000])
def test_the_largest_of_many_are_those_of_a_stable_sort(count: int) -> None:
    rows = np.random.default_rng(3).integers(0, 900, (3, 5000)).astype(np.float32)
    rows[0, 5::7] = np.nan
    # The sample of one element in 16 is misleading.
    rows[1, ::16] += 1000
    rows[2, ::16] -= 1000
    expected = np.argsort(-rows, 1, kind="stable")[:, :count]
    assert largest(rows, count).tolist() == expected.tolist()


def test_exponential_numbers_in_float32_are_those_of_float64_rounded() -> None:
    rates = (1.0, 0.3, 1e30)
    for rate in rates:
        narrow = plugrad.empty(3000).exponential_(
            rate, generator=plugrad.Generator().manual_seed(1)
        )
        wide = plugrad.empty(3000, dtype=plugrad.float64).exponential_(
            rate, generator=plugrad.Generator().manual_seed(1)
        )
        assert narrow.tolist() == wide.to(plugrad.float32).tolist()


@pytest.mark.parametrize("count", [2, 7, 600])
def test_all_exchanges_at_once_give_what_one_after_the_other_does(count: int) -> None:
    distances = (np.random.default_rng(count).random(count - 1) * np.arange(count, 1, -1)).astype(
        np.uint32
    )
    order = list(range(count))
    for place, distance in enumerate(distances.tolist()):
        other = place + distance
        order[place], order[other] = order[other], order[place]
    assert exchanged(distances).tolist() == order


def test_numbers_of_an_infinite_rate_are_infinite() -> None:
    found = plugrad.poisson(plugrad.tensor([math.inf, 0.0], dtype=plugrad.float64))
    assert found.tolist() == [math.inf, 0.0]
