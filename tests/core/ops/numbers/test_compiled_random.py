"""Loops that numba compiles draw the numbers that NumPy draws, and leave the same state."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies

import plugrad
from plugrad_cpu import compiled
from plugrad_cpu.generator import BLOCK, CpuGenerator
from plugrad_cpu.kernels import random as kernels
from plugrad_cpu.numerics import box_muller
from tests.core.drawing import drawn
from tests.core.ops.numbers.test_random_numbers import COMPARED, FLOATS, numbers

pytest.importorskip("numba")

from plugrad_cpu.compiled import elementwise  # needs numba
from plugrad_cpu.compiled import random as loops

Array = np.ndarray[Any, Any]
Draw = Callable[[CpuGenerator, int], Array]

SINGLE, DOUBLE, LONG = np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.int64)
UPPER: Final = np.cumsum(np.arange(1, 42)) / np.arange(1, 42).sum()
MANY: Final = compiled.ENOUGH + 13


def _integers(low: int, high: int) -> Draw:
    return lambda g, n: kernels.random_between_(np.empty(n, LONG), low, high, g)


# A loop, the dtype of its numbers, its other arguments, and how NumPy draws the same.
LOOPS: Final[dict[str, tuple[Any, Any, tuple[Any, ...], Draw]]] = {
    "words": (loops.words, np.dtype(np.uint32), (), lambda g, n: g.words(n)),
    "floats": (loops.floats, SINGLE, (), lambda g, n: g.floats(n)),
    "doubles": (loops.doubles, DOUBLE, (), lambda g, n: g.doubles(n)),
    "narrow range": (
        loops.uniform_floats,
        SINGLE,
        (-1.31, -1.3),
        lambda g, n: kernels.uniform_(np.empty(n, SINGLE), -1.31, -1.3, g),
    ),
    "range of doubles": (
        loops.uniform_doubles,
        DOUBLE,
        (-1.31, 2.6),
        lambda g, n: kernels.uniform_(np.empty(n), -1.31, 2.6, g),
    ),
    "coins": (
        loops.coins,
        np.dtype(np.bool_),
        (0.3,),
        lambda g, n: kernels.bernoulli_(np.empty(n, np.bool_), 0.3, g),
    ),
    "exponential": (
        loops.exponential,
        DOUBLE,
        (-1 / 1.3,),
        lambda g, n: kernels.exponential_(np.empty(n), 1.3, g),
    ),
    "with replacement": (
        loops.inverted,
        LONG,
        (UPPER,),
        lambda g, n: np.searchsorted(UPPER, g.doubles(n)),
    ),
    "one category": (
        loops.inverted,
        LONG,
        (UPPER[-1:],),
        lambda g, n: np.searchsorted(UPPER[-1:], g.doubles(n)),
    ),
    "sevenths": (loops.integers, LONG, (7, -3), _integers(-3, 4)),
    "one integer": (loops.integers, LONG, (1, 0), _integers(0, 1)),
    "the longest integers of one word": (
        loops.integers,
        LONG,
        (2**28 - 1, 0),
        _integers(0, 2**28 - 1),
    ),
    "half of all words": (
        loops.integers,
        LONG,
        (2**31, 0),
        lambda g, n: (g.words(n) % np.uint32(2**31)).astype(LONG),
    ),
    "long integers": (
        loops.long_integers,
        LONG,
        (np.uint64(2**40 + 9), 5),
        _integers(5, 2**40 + 14),
    ),
    "all integers": (loops.long_integers, LONG, (np.uint64(0), 0), _integers(-(2**63), 2**63)),
    "permutation": (
        loops.permutation,
        LONG,
        (),
        lambda g, n: kernels.randperm(n, g, LONG, 0),
    ),
    "normal": (
        loops.normal_floats,
        SINGLE,
        (0.3, 1.7),
        lambda g, n: kernels.normal_(np.empty(n, SINGLE), 0.3, 1.7, g),
    ),
    "normal doubles": (
        loops.normal_doubles,
        DOUBLE,
        (0.3, 1.7),
        lambda g, n: kernels.normal_(np.empty(n), 0.3, 1.7, g),
    ),
    "pairs": (
        loops.normal_pairs,
        DOUBLE,
        (),
        lambda g, n: box_muller.one_by_one(g, n),
    ),
}

NEAR: Final = [count + step for count in (16, BLOCK // 2, BLOCK, 2 * BLOCK) for step in (-1, 0, 1)]
COUNTS: Final = strategies.sampled_from([1, 2, 3, *NEAR, 2000]) | strategies.integers(1, 1500)


def _state(source: CpuGenerator) -> list[int]:
    found: list[int] = source.get_state().tolist()
    return found


@pytest.fixture
def no_threshold(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if any number of elements were enough."""
    monkeypatch.setattr(compiled, "ENOUGH", 1)
    monkeypatch.setattr(compiled, "SOME", 1)


