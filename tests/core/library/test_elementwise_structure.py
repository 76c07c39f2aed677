"""`structure: elementwise` in a third party's YAML, and what else expressions may use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import plugrad
from plugrad.codegen import EntryError, load, stubs, unload
from plugrad.library import Library, opcheck

BLEND = """
- func: blend(Tensor self, Tensor other, Tensor weight, int times=1) -> Tensor
  variants: [function, out]
  structure: elementwise
  result: float
  derivatives:
    self: grad * times * (1 - weight)
    other: grad * times * weight
    weight: not_implemented("weight", "It is left out here.")
  doc: |
    Between `self` and `other`.

    A second paragraph.
"""


@pytest.fixture
def blend() -> Iterator[ModuleType]:
    lib = Library("elementwise_test", "IMPL", "CPU")
    family = load(BLEND, namespace="elementwise_test", name="first")
    lib.impl("blend", lambda a, b, weight, times: times * (a * (1 - weight) + b * weight))
    yield family
    lib._destroy()
    unload(family)


def test_tensors_are_promoted_together(blend: ModuleType) -> None:
    ints = plugrad.tensor([2, 4])
    assert blend.blend(ints, ints, ints).dtype is plugrad.float32
    double = plugrad.tensor([0.5], dtype=plugrad.float64)
    assert blend.blend(ints, ints, double).dtype is plugrad.float64


def test_operands_are_broadcast(blend: ModuleType) -> None:
    result = blend.blend(plugrad.zeros(3, 1), plugrad.ones(2), plugrad.tensor(0.25))
    np.testing.assert_array_equal(result.numpy(), np.full((3, 2), 0.25, np.float32))
    with pytest.raises(RuntimeError, match=r"size of tensor a \(3\) must match .* tensor b \(2\)"):
        blend.blend(plugrad.zeros(3), plugrad.zeros(2), 0.5)


@pytest.mark.parametrize("dtype", [plugrad.float16, plugrad.float32, plugrad.float64])
def test_numbers_stand_for_tensors_and_do_not_promote(
    blend: ModuleType, dtype: plugrad.dtype
) -> None:
    result = blend.blend(1, plugrad.tensor(3.0, dtype=dtype), 0.5)
    assert result.dtype is dtype
    assert result.item() == 2.0
    assert blend.blend(1, plugrad.tensor(3), weight=0.5, times=2).item() == 4.0


def test_numbers_alone_are_refused(blend: ModuleType) -> None:
    with pytest.raises(TypeError, match="one of the arguments input, other, weight must be Tensor"):
        blend.blend(1, 2, 0.5)
    with pytest.raises(TypeError, match=r"argument 'other' \(position 2\) must be Tensor, not str"):
        blend.blend(plugrad.ones(1), "x", 0.5)


def test_gradients_are_reduced_to_what_was_broadcast(blend: ModuleType) -> None:
    x = plugrad.zeros(1, requires_grad=True)
    y = plugrad.zeros(2, requires_grad=True)
    blend.blend(x, y, 0.25).sum().backward()
    assert x.grad is not None
    assert y.grad is not None
    assert x.grad.tolist() == [1.5]
    assert y.grad.tolist() == [0.25, 0.25]


def test_a_derivative_that_is_not_implemented_raises_when_it_is_asked_for(
    blend: ModuleType,
) -> None:
    weight = plugrad.full((2,), 0.5, requires_grad=True)
    result = blend.blend(plugrad.zeros(2), plugrad.ones(2), weight).sum()
    message = "^the derivative for 'weight' is not implemented. It is left out here.$"
    with pytest.raises(NotImplementedError, match=message):
        result.backward()


PARTS = """
- func: parts(Tensor self, Tensor other) -> (Tensor, Tensor)
  structure: elementwise
  result: complex
  differentiable: false
  doc: Two complex tensors.
"""


def test_results_on_meta_are_as_many_and_of_the_same_dtype() -> None:
    with Library("elementwise_meta", "DEF") as lib:
        lib.load(PARTS)
        lib.impl("parts", lambda a, b: (a + 1j * b, a - 1j * b), "CPU")
        parts = plugrad.ops.elementwise_meta.parts
        for x in (plugrad.ones(3, 1), plugrad.ones(3, 1, dtype=plugrad.int64)):
            opcheck(parts, (x, plugrad.ones(2)))
        first, second = parts(plugrad.empty(3, 1, device="meta"), plugrad.empty(2, device="meta"))
        assert first.dtype is second.dtype is plugrad.complex64
        assert first.shape == second.shape == (3, 2)
        with pytest.raises(EntryError, match="'result: complex' is for 'structure: elementwise'"):
            lib.load(PARTS.replace("elementwise", "unary"))


def test_the_out_variant(blend: ModuleType) -> None:
    out = plugrad.empty(2)
    assert blend.blend(plugrad.zeros(2), plugrad.ones(2), 0.5, out=out) is out
    assert out.tolist() == [0.5, 0.5]


def test_the_short_documentation_is_the_first_paragraph(blend: ModuleType) -> None:
    assert plugrad.ops.elementwise_test.blend.default.doc == "Between `self` and `other`."
    assert "A second paragraph." in blend.blend.__doc__


def test_expressions_see_operators_of_families_loaded_before(blend: ModuleType) -> None:
    entry = """
