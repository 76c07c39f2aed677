"""Captures a function and compares: the graph, the optimized graph and its code against it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import plugrad
from plugrad.transforms.capture import Graph


def code_of(graph: Graph) -> Callable[..., Any]:
    """The function that a graph's code defines."""
    names: dict[str, Any] = dict(graph.constants)
    exec(graph.code, names)
    return names[graph.name]  # type: ignore[no-any-return]  # it is one


def rerun(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Graph:
    """The graph of a function, after checking that all its forms do the same as the function."""
    graph = plugrad.capture(fn, *args, **kwargs)
    graph.check(*args, **kwargs)
    graph.optimized().check(*args, **kwargs)
    # The code in the place of the function: the graph must agree with it, too.
    replace(graph, function=code_of(graph)).check(*args, **kwargs)
    return graph


def names(graph: Graph) -> list[str]:
    """What the graph calls."""
    return [node.op.op.full_name for node in graph.nodes]