@drawn(100)
@hypothesis.given(
    strategies.integers(0, 2**32),
    strategies.lists(
        strategies.tuples(strategies.sampled_from(sorted(LOOPS)), COUNTS), min_size=1, max_size=4
    ),
    strategies.integers(0, 5),
)
def test_loops_and_numpy_draw_the_same(
    seed: int, program: list[tuple[str, int]], ahead: int
) -> None:
    compiled_one, plain = CpuGenerator(seed), CpuGenerator(seed)
    for name, count in program:
        loop, dtype, arguments, draw = LOOPS[name]
        if name.startswith("normal"):
            count = max(count, 16)
        if name == "permutation":
            # One number takes no words.
            count += 1
        if name == "pairs":
            count += count % 2
        out = np.empty(count, dtype)
        compiled_one.run(loop, out, *arguments)
        expected = draw(plain, count)
        assert out.tobytes() == expected.astype(dtype, casting="same_kind").tobytes(), name
        assert _state(compiled_one) == _state(plain)
        # What is read one by one leaves words that the next loop has to read.
        for source in (compiled_one, plain):
            stream = source.one_by_one()
            for _ in range(ahead):
                next(stream)
            stream.close()
    assert compiled_one.words(3).tolist() == plain.words(3).tolist()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", COMPARED)
def test_kernels_draw_the_same_by_loops(
    name: str, dtype: str, request: pytest.FixtureRequest
) -> None:
    def draw() -> Any:
        plugrad.manual_seed(2**40 + 5)
        values = numbers(COMPARED[name](plugrad, getattr(plugrad, dtype)))
        return values, plugrad.get_rng_state().tolist()

    by_numpy = draw()
    request.getfixturevalue("no_threshold")
    assert draw() == by_numpy


@pytest.mark.usefixtures("no_threshold")
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "int32", "uint32", "int64", "uint64"])
def test_integers_of_all_dtypes_are_those_of_int64(dtype: str) -> None:
    kind = getattr(plugrad, dtype)
    high = 2 if dtype == "bool" else 100
    expected = plugrad.randint(0, high, (50,), generator=plugrad.Generator().manual_seed(3))
    narrow = plugrad.randint(
        0, high, (50,), generator=plugrad.Generator().manual_seed(3), dtype=kind
    )
    assert narrow.dtype == kind
    assert narrow.tolist() == expected.to(kind).tolist()


LARGE: Final[dict[str, Callable[[Any], Any]]] = {
    "uniform": lambda t: [t.rand(MANY), t.rand(MANY, dtype=t.float64)],
    "normal": lambda t: [t.randn(MANY), t.randn(MANY, dtype=t.float64)],
    "one by one": lambda t: [t.empty(MANY).log_normal_(), t.empty(MANY, 2)[:, 0].normal_()],
    "by one formula": lambda t: [t.empty(MANY).cauchy_(), t.empty(MANY).geometric_(0.1)],
    "coins": lambda t: [
        t.nn.functional.dropout(t.ones(MANY), 0.3),
        t.full((MANY,), 0.3).bernoulli(),
    ],
    "integers": lambda t: [t.randint(99, (MANY,)), t.randint(2**40 + 1, (MANY,)), t.randperm(MANY)],
    "weights": lambda t: [
        t.rand(MANY).multinomial(500),
        t.rand(2, 700).multinomial(MANY, True),
        t.rand(MANY, dtype=t.float64).multinomial(3),
    ],
}


