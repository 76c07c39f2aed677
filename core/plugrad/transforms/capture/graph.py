"""Graph: the result of `capture`, which can be run, printed, checked, drawn and transformed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from os import PathLike
from typing import Any

from plugrad.autograd.grad_mode import enable_grad, inference_mode, no_grad
from plugrad.dispatch.autocast import WithoutAutocast
from plugrad.transforms.capture import passes, storing
from plugrad.transforms.capture.aliases import Aliases
from plugrad.transforms.capture.checking import check
from plugrad.transforms.capture.drawing import dot, render
from plugrad.transforms.capture.guards import Guards
from plugrad.transforms.capture.node import Constant, Input, Node, Ref
from plugrad.transforms.capture.source import function_text, program
from plugrad.transforms.capture.trees import Tree, containers, unflatten

MODES: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "grad": enable_grad,
    "no_grad": no_grad,
    "inference": inference_mode,
}


@dataclass(frozen=True, eq=False, repr=False)
class Graph:
    """The operators of a function, in the order in which they ran.

    Called with arguments like the example's, it does the same as the function: it returns the same
    results, with a history if inputs require grad, writes to the same tensors, and sets the same
    gradients. It draws new random numbers.

    Attributes:
        function: the captured function; None if `check` has nothing to compare with.
        name: the name of the function that `code` defines.
        guards: the properties of the example that calls must share; iterating gives them in words.
        held: the constants by name, with their properties.
        nodes: calls of operators.
        output_tree, outputs: the results: a tree of references and plain values.
        gradients: inputs and constants whose `.grad` is set, with the name of the value, or None.
        makes_leaves: whether the function makes new leaves by `requires_grad_()`. That is
            not an operator: results computed from them do not require grad when the graph runs.
    """

    function: Callable[..., Any] | None
    name: str
    guards: Guards
    held: dict[str, Constant]
    nodes: tuple[Node, ...]
    output_tree: Tree
    outputs: tuple[Any, ...]
    gradients: dict[str, str | None]
    makes_leaves: bool = False

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The tensors among the arguments."""
        return self.guards.inputs

    @property
    def constants(self) -> Mapping[str, Any]:
        """The tensors (by reference) and generators that are not arguments, by name."""
        return {name: constant.value for name, constant in self.held.items()}

    @cached_property
    def mutations(self) -> tuple[str, ...]:
        """The inputs and constants that a run writes to."""
        return Aliases(self).mutations()

    # To be read

    @cached_property
    def code(self) -> str:
        """Python that defines the same function: run it with `constants` as its global names."""
        return program(self)

    def __str__(self) -> str:
        return function_text(self)

    def __repr__(self) -> str:
        return (
            f"<Graph of {self.name}: {len(self.inputs)} inputs, {len(self.held)} constants, "
            f"{len(self.nodes)} nodes>"
        )

    def _repr_html_(self) -> str:
        from plugrad._notebooks import graph_html  # only notebooks need it

        return graph_html(self)

    def dot(self) -> str:
        """The graph in graphviz's language."""
        return dot(self)

    def draw(self, path: str | PathLike[str]) -> None:
        """Write a picture of the graph.

        Args:
            path: `.dot` or `.gv` is graphviz's source text. Any other ending is a format that
                graphviz's program `dot` makes, such as `.svg`, `.png` or `.pdf`.

        Raises:
            RuntimeError: graphviz is not installed, or does not support the format.
        """
        render(self, path)

    # To be kept

    def save(self, path: str | PathLike[str]) -> None:
        """Write the graph to a file, with its constants as they are now.

        Raises:
            TypeError: a constant, an argument or a container is of a type that files do not have:
                other than tensors, default generators and plain values in dicts, lists and tuples.
            ValueError: two constants share memory.
        """
        storing.save(self, path)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Graph:
        """The graph in a file that `save` wrote, with new constants.

        A file holds no code. `check` has no function to compare with.

        Raises:
            ValueError: the file holds no graph, or one in a newer format.
            OperatorNotFoundError: there is no such operator, or its plugin is not installed.

        >>> import plugrad, tempfile
        >>> from plugrad.transforms.capture import Graph
        >>> graph = plugrad.capture(lambda x: x.sin() + 1, plugrad.ones(2))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     graph.save(f"{folder}/sine.npz")
        ...     print(Graph.load(f"{folder}/sine.npz")(plugrad.zeros(2)))
        tensor([1., 1.])
        """
        return cls(**storing.load(path))

    # To be run

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        leaves = self.guards.check(args, kwargs)
        values: dict[str, Any] = {each.name: leaves[each.position] for each in self.inputs}
        for constant in self.held.values():
            values[constant.name] = constant.value
        self.guards.check_gradients(values)
        for constant in self.held.values():
            if constant.grad_of:
                values[constant.name] = values[constant.grad_of].grad
        with WithoutAutocast():  # its casts are nodes
            for mode, nodes, dropped in self._stretches:
                with nullcontext() if mode == self.guards.mode else MODES[mode]():
                    _run(nodes, dropped, values)
        for owner, name in self.gradients.items():
            values[owner].grad = None if name is None else values[name]
        outputs = [
            values[output.name] if isinstance(output, Ref) else output for output in self.outputs
        ]
        return unflatten(self.output_tree, outputs)

    @cached_property
    def _stretches(self) -> list[tuple[str, list[Node], list[list[str]]]]:
        """Nodes that run in one mode, and the values that are no longer needed after each of
        them."""
        needed = self.needed()
        dropped: list[list[str]] = []
        for node in reversed(self.nodes):
            last = [name for name in {*node.reads(), *node.defines()} if name not in needed]
            needed.update(last)
            dropped.append(last)
        pairs = list(zip(self.nodes, dropped[::-1], strict=True))
        stretches = [(mode, list(group)) for mode, group in groupby(pairs, lambda p: p[0].mode)]
        return [
            (mode, [node for node, _ in group], [last for _, last in group])
            for mode, group in stretches
        ]

    def needed(self) -> set[str]:
        """The names of the values that are needed when all nodes have run."""
        names = {output.name for output in self.outputs if isinstance(output, Ref)}
        names.update(name for name in self.gradients.values() if name is not None)
        names.update(self.gradients)
        return names

    def check(self, *args: Any, **kwargs: Any) -> None:
        """Compare with the function on the same arguments: results, writes and gradients.

        Tensors and generators are restored afterwards.

        Raises:
            AssertionError: they differ by more than rounding; the message describes the difference.
            GuardError: the graph is not valid for these arguments.
        """
        check(self, args, kwargs)

    # To be made again

    def dead_code(self) -> Graph:
        """The graph without unused nodes.

        Nodes that write to an input, a constant or a used value stay, and so do nodes that draw
        random numbers.
        """
        return passes.dead_code(self)

    def common_subexpressions(self) -> Graph:
        """The graph with one node where several nodes do the same computation.

        There must be no write to their arguments or results in between; random operators and
        results for the caller stay separate.
        """
        return passes.common_subexpressions(self)

    def fold_constants(self, freeze: bool = False) -> Graph:
        """The graph with results in place of nodes that compute the same in every run.

        These depend on no input, no random number and no tensor from outside.

        Args:
            freeze: use the current values of constants, too, unless they require grad in grad
                mode; for example parameters of a trained model.
        """
        return passes.fold_constants(self, freeze)

    def optimized(self) -> Graph:
        """All passes: `fold_constants`, `common_subexpressions` and `dead_code`."""
        return self.fold_constants().common_subexpressions().dead_code()

    def without_unused_constants(self) -> Graph:
        """The graph without constants that no node, result or gradient needs."""
        used = self.needed() | set(self.guards.has_grad)
        for node in self.nodes:
            used.update(node.reads())
        used.update(c.grad_of for c in self.held.values() if c.name in used and c.grad_of)
        kinds = containers(self.output_tree)
        used.update(c.name for c in self.held.values() if any(c.value is kind for kind in kinds))
        return replace(self, held={n: c for n, c in self.held.items() if n in used})


def _run(nodes: list[Node], dropped: list[list[str]], values: dict[str, Any]) -> None:
    for node, names in zip(nodes, dropped, strict=True):
        result = node.op.op.call(_resolved(node.values, values))
        results = [result] if node.single else result
        pairs = zip(node.results, results, strict=True)
        values.update({name: each for name, each in pairs if name is not None})
        # Or they would live until the next ones are there.
        del result, results, pairs
        for name in names:
            values.pop(name, None)


def _resolved(value: Any, values: dict[str, Any]) -> Any:
    """Arguments with tensors in the place of references."""
    if isinstance(value, Ref):
        return values[value.name]
    if isinstance(value, (list, tuple)):
        return type(value)([_resolved(item, values) for item in value])
    return value
