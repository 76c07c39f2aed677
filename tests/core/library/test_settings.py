"""Entries with `settings:`: arguments that go together reach functions as one object."""

from __future__ import annotations

from typing import Any

import pytest

import plugrad
from plugrad.codegen import EntryError, load, unload
from plugrad.codegen.settings import settings_classes
from plugrad.dispatch import find_operator

WINDOWS = """
- func: >-
    tops(Tensor self, int[2] kernel_size, int[2] stride, int[2] padding, bool ceil_mode) -> Tensor
  composite: tops
  settings: Pooling
  doc: The greatest of each window.
- func: smooth(Tensor self, int[2] size, bool ceil_mode, float factor) -> Tensor
  settings: Pooling(kernel_size=size, stride=(1, 1), padding=(0, 0), divisor_override=2)
  explicit: smooth
  derivatives:
    self: back(grad, settings, settings(kernel_size=(1, 1)), factor)
  doc: Half of the sums of windows.
"""


def test_functions_get_one_object_and_the_other_arguments() -> None:
    seen: list[tuple[Any, ...]] = []

    def tops(x: Any, settings: Any) -> Any:
        seen.append(settings.values())
        return x

    def smooth(x: Any, settings: Any, factor: float) -> Any:
        seen.append((*settings.values(), factor))
        return x * 1

    def back(grad: Any, settings: Any, other: Any, factor: float) -> Any:
        seen.append((settings.kernel_size, other.kernel_size, other.divisor_override, factor))
        return grad

    functions = {"tops": tops, "smooth": smooth, "back": back}
    family = load(WINDOWS, namespace="with_settings", functions=functions)
    try:
        x = plugrad.ones(1, 4, 4, requires_grad=True)
        family.tops(x, 2, 3, (0, 1), True)
        family.smooth(x, (3, 2), False, 0.5).sum().backward()
    finally:
        unload(family)
    assert seen == [
        ((2, 2), (3, 3), (0, 1), (1,), True, True, None),
        ((3, 2), (1, 1), (0, 0), (1,), False, True, 2, 0.5),
        ((3, 2), (1, 1), 2, 0.5),
    ]


def test_values_stand_in_the_order_of_the_table() -> None:
    from plugrad._generated import settings

    for name, kind in settings_classes().items():
        made = {"int": 1, "bool": True, "float": 0.5, "Tensor": None}
        given = [
            (2, 3) if member.type.is_list else made[member.type.base] for member in kind.members
        ]
        found = getattr(settings, name)(*given)
        assert found.values() == tuple(given)
        assert found.copy() is not found
        assert found.copy().values() == tuple(given)
        for member, value in zip(kind.members, given, strict=True):
            assert getattr(found, member.name) == value


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("Poling", "settings must be among Convolution, Pooling, .*; got 'Poling'"),
        ("Convolution", "settings: Convolution needs 'stride', which the schema lacks"),
        ("LayerNorm(normalized_shape=(1,), eps=2)", "settings: LayerNorm has no member 'eps'"),
        ("LayerNorm(", "was never closed"),
    ],
)
def test_what_is_wrong_is_named(settings: str, message: str) -> None:
    entry = f"- func: f(Tensor self) -> Tensor\n  composite: f\n  settings: {settings}\n  doc: x.\n"
    with pytest.raises(EntryError, match=message):
        load(entry, namespace="bad_settings", functions={"f": abs})
    assert find_operator("bad_settings::f") is None


def test_help_takes_the_meaning_of_arguments_from_the_table() -> None:
    for function in (plugrad.conv1d, plugrad.conv2d, plugrad.convolution):
        assert "how many zeros are added" in str(function.__doc__)
    assert "how much is cut off" in str(plugrad.conv_transpose2d.__doc__)
    assert "how many elements are added" in str(plugrad.avg_pool1d.__doc__)