@pytest.mark.parametrize("name", LARGE)
def test_many_numbers_are_those_of_pytorch(name: str, torch_oracle: Any) -> None:
    found = []
    for lib in (plugrad, torch_oracle):
        lib.manual_seed(77)
        lib.rand(3)
        found.append([made.numpy().tobytes() for made in [*LARGE[name](lib), lib.get_rng_state()]])
    assert found[0] == found[1]


@pytest.fixture
def without_loops() -> Iterator[None]:
    compiled.loops.cache_clear()
    with plugrad.config.set(cpu_capability="default"):
        yield
    compiled.loops.cache_clear()


def test_the_configuration_asks_for_numpy(request: pytest.FixtureRequest) -> None:
    assert CpuGenerator(3).fill("doubles", np.empty(compiled.ENOUGH))
    fast = CpuGenerator(3).doubles(MANY)
    request.getfixturevalue("without_loops")
    assert not CpuGenerator(3).fill("doubles", np.empty(compiled.ENOUGH))
    assert (CpuGenerator(3).doubles(MANY) == fast).all()


def test_a_numba_with_other_logarithms_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    import numba

    monkeypatch.setattr(numba.config, "USING_SVML", True)
    for name in ("jit", "random"):
        monkeypatch.delitem(sys.modules, f"plugrad_cpu.compiled.{name}")
    compiled.loops.cache_clear()
    try:
        assert compiled.loops("random") is None
    finally:
        compiled.loops.cache_clear()


def test_numbers_are_rounded_to_float16_as_by_numpy() -> None:
    narrow = np.arange(0x7C00, dtype=np.uint16).view(np.float16).astype(np.float32)
    middle = (narrow[1:] + narrow[:-1]) / 2
    beside = [np.nextafter(middle, np.float32(end)) for end in (0, np.inf)]
    large = np.array([65519.99, 65520, 7e4, np.inf], np.float32)
    sizes = np.concatenate([narrow, middle, *beside, large])
    for x in (sizes, -sizes):
        out = np.empty(x.size, np.uint16)
        elementwise.halves(x, out)
        with np.errstate(over="ignore"):
            expected = x.astype(np.float16)
        assert out.tolist() == expected.view(np.uint16).tolist()
    not_numbers = np.array([np.nan, -np.nan], np.float32)
    out = np.empty(2, np.uint16)
    elementwise.halves(not_numbers, out)
    assert np.isnan(out.view(np.float16)).all()


def test_threads_that_share_a_generator_share_its_numbers() -> None:
    shared, alone = CpuGenerator(3), CpuGenerator(3)
    with ThreadPoolExecutor(4) as pool:
        drawn = list(pool.map(lambda _: shared.doubles(MANY).tobytes(), range(8)))
    assert sorted(drawn) == sorted(alone.doubles(MANY).tobytes() for _ in range(8))
    assert _state(shared) == _state(alone)


def test_fewer_numbers_use_loops_that_are_loaded() -> None:
    assert CpuGenerator(3).fill("doubles", np.empty(compiled.SOME))
    assert not CpuGenerator(3).fill("doubles", np.empty(compiled.SOME - 1))


def test_few_numbers_do_not_load_numba() -> None:
    program = (
        "import plugrad, sys\n"
        "plugrad.randn(1000), plugrad.rand(10**5), plugrad.randperm(1000)\n"
        "plugrad.empty(1000).log_normal_()\n"
        "assert 'numba' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
