"""What the articles on PyTorch's autograd describe can be pointed at in the replay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import plugrad
from tests.viewer.browser.conftest import Viewer

Opened = Callable[..., Viewer]


def recorded() -> dict[str, Any]:
    """x is changed in place twice, then weight's gradient is requested, and a product fails."""
    weight = plugrad.ones(2, requires_grad=True)
    x = plugrad.ones(2).add_(1).add_(1)
    recording = plugrad.viewer.record()
    with recording:
        loss = (weight * x).sum()
        plugrad.autograd.grad(loss, weight)
        with pytest.raises(RuntimeError):
            plugrad.mm(plugrad.ones(2, 3), plugrad.ones(2, 3))
    return dict(recording.data)


@pytest.fixture
def data() -> dict[str, Any]:
    return recorded()


def place(data: Any, kind: str, **more: Any) -> int:
    """After which event (counted from 1) comes the first of a kind."""
    return next(
        number
        for number, event in enumerate(data["events"], 1)
        if event["k"] == kind and more.items() <= event.items()
    )


def details(viewer: Viewer, name: str) -> str:
    """The details of a node, to which the search goes."""
    viewer.page.get_by_label("Find a node").fill(name)
    viewer.press("Enter")
    return " ".join(viewer.page.get_by_test_id("details").inner_text().split())


def test_a_call_shows_its_key_set(opened: Opened, data: dict[str, Any]) -> None:
    viewer = opened(data)
    shown = viewer.page.get_by_test_id("keyset")
    assert shown.count() == 0
    viewer.seek(place(data, "step", c=0, s=0))
    assert shown.inner_text() == "DispatchKeySet(AutogradCPU, ADInplaceOrView, CPU)"
    viewer.seek(place(data, "step", c=0, s=1))
    assert shown.inner_text() == "DispatchKeySet(ADInplaceOrView, CPU)"


def test_a_node_shows_its_sequence_number_and_the_versions_that_it_saved(
    opened: Opened, data: dict[str, Any]
) -> None:
    viewer = opened(data)
    (product,) = [node for node in data["nodes"] if node["name"] == "MulBackward0"]
    text = details(viewer, "MulBackward0")
    assert f"Sequence number {product['sequence']} " in text
    assert "other 2 float32 version 2 8 B" in text
    assert "UINT64_MAX: before all others" in details(viewer, "weight")


def test_grad_captures_instead_of_accumulating(opened: Opened, data: dict[str, Any]) -> None:
    viewer = opened(data)
    viewer.seek(place(data, "capture"))
    assert viewer.sentence == "grad() captures the gradient of input 0 of weight, 8 B."
    details(viewer, "weight")
    viewer.press("End")
    text = " ".join(viewer.page.get_by_test_id("details").inner_text().split())
    assert "Captured 1 gradient for grad(inputs=...), not added to .grad" in text
    assert "gradient captured" in text
    assert "None has arrived." in viewer.page.locator("main").inner_text()


def test_a_call_that_raised_says_so(opened: Opened, data: dict[str, Any]) -> None:
    viewer = opened(data)
    (number,) = [index for index, call in enumerate(data["calls"]) if call["op"] == "mm"]
    viewer.seek(place(data, "end", c=number))
    assert viewer.sentence == "mm raises."
