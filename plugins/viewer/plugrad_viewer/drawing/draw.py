"""`draw` and `Drawing`: pictures of autograd graphs and of captured graphs."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import plugrad
from plugrad_viewer.drawing.graphs import nodes_behind, nodes_of_capture, nodes_of_model
from plugrad_viewer.drawing.modules import picture_of, place_nodes
from plugrad_viewer.drawing.picture import Picture, words_for_bytes
from plugrad_viewer.drawing.places import place
from plugrad_viewer.drawing.svg import svg
from plugrad_viewer.recording.format import Module, Node, about_now, empty


class Drawing:
    """A picture of a graph, displayed by notebooks; see `draw`.

    Attributes:
        svg: the picture as the text of an SVG document.

    >>> import plugrad
    >>> x = plugrad.tensor([1.0, 2.0], requires_grad=True)
    >>> drawing = plugrad.viewer.draw((x * x).sum())
    >>> drawing.svg.startswith("<svg"), "MulBackward0" in drawing.svg
    (True, True)
    """

    def __init__(
        self,
        nodes: list[Node],
        modules: list[Module],
        title: str,
        collapse: Sequence[str] = (),
        depth: int | None = None,
    ) -> None:
        self._nodes = nodes
        self._modules = modules
        self._title = title
        self._collapse = tuple(collapse)
        self._depth = depth
        known = {module["name"] for module in modules}
        for name in self._collapse:
            if name not in known:
                raise ValueError(f"collapse: there is no module {name!r} in the graph")

    @cached_property
    def _picture(self) -> Picture:
        return picture_of(self._nodes, self._modules, self._collapse, self._depth)

    @cached_property
    def svg(self) -> str:
        """The picture as text."""
        return svg(self._picture, place(self._picture), self._title, self._about())

    def _about(self) -> str:
        leaves = sum(node["kind"] == "leaf" for node in self._nodes)
        saved = sum(each["bytes"] for node in self._nodes for each in node["saved"])
        return (
            f"{len(self._nodes)} nodes, {leaves} of them leaves; {words_for_bytes(saved)} saved "
            "for backward. Arrows lead the way of forward; backward goes against them."
        )

    def save(self, path: str | Path) -> Path:
        """Write the picture as .svg, or as an .html page with search, zoom and collapsible modules.

        The page is one file, which needs no network. Its reader chooses what to collapse. Returns
        the path.

        Raises:
            ValueError: the name has another ending.

        >>> import os, tempfile
        >>> import plugrad
        >>> x = plugrad.tensor([1.0, 2.0], requires_grad=True)
        >>> drawing = plugrad.viewer.draw((x * x).sum())
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     print(drawing.save(os.path.join(folder, "graph.svg")).name)
        graph.svg
        >>> drawing.save("graph.png")
        Traceback (most recent call last):
            ...
        ValueError: path must end in .svg or .html, got 'graph.png'
        """
        path = Path(path)
        if path.suffix == ".svg":
            text = self.svg
        elif path.suffix in (".html", ".htm"):
            text = self._page()
        else:
            raise ValueError(f"path must end in .svg or .html, got {str(path)!r}")
        path.write_text(text, encoding="utf-8")
        return path

    def _page(self) -> str:
        from plugrad_viewer.page import page

        nodes: list[Node] = [
            {**node, "kind": "leaf" if node["kind"] == "input" else node["kind"]}
            for node in self._nodes
        ]
        place_nodes(nodes, self._modules)
        about = about_now(self._title)
        return page(
            {
                **empty(about),
                "about": {**about, "kind": "graph"},
                "modules": self._modules,
                "nodes": nodes,
            }
        )

    def _repr_svg_(self) -> str:
        return self.svg

    def _repr_html_(self) -> str:
        return f'<div style="overflow:auto;max-height:640px">{self.svg}</div>'

    def __repr__(self) -> str:
        return f"<Drawing of {self._title}: {len(self._picture.boxes)} boxes>"


def draw(
    graph: Any,
    *inputs: Any,
    params: Any = None,
    collapse: str | Sequence[str] = (),
    depth: int | None = None,
    title: str | None = None,
    kwargs: Mapping[str, Any] | None = None,
) -> Drawing:
    """A picture of the autograd graph behind tensors or a model's call, or of a captured graph.

    Arrows point in the direction of forward: from inputs and parameters at the top to results at
    the bottom; backward runs against them. Each node shows the shape of its result, and the tensors
    it saves for backward with their bytes.

    Args:
        graph: a tensor, or several, with a history; a node, such as ``loss.grad_fn``; a module,
            which is called; or what `plugrad.capture` returned.
        inputs: the arguments of a module.
        params: names for leaves: the model, or a mapping from names to tensors. For a module that
            is called, and for the modules in a captured graph, they are known.
        collapse: names of modules that become one box each.
        depth: modules at this depth become one box each: 1 means the direct children of the model.
        title: the picture's title.
        kwargs: keyword arguments of a module.

    Raises:
        TypeError: `graph` is something else, `inputs` are given without a module, or a module
            without the inputs that it needs.
        ValueError: there is no history, or `collapse` names a missing module.

    >>> import plugrad
    >>> x = plugrad.ones(3, requires_grad=True)
    >>> picture = plugrad.viewer.draw((x * x).sum(), params={"x": x})
    >>> picture
    <Drawing of SumBackward0: 3 boxes>
    >>> model = plugrad.nn.Sequential(plugrad.nn.Linear(3, 2), plugrad.nn.ReLU())
    >>> plugrad.viewer.draw(model, plugrad.ones(1, 3), collapse="0")
    <Drawing of Sequential: 2 boxes>
    """
    names = (collapse,) if isinstance(collapse, str) else tuple(collapse)
    if depth is not None and depth < 0:
        raise ValueError(f"draw(): depth must not be negative, got {depth}")
    if hasattr(graph, "named_modules") and callable(graph):
        _expect_inputs(graph, inputs, kwargs or {})
        nodes, modules = nodes_of_model(graph, inputs, kwargs or {})
        return Drawing(nodes, modules, title or type(graph).__name__, names, depth)
    if inputs or kwargs:
        raise TypeError(f"draw(): inputs are for a module, got them with {type(graph).__name__}")
    if hasattr(graph, "output_tree") and hasattr(graph, "nodes"):
        nodes, modules = nodes_of_capture(graph, params)
        is_module = hasattr(graph.function, "named_modules")
        called = type(graph.function).__name__ if is_module else graph.name
        return Drawing(nodes, modules, title or called, names, depth)
    kinds = (plugrad.Tensor, plugrad.autograd.graph.Node)
    ends = [graph] if isinstance(graph, kinds) else graph
    if not isinstance(ends, (list, tuple)) or not all(isinstance(each, kinds) for each in ends):
        raise TypeError(
            "draw(): expected tensors, nodes, a module with its inputs or a captured graph, "
            f"got {type(graph).__name__}"
        )
    nodes, modules = nodes_behind(ends, params)
    return Drawing(nodes, modules, title or nodes[-1]["name"], names, depth)


def _expect_inputs(model: Any, inputs: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """TypeError if a model gets no arguments and its forward needs some."""
    if inputs or kwargs:
        return
    try:
        inspect.signature(getattr(model, "forward", model)).bind()
    except ValueError:
        return  # there is no signature to be had
    except TypeError as error:
        raise TypeError(
            "draw(model, *inputs): expected the inputs of the model, got none for "
            f"{type(model).__name__}: {error}"
        ) from None