- func: faded(Tensor self) -> Tensor
  derivatives:
    self: blend(grad, 0, 0.5)
  doc: Half of it.
"""
    family = load(entry, namespace="elementwise_test", name="second")
    handle = Library("elementwise_test", "IMPL", "CPU").impl("faded", lambda a: a / 2)
    try:
        x = plugrad.ones(2, requires_grad=True)
        family.faded(x).sum().backward()
        assert x.grad is not None
        assert x.grad.tolist() == [0.5, 0.5]
        with pytest.raises(EntryError, match="uses 'blend', which is neither"):
            load(entry, namespace="elementwise_elsewhere")
    finally:
        handle.remove()
        unload(family)


def test_the_bare_word_names_operator_and_argument() -> None:
    entry = """
- func: halved(Tensor self, Tensor by) -> Tensor
  structure: elementwise
  derivatives:
    self: not_implemented
    by: not_implemented
  doc: Half of it.
"""
    family = load(entry, namespace="elementwise_word")
    handle = Library("elementwise_word", "IMPL", "CPU").impl("halved", lambda a, b: a / 2)
    try:
        x = plugrad.ones(2, requires_grad=True)
        with pytest.raises(NotImplementedError, match="derivative for 'halved: input' is not"):
            family.halved(x, 2).sum().backward()
        with pytest.raises(NotImplementedError, match="derivative for 'halved: by' is not"):
            family.halved(plugrad.ones(2), x).sum().backward()
    finally:
        handle.remove()
        unload(family)


def test_functions_may_come_from_several_modules() -> None:
    entry = "- func: {0}(Tensor self) -> Tensor\n  composite: {0}\n  doc: Some.\n"
    first = ModuleType("first")
    vars(first).update(one=lambda x: x + 1)
    text = entry.format("one") + entry.format("two")
    family = load(text, namespace="elementwise_many", functions=[first, {"two": lambda x: x + 2}])
    try:
        assert family.one(plugrad.zeros(1)).item() == 1.0
        assert family.two(plugrad.zeros(1)).item() == 2.0
    finally:
        unload(family)


def test_text_that_is_no_yaml_names_the_file() -> None:
    with pytest.raises(EntryError, match=r"^broken.yaml: mapping values are not allowed"):
        load("- func: f(Tensor self) -> Tensor\n  doc: One: two\n", namespace="x", name="broken")


def test_the_stub_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "waves.yaml"
    parts = "- func: parts(Tensor self) -> (Tensor low, Tensor high)\n"
    file.write_text(BLEND + parts + "  differentiable: false\n  doc: Both.\n")
    lines = stubs([file]).splitlines()
    assert (
        "def blend(input: Tensor | Number, other: Tensor | Number, weight: Tensor | Number, "
        "times: builtins.int = 1, *, out: Tensor | None = None) -> Tensor:"
    ) in lines
    assert "class parts_results(NamedTuple):" in lines
    assert "    high: Tensor" in lines
    assert "def parts(input: Tensor) -> parts_results:" in lines
    assert '    """Both.' in lines


def test_meta_tensors_need_no_fake() -> None:
    entries = """
- func: turned(Tensor self, Tensor other) -> Tensor
  structure: elementwise
  result: complex
  differentiable: false
  doc: Complex numbers.

- func: both(Tensor self, Tensor other) -> (Tensor low, Tensor high)
  structure: elementwise
  result: float
  differentiable: false
  doc: Two.
"""
    family = load(entries, namespace="elementwise_meta")
    try:
        x = plugrad.ones(3, 1, dtype=plugrad.float64, device="meta")
        turned = family.turned(x, plugrad.ones(2, device="meta"))
        assert (turned.shape, turned.dtype) == ((3, 2), plugrad.complex128)
        both = family.both(plugrad.ones(2, dtype=plugrad.int64, device="meta"), 1)
        assert [(part.shape, part.dtype) for part in both] == [((2,), plugrad.float32)] * 2
    finally:
        unload(family)


def test_complex_results_are_for_elementwise_operators() -> None:
    entry = "- func: f(Tensor self) -> Tensor\n  structure: unary\n  result: complex\n"
    with pytest.raises(EntryError, match="'result: complex' is for 'structure: elementwise'"):
        load(entry + "  differentiable: false\n  doc: Some.\n", namespace="elementwise_wrong")


