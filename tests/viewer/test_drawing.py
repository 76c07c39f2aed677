"""Pictures of graphs: their content, its positions, and how they are written."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from itertools import combinations
from pathlib import Path
from typing import Any

import igraph
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import plugrad
from plugrad import nn
from plugrad_viewer.drawing.layers import columns_of, layers_of
from plugrad_viewer.drawing.modules import picture_of
from plugrad_viewer.drawing.picture import Box, Group, Picture, in_order, words_for_bytes
from plugrad_viewer.drawing.places import place, spread

SVG = "{http://www.w3.org/2000/svg}"


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 2, 3)
        self.head = nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 2))

    def forward(self, x: Any) -> Any:
        return self.head(self.conv1(x).relu().flatten(1))


IMAGES = plugrad.ones(1, 1, 4, 4)


def words(drawing: Any) -> list[list[str]]:
    """The lines of each box, as the SVG has them."""
    root = ElementTree.fromstring(drawing.svg)
    boxes = [each for each in root.iter(f"{SVG}g") if each.get("class", "").startswith("b ")]
    return [[text.text or "" for text in box.iter(f"{SVG}text")] for box in boxes]


def groups(drawing: Any) -> list[str]:
    root = ElementTree.fromstring(drawing.svg)
    found = [each for each in root.iter(f"{SVG}g") if each.get("class") == "g"]
    return [each.findtext(f"{SVG}title") or "" for each in found]


def test_a_graph_shows_names_shapes_and_what_is_saved() -> None:
    weight = plugrad.ones(4, requires_grad=True)
    drawing = plugrad.viewer.draw((weight.exp() * 2).sum(), params={"weight": weight})
    assert sorted(words(drawing)) == [
        ["ExpBackward0", "4", "saves result: 16 B"],
        ["MulBackward0", "4"],
        ["SumBackward0", "scalar"],
        ["weight", "4"],
    ]
    root = ElementTree.fromstring(drawing.svg)
    assert len(list(root.iter(f"{SVG}path"))) == 3 + 1  # three edges, one arrow head
    assert root.get("role") == "img"
    assert "16 B saved for backward" in (root.findtext(f"{SVG}desc") or "")
    titles = [each.findtext(f"{SVG}title") for each in root.iter(f"{SVG}g")]
    assert "ExpBackward0, 4\nsaves result: float32 4, 16 B" in titles


def test_a_model_is_called_and_grouped_by_module() -> None:
    drawing = plugrad.viewer.draw(Net(), IMAGES)
    assert groups(drawing) == [
        "Net ()",
        "conv1 (Conv2d)",
        "head (Sequential)",
        "head.0 (Linear)",
        "head.1 (ReLU)",
        "head.2 (Linear)",
    ]
    assert ["conv1.weight", "2 × 1 × 3 × 3"] in words(drawing)


def test_a_module_that_is_called_twice_gives_two_groups() -> None:
    layer = nn.Linear(2, 2)
    drawing = plugrad.viewer.draw(nn.Sequential(layer, nn.ReLU(), layer), plugrad.ones(1, 2))
    assert [title for title in groups(drawing) if title.startswith("0")] == [
        "0 (Linear)",
        "0 (call 2) (Linear)",
    ]


def test_modules_collapse_by_name_and_by_depth() -> None:
    by_name = plugrad.viewer.draw(Net(), IMAGES, collapse="head")
    assert ["head Sequential", "7 nodes, saves 224 B"] in words(by_name)
    assert groups(by_name) == ["Net ()", "conv1 (Conv2d)"]
    by_depth = plugrad.viewer.draw(Net(), IMAGES, depth=1)
    assert [lines[0] for lines in words(by_depth)] == [
        "conv1 Conv2d",
        "ReluBackward0",
        "ViewBackward0",
        "head Sequential",
    ]
    whole = plugrad.viewer.draw(Net(), IMAGES, depth=0)
    assert [lines[0] for lines in words(whole)] == ["Net"]


def test_the_parameters_of_a_model_name_leaves_and_modules() -> None:
    model = Net()
    drawing = plugrad.viewer.draw(model(IMAGES).sum(), params=model)
    assert "conv1 (Conv2d)" in groups(drawing)
    assert ["head.2.bias", "2"] in words(drawing)


def test_a_captured_graph_shows_operators_inputs_and_parameters() -> None:
    model = Net()
    drawing = plugrad.viewer.draw(plugrad.capture(model, IMAGES), params=model)
    assert ["x0", "1 × 1 × 4 × 4"] in words(drawing)
    assert ["convolution", "1 × 2 × 2 × 2"] in words(drawing)
    assert "head.0 (Linear)" in groups(drawing)


def test_a_captured_graph_knows_its_modules_by_itself() -> None:
    model = Net()
    graph = plugrad.capture(model, IMAGES)
    drawing = plugrad.viewer.draw(graph)
    assert ["conv1.weight", "2 × 1 × 3 × 3"] in words(drawing)
    assert groups(drawing) == groups(plugrad.viewer.draw(model, IMAGES))
    flat = plugrad.viewer.draw(graph, collapse="head")
    assert "head.0 (Linear)" not in groups(flat)
    assert any(box[0] == "head Sequential" for box in words(flat))
    assert len(words(plugrad.viewer.draw(graph, depth=1))) < len(words(flat))


def test_the_backward_of_a_captured_step_is_framed_by_the_modules_of_its_forward() -> None:
    model = Net()

    def step(x: Any) -> Any:
        loss = model(x).sum()
        loss.backward()
        return loss.detach()

    graph = plugrad.capture(step, IMAGES)
    assert {"head.0 (Linear)", "head.0 (Linear, backward)"} <= set(
        groups(plugrad.viewer.draw(graph))
    )
    both = [box[0] for box in words(plugrad.viewer.draw(graph, collapse="head"))]
    assert {"head Sequential", "head Sequential, backward"} <= set(both)


def test_a_node_is_drawn_as_its_tensor_is() -> None:
    loss = plugrad.ones(2, requires_grad=True).exp().sum()
    by_node, by_tensor = plugrad.viewer.draw(loss.grad_fn), plugrad.viewer.draw(loss)
    assert words(by_node) == words(by_tensor)
    assert repr(by_node) == repr(by_tensor)


def test_drawing_changes_nothing_of_the_graph() -> None:
    x = plugrad.ones(2, requires_grad=True)
    loss = x.exp().sum()
    plugrad.viewer.draw(loss)
    loss.backward()
    assert plugrad.equal(x.grad, plugrad.ones(2).exp())


def test_pictures_are_written(tmp_path: Path) -> None:
    drawing = plugrad.viewer.draw(plugrad.ones(2, requires_grad=True).sum(), title="a <title>")
    text = drawing.save(tmp_path / "graph.svg").read_text(encoding="utf-8")
    assert text == drawing.svg
    assert "a &lt;title&gt;" in text
    assert "prefers-color-scheme:dark" in text
    assert drawing._repr_svg_() == text
    assert text in drawing._repr_html_()
    with pytest.raises(ValueError, match=r"must end in \.svg or \.html"):
        drawing.save(tmp_path / "graph.png")


def test_errors_name_what_was_expected() -> None:
    with pytest.raises(ValueError, match="without grad_fn"):
        plugrad.viewer.draw(plugrad.ones(2))
    with pytest.raises(TypeError, match=r"expected tensors, nodes, a module .* got int"):
        plugrad.viewer.draw(3)
    with pytest.raises(TypeError, match="inputs are for a module"):
        plugrad.viewer.draw(plugrad.ones(2, requires_grad=True).sum(), plugrad.ones(2))
    with pytest.raises(TypeError, match="params must be a module or a mapping"):
        plugrad.viewer.draw(plugrad.ones(2, requires_grad=True).sum(), params=[1])
    with pytest.raises(ValueError, match="there is no module 'body'"):
        plugrad.viewer.draw(Net(), IMAGES, collapse="body")
    with pytest.raises(ValueError, match="depth must not be negative"):
        plugrad.viewer.draw(Net(), IMAGES, depth=-1)
    with pytest.raises(ValueError, match="made no graph"):
        plugrad.viewer.draw(nn.ReLU(), plugrad.ones(2))


def test_a_model_without_its_inputs_is_told_what_to_pass() -> None:
    with pytest.raises(
        TypeError,
        match=r"draw\(model, \*inputs\): expected the inputs of the model, got none for Net",
    ):
        plugrad.viewer.draw(Net())

    class Constant(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(plugrad.ones(2))

        def forward(self) -> Any:
            return self.weight.exp()

    assert "ExpBackward0" in plugrad.viewer.draw(Constant()).svg


def test_ten_thousand_nodes_are_drawn() -> None:
    x = plugrad.ones(2, requires_grad=True)
    y = x
    for _ in range(5_000):
        y = y * x + 1
    drawing = plugrad.viewer.draw(y.sum())
    assert drawing.svg.count('class="b ') == 10_002
    assert len(drawing.svg) < 8_000_000


@st.composite
def graphs(draw: Any) -> tuple[int, list[tuple[int, int]]]:
    """Nodes with edges from lower to higher numbers."""
    count = draw(st.integers(1, 14))
    pairs = list(combinations(range(count), 2))
    edges = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=30)) if pairs else []
    return count, edges


@settings(max_examples=60, deadline=None)
@given(graphs(), st.data())
def test_edges_lead_down_and_nodes_of_a_layer_stand_apart(graph: Any, data: Any) -> None:
    count, edges = graph
    ends = {end for _, end in edges}
    free = [node for node in range(count) if node not in ends]
    leaves = frozenset(data.draw(st.sets(st.sampled_from(free))))
    layers = layers_of(count, edges, leaves)
    assert min(layers) >= 0
    assert all(layers[start] < layers[end] for start, end in edges)
    for leaf in leaves:
        used = [layers[end] for start, end in edges if start == leaf]
        assert layers[leaf] == min(used, default=1) - 1
    columns = columns_of(layers, edges)
    sizes = [(10.0 + 7 * (node % 3), 20.0) for node in range(count)]
    near = [edge for edge in edges if layers[edge[1]] - layers[edge[0]] == 1]
    lefts = spread(sizes, layers, near)
    assert min(lefts) == pytest.approx(0)
    for first, second in combinations(range(count), 2):
        if layers[first] == layers[second]:
            assert abs(columns[first] - columns[second]) > 0.999
            left, right = sorted((first, second), key=lambda node: lefts[node])
            assert lefts[left] + sizes[left][0] < lefts[right]


def test_igraph_gets_no_edge_that_passes_a_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    given_edges: list[tuple[int, int]] = []
    given_layers: list[int] = []

    class Graph(igraph.Graph):  # type: ignore[misc]  # igraph is untyped
        def __init__(self, n: int, edges: list[tuple[int, int]], directed: bool) -> None:
            super().__init__(n=n, edges=edges, directed=directed)
            given_edges.extend(edges)

        def layout_sugiyama(self, layers: list[int], **options: Any) -> Any:
            given_layers.extend(layers)
            return super().layout_sugiyama(layers=layers, **options)

    monkeypatch.setattr(igraph, "Graph", Graph)
    # A graph that igraph 1.0 crashed by.
    edges = [(0, 12), (3, 13), (5, 7), (0, 7), (2, 3), (8, 13), (5, 12)]
    layers = [0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 1, 2]
    assert len(columns_of(layers, edges)) == 14
    assert len(given_edges) == 8
    assert given_layers == [*layers, 1]
    for start, end in given_edges:
        assert given_layers[end] - given_layers[start] == 1


@settings(max_examples=60, deadline=None)
@given(graphs(), st.data())
def test_boxes_stand_in_their_groups_and_nothing_overlaps(graph: Any, data: Any) -> None:
    count, edges = graph
    # Groups hold stretches of the order, as modules do; some are within others.
    outer = sorted(data.draw(st.sets(st.integers(0, count - 1), max_size=3)) | {0})
    inner = sorted(data.draw(st.sets(st.integers(0, count - 1), max_size=4)) | {*outer})
    picture = Picture(groups=[Group(f"outer {start}", "") for start in outer])
    boxes = []
    for node in range(count):
        group = max(index for index, start in enumerate(outer) if start <= node)
        if node in inner and data.draw(st.booleans()):
            picture.groups.append(Group(f"inner {node}", "Kind", group))
            group = len(picture.groups) - 1
        boxes.append(Box([f"node {node}"] * (1 + node % 3), "function", "", group))
    picture.boxes = boxes
    picture.edges = edges
    places = place(picture)
    for (x, y, wide, tall), box in zip(places.boxes, boxes, strict=True):
        left, top, width, height = places.groups[box.group]
        assert left <= x
        assert x + wide <= left + width + 0.01
        assert top <= y
        assert y + tall <= top + height + 0.01
    for first, second in combinations(places.boxes, 2):
        assert _apart(first, second)
    for first, second in combinations(range(len(picture.groups)), 2):
        if picture.groups[first].parent == picture.groups[second].parent:
            assert _apart(places.groups[first], places.groups[second])
    for (start, end), path in zip(edges, places.paths, strict=True):
        heights = [point[1] for point in path]
        assert heights == sorted(heights)
        assert places.boxes[start][1] < heights[0] <= heights[-1] == places.boxes[end][1]


def _apart(first: Any, second: Any) -> bool:
    (x, y, wide, tall), (left, top, width, height) = first, second
    across = x + wide <= left + 0.01 or left + width <= x + 0.01
    return across or y + tall <= top + 0.01 or top + height <= y + 0.01


def test_an_order_respects_edges_and_numbers() -> None:
    assert in_order(4, [(3, 0), (0, 1)]) == [2, 3, 0, 1]
    assert picture_of([], []).boxes == []


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 kB"), (50 << 20, "50 MB"), (3 << 40, "3072 GB")],
)
def test_bytes_in_words(count: int, text: str) -> None:
    assert words_for_bytes(count) == text
    assert re.fullmatch(r"[\d.]+ [kMG]?B", text)
