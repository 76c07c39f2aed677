"""Methods under older names, and those that call Python for each element; PyTorch 2.13's rules."""

from __future__ import annotations

from typing import Any

import pytest

import plugrad


def test_apply_and_map_write_what_the_function_returns() -> None:
    x = plugrad.arange(4).reshape(2, 2).t()
    seen: list[int] = []
    assert x.apply_(lambda value: seen.append(value) or value + 1.5) is x
    assert seen == [0, 2, 1, 3]
    assert x.tolist() == [[1, 3], [2, 4]]
    assert x.map_(plugrad.tensor([10, 0]), lambda a, b: a * b).tolist() == [[10, 0], [20, 0]]
    assert x.map2_(x, plugrad.tensor(1), lambda a, b, c: a + b + c)[1, 0] == 41


def test_apply_and_map_refuse_what_pytorch_refuses() -> None:
    leaf = plugrad.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"Can't call apply_\(\) on Variable"):
        leaf.apply_(abs)
    with pytest.raises(TypeError, match=r"expected plugrad\.FloatTensor for 'other'"):
        plugrad.ones(2).map_(plugrad.tensor([3]), max)
    with pytest.raises(TypeError, match="'int' object is not callable"):
        plugrad.ones(2).apply_(3)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("__rpow__", 9), ("__rmod__", 1), ("__rsub__", 1), ("__rfloordiv__", 1), ("__rlshift__", 12)],
)
def test_reflected_operators_take_tensors(name: str, expected: int) -> None:
    assert getattr(plugrad.tensor(2), name)(plugrad.tensor(3)).item() == expected


def test_division_under_its_older_names() -> None:
    x: Any = plugrad.tensor([4.0])
    assert x.__rdiv__(2).item() == 0.5
    assert x.__div__(2).item() == 2.0
    assert x.__idiv__(8) is x
    assert x.item() == 0.5


def test_chalf_says_what_is_missing() -> None:
    with pytest.raises(NotImplementedError, match="complex32"):
        plugrad.ones(1).chalf()


def test_module_load_keeps_the_parameter_unless_it_is_assigned() -> None:
    parameter, loaded = plugrad.zeros(2), plugrad.ones(2)
    copied = parameter.module_load(loaded)
    assert copied.data_ptr() == parameter.data_ptr()
    assert parameter.tolist() == [1.0, 1.0]
    assert parameter.module_load(loaded, assign=True).data_ptr() == loaded.data_ptr()


@pytest.mark.parametrize(("name", "args"), [("__idiv__", (2,)), ("__long__", ())])
def test_infix_methods_refuse_other_objects(name: str, args: tuple[Any, ...]) -> None:
    with pytest.raises(TypeError, match=f"descriptor '{name}' .* doesn't apply to a 'str' object"):
        getattr(plugrad.Tensor, name)("1", *args)