BATCHES = """
- func: pair(Tensor self, Tensor other, int times=1) -> (Tensor, Tensor)
  structure: elementwise
  explicit: decomposed
  result: float
  derivatives:
    self, other: pair_backward(grads, times)
  doc: Two tensors.

- func: mixed(Tensor self, Tensor other, int times=1) -> Tensor
  variants: [function, inplace]
  structure: elementwise
  explicit: decomposed
  derivatives:
    self: grad
    other: grad * times
  doc: One tensor.

- func: twofold(Tensor self) -> Tensor
  structure: unary
  explicit: decomposed
  derivatives:
    self: grad * 2
  doc: Two times it.

- func: over(Tensor self, Tensor other) -> Tensor
  structure: binary
  explicit: decomposed
  derivatives:
    self: grad / other
    other: -grad * self / other ** 2
  doc: The quotient.
"""


def _refused(*args: object) -> None:
    raise AssertionError("decomposed, though there is a kernel")


def _pair_backward(grads: list[plugrad.Tensor], times: int) -> tuple[plugrad.Tensor, ...]:
    return grads[0] + grads[1], grads[0] * times - grads[1] * times


@pytest.mark.parametrize(
    ("name", "dtype"),
    [("pair", "float64"), ("mixed", "int64"), ("twofold", "float32"), ("over", "float64")],
)
def test_under_vmap_the_native_kernel_runs_once_for_the_batch(name: str, dtype: str) -> None:
    calls: list[tuple[int, ...]] = []

    def counted(function: Callable[..., object]) -> Callable[..., object]:
        def kernel(*arrays: NDArray[Any]) -> object:
            calls.append(np.broadcast_shapes(*(np.shape(array) for array in arrays[:2])))
            return function(*arrays)

        return kernel

    with Library("elementwise_batches", "DEF") as lib:
        functions = {"decomposed": _refused, "pair_backward": _pair_backward}
        lib.load(BATCHES, functions)
        for own, kernel in {
            "pair": lambda a, b, times: (a + b * times, a - b * times),
            "mixed": lambda a, b, times: a + b * times,
            "twofold": lambda a: a * 2,
            "over": lambda a, b: a / b,
        }.items():
            lib.impl(own, counted(kernel), "CPU")
        op = getattr(plugrad.ops.elementwise_batches, name)
        x = plugrad.arange(1, 7, dtype=getattr(plugrad, dtype)).reshape(3, 2)
        # The scalars of a batch do not promote, as one alone does not.
        scalars = plugrad.tensor([1.0, 2.0, 4.0], dtype=plugrad.float64).to(
            plugrad.int64 if dtype == "int64" else plugrad.float64
        )
        args = (x,) if name == "twofold" else (x, scalars)
        expected = [op(*(arg[i] for arg in args)) for i in range(3)]
        calls.clear()
        found = plugrad.vmap(op)(*args)
    assert calls == [(3, 2)]
    for position, result in enumerate(found if name == "pair" else [found]):
        for index, single in enumerate(expected):
            wanted = single[position] if name == "pair" else single
            assert result.dtype is wanted.dtype
            assert result[index].tolist() == wanted.tolist()


def test_under_vmap_gradients_and_writes_of_an_elementwise_operator() -> None:
    with Library("elementwise_batches", "DEF") as lib:
        lib.load(BATCHES, {"decomposed": _refused, "pair_backward": _pair_backward})
        lib.impl("mixed", lambda a, b, times: a + b * times, "CPU")
        mixed = plugrad.ops.elementwise_batches.mixed
        x, y = plugrad.ones(3, 2), plugrad.ones(3)
        grads = plugrad.vmap(plugrad.func.grad(lambda y, x: mixed(x, y, 5).sum()))(y, x)
        assert grads.tolist() == [10.0] * 3
        plugrad.vmap(lambda x, y: plugrad.ops.elementwise_batches.mixed_(x, y, 2))(x, y)
        assert x.tolist() == [[3.0, 3.0]] * 3


def test_under_vmap_an_operator_that_the_core_decomposes_keeps_a_kernel_for_the_whole() -> None:
    calls: list[tuple[int, ...]] = []

    def hardswish(a: NDArray[Any]) -> NDArray[Any]:
        calls.append(a.shape)
        return a * np.clip(a + 3, 0, 6) / 6

    with Library("plugrad", "IMPL", "CPU") as lib:
        lib.impl("hardswish", hardswish)
        x = plugrad.linspace(-4, 4, 6).reshape(3, 2)
        found = plugrad.vmap(plugrad.ops.plugrad.hardswish)(x)
    assert calls == [(3, 2)]
    plugrad.testing.assert_close(found, plugrad.ops.plugrad.hardswish(x))
