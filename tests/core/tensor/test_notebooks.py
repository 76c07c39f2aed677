"""Displays in notebooks: HTML that is complete, escaped and correct."""

from __future__ import annotations

from html.parser import HTMLParser
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import plugrad
from plugrad import _notebooks
from plugrad._notebooks import MOST, node_html
from plugrad.autograd import profiler

VOID = {"br", "hr", "img"}


class _Page(HTMLParser):
    """Which elements are open, and the text of the cells."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.cells: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "td":
            self.cells.append(data)


def cells(text: str) -> list[str]:
    """The cells of a text that is well formed."""
    page = _Page()
    page.feed(text)
    assert page.open == []
    return page.cells


def test_a_matrix_is_a_table() -> None:
    x = plugrad.tensor([[1.0, 2.5], [3.0, -4.0]], requires_grad=True)
    text = x._repr_html_()
    assert cells(text) == ["1", "2.5", "3", "-4"]
    assert "float32 · 2 × 2 · cpu · requires grad" in text
    assert "grad_fn=MulBackward0" in (x * x)._repr_html_()


def test_of_long_axes_both_ends_are_shown() -> None:
    shown = cells(plugrad.arange(100)._repr_html_())
    assert shown == ["0", "1", "2", "3", "4", "5", "…", "94", "95", "96", "97", "98", "99"]
    assert len(cells(plugrad.zeros(100, 100)._repr_html_())) == (MOST + 1) ** 2


def test_more_dimensions_are_summed_up() -> None:
    text = plugrad.arange(8.0).reshape(2, 2, 2)._repr_html_()
    assert cells(text) == []
    assert "8 elements, 32 bytes" in text
    assert "min 0, max 7, mean 3.5" in text


@pytest.mark.parametrize("shape", [(), (0,), (2, 0), (3,)])
def test_every_shape_and_dtype_is_shown(shape: tuple[int, ...]) -> None:
    for dtype in (plugrad.bool, plugrad.int8, plugrad.float16, plugrad.complex64):
        cells(plugrad.ones(*shape, dtype=dtype)._repr_html_())


def test_a_tensor_without_elements_to_read_says_what_it_is() -> None:
    assert "3 · meta" in plugrad.empty(3, device="meta")._repr_html_()


def test_a_node_lists_the_nodes_behind_it() -> None:
    x = plugrad.ones(2, requires_grad=True)
    text = node_html((x.exp() * 2).sum().grad_fn)
    cells(text)
    assert "SumBackward0: 4 nodes" in text
    assert text.index("MulBackward0") < text.index("ExpBackward0") < text.index("AccumulateGrad")


def test_a_captured_graph_shows_its_listing_and_is_escaped() -> None:
    graph = plugrad.capture(lambda x: x.exp() * 2, plugrad.ones(2))
    text = graph._repr_html_()
    cells(text)
    assert "&lt;Graph of" in text
    assert "exp" in text


def test_a_profile_is_a_table() -> None:
    with profiler.profile() as prof:
        plugrad.ones(2).exp()
    assert "plugrad::exp" in prof._repr_html_()


def test_a_module_is_a_tree_with_parameters() -> None:
    nn = pytest.importorskip("plugrad_nn.nn")
    model = nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.ReLU(), nn.Linear(3, 1, bias=False)))
    text = model._repr_html_()
    cells(text)
    assert "12 parameters" in text
    assert "9 parameters" in text
    assert text.count("<details open") == 2


def test_names_of_modules_are_escaped() -> None:
    nn = pytest.importorskip("plugrad_nn.nn")
    model = nn.Module()
    model.add_module("<b>", nn.ReLU())
    assert "&lt;b&gt;" in model._repr_html_()


@pytest.fixture
def without_viewer(monkeypatch: pytest.MonkeyPatch) -> None:
    without = SimpleNamespace(modules={"plugrad": ModuleType("plugrad")})
    monkeypatch.setattr(_notebooks, "sys", without)


def chain(length: int) -> Any:
    x = plugrad.ones(2, requires_grad=True)
    for _ in range(length):
        x = x.exp()
    return x


@pytest.mark.usefixtures("without_viewer")
def test_a_graph_is_shown_without_the_viewer() -> None:
    graph = plugrad.capture(lambda x: x.exp() * 2, plugrad.ones(2))
    for text in (graph._repr_html_(), chain(2).grad_fn._repr_html_()):
        cells(text)
        assert "<details open>" in text
        assert "<svg" not in text
        assert "exp" in text.lower()


def test_a_node_is_drawn_with_the_viewer_and_its_list_is_folded() -> None:
    pytest.importorskip("plugrad_viewer")
    text = chain(2).sum().grad_fn._repr_html_()
    assert text.startswith("<details><summary>SumBackward0: 4 nodes</summary>")
    assert "max-height" in text
    assert text.count("<svg") == 1


def test_large_graphs_are_listed_up_to_a_bound() -> None:
    text = chain(_notebooks.MOST_DRAWN + 1).grad_fn._repr_html_()
    cells(text)
    assert f"more than {_notebooks.MOST_DRAWN} nodes" in text
    assert text.count("ExpBackward0") == _notebooks.MOST_NODES + 1
    assert "…" in text
    assert "<svg" not in text
    whole = chain(_notebooks.MOST_DRAWN - 1).grad_fn._repr_html_()
    assert f"{_notebooks.MOST_DRAWN} nodes" in whole
    assert "more than" not in whole


def test_a_large_captured_graph_is_listed() -> None:
    graph = plugrad.capture(lambda x: sum_of(x), plugrad.ones(2))
    assert len(graph.nodes) > _notebooks.MOST_DRAWN
    assert "<svg" not in graph._repr_html_()


def sum_of(x: Any) -> Any:
    for _ in range(_notebooks.MOST_DRAWN + 1):
        x = x + 1
    return x
