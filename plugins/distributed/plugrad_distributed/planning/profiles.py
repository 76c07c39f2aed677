"""Profile: the parts of a training step, as far as planning needs them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import accumulate
from os import PathLike
from pathlib import Path
from typing import Literal

__all__ = ["NodeCost", "ParameterCost", "Phase", "Profile"]

Phase = Literal["forward", "backward", "optimizer"]


@dataclass(frozen=True)
class NodeCost:
    """One call of an operator.

    Attributes:
        seconds: what it takes, overhead and all.
        fixed: the part that does not depend on sizes: what calling an operator takes.
        held: the part that does not depend on the batch and does on the rest, as reading a weight;
            below zero where small batches are the faster ones, as they fit in caches.
        reads: the memory that it reads, by the names of the values that were made with it; views
            count as what they are views of.
        makes: memory that is new, by name, with its bytes.
        size: bytes of its results.

    >>> from plugrad.distributed.simulate import NodeCost
    >>> node = NodeCost("relu", "forward", 2e-4, reads=("x",), makes=(("y", 4000),), size=4000)
    >>> node.op, node.makes
    ('relu', (('y', 4000),))
    """

    op: str
    phase: Phase
    seconds: float
    fixed: float = 0.0
    reads: tuple[str, ...] = ()
    makes: tuple[tuple[str, int], ...] = ()
    size: int = 0
    held: float = 0.0


@dataclass(frozen=True)
class ParameterCost:
    """A parameter.

    Attributes:
        name: in the profile.
        used: the node that reads it first.
        arrival: the node that makes its gradient, which has the name `grad`.

    >>> from plugrad.distributed.simulate import ParameterCost
    >>> weight = ParameterCost("w", (500, 500), 1_000_000, used=0, arrival=1, grad="w.grad")
    >>> weight.bytes
    1000000
    """

    name: str
    shape: tuple[int, ...]
    bytes: int
    used: int
    arrival: int
    grad: str = ""


@dataclass(frozen=True)
class Profile:
    """A training step on one rank: its operators in their order, its parameters, its memory.

    Attributes:
        parameters: in the order in which their gradients arrive.
        optimizer_bytes: what the optimizer keeps.
        buffer_bytes: other tensors that the step uses, inputs among them.
        step_seconds: what the step took as a whole; the nodes' seconds come to that.
        kept: memory that lives on after the step.

    >>> import plugrad
    >>> from plugrad.distributed.simulate import profile_step
    >>> model = plugrad.nn.Linear(2, 3)
    >>> def step(x):
    ...     model.zero_grad()
    ...     model(x).relu().sum().backward()
    >>> profile = profile_step(step, plugrad.ones(4, 2))
    >>> [node.op for node in profile.nodes if node.phase == "forward"]
    ['linear', 'relu', 'sum']
    """

    nodes: tuple[NodeCost, ...]
    parameters: tuple[ParameterCost, ...]
    optimizer_bytes: int = 0
    buffer_bytes: int = 0
    step_seconds: float = 0.0
    kept: tuple[str, ...] = ()

    def seconds(self, phase: Phase) -> float:
        """What the nodes of a phase take.

        >>> from plugrad.distributed.simulate import NodeCost, Profile
        >>> nodes = (NodeCost("linear", "forward", 1.0), NodeCost("backward", "backward", 2.0))
        >>> Profile(nodes, ()).seconds("backward")
        2.0
        """
        return sum(node.seconds for node in self.nodes if node.phase == phase)

    @property
    def total_seconds(self) -> float:
        return sum(node.seconds for node in self.nodes)

    @property
    def parameter_bytes(self) -> int:
        return sum(parameter.bytes for parameter in self.parameters)

    @property
    def layers(self) -> list[int]:
        """The nodes that use parameters first, in the order of the forward pass."""
        return sorted({parameter.used for parameter in self.parameters})

    @property
    def sizes(self) -> dict[str, int]:
        """Bytes of all memory that nodes make, gradients of parameters apart."""
        gradients = {parameter.grad for parameter in self.parameters}
        return {
            name: size for node in self.nodes for name, size in node.makes if name not in gradients
        }

    def peak_bytes(self, sizes: Mapping[str, float] | None = None) -> float:
        """The most that lives at a time of what nodes make: activations, and gradients of these.

        Args:
            sizes: other sizes of this memory.

        >>> from plugrad.distributed.simulate import NodeCost, Profile
        >>> nodes = (
        ...     NodeCost("exp", "forward", 1.0, reads=("x",), makes=(("y", 400),)),
        ...     NodeCost("mul", "backward", 1.0, reads=("y",), makes=(("grad", 400),)),
        ... )
        >>> Profile(nodes, ()).peak_bytes()
        800.0
        """
        return max([0.0, *self.live_bytes(sizes)])

    def peak_beside_gradients(self, part: float = 1.0) -> float:
        """What lives at most of activations and gradients of parameters together, less all
        gradients.

        Args:
            part: of each gradient that a rank keeps.
        """
        arriving = [0.0] * len(self.nodes)
        for parameter in self.parameters:
            arriving[parameter.arrival] += part * parameter.bytes
        arrived = list(accumulate(arriving))
        pairs = zip(self.live_bytes(), arrived, strict=True)
        return max([0.0, *(live + there - arrived[-1] for live, there in pairs)])

    def live_bytes(self, sizes: Mapping[str, float] | None = None) -> list[float]:
        """What lives while each node runs.

        >>> from plugrad.distributed.simulate import NodeCost, Profile
        >>> nodes = (
        ...     NodeCost("exp", "forward", 1.0, reads=("x",), makes=(("y", 400),)),
        ...     NodeCost("sum", "forward", 1.0, reads=("y",), makes=(("total", 4),)),
        ...     NodeCost("neg", "forward", 1.0, reads=("total",), makes=(("loss", 4),)),
        ... )
        >>> Profile(nodes, ()).live_bytes()
        [400.0, 404.0, 8.0]
        """
        sizes = self.sizes if sizes is None else sizes
        changes = [0.0] * (len(self.nodes) + 1)
        last = {name: index for index, node in enumerate(self.nodes) for name in node.reads}
        for index, node in enumerate(self.nodes):
            for name, _ in node.makes:
                end = len(self.nodes) - 1 if name in self.kept else max(last.get(name, 0), index)
                changes[index] += sizes.get(name, 0)
                changes[end + 1] -= sizes.get(name, 0)
        found, live = [], 0.0
        for change in changes[:-1]:
            live += change
            found.append(live)
        return found

    def saved_bytes(self, sizes: Mapping[str, float] | None = None) -> float:
        """What lives when the forward pass is over: what backward needs.

        >>> from plugrad.distributed.simulate import NodeCost, Profile
        >>> nodes = (
        ...     NodeCost("exp", "forward", 1.0, reads=("x",), makes=(("y", 400),)),
        ...     NodeCost("sum", "forward", 1.0, reads=("y",), makes=(("total", 4),)),
        ...     NodeCost("mul", "backward", 1.0, reads=("y",), makes=(("grad", 400),)),
        ... )
        >>> Profile(nodes, ()).saved_bytes()
        404.0
        """
        ends = [index for index, node in enumerate(self.nodes) if node.phase == "forward"]
        return self.live_bytes(sizes)[ends[-1]] if ends else 0.0

    def save(self, path: str | PathLike[str]) -> None:
        """Write it as JSON.

        >>> import os, tempfile
        >>> from plugrad.distributed.simulate import NodeCost, Profile
        >>> profile = Profile((NodeCost("linear", "forward", 1.0),), ())
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "step.json")
        ...     profile.save(path)
        ...     print(Profile.load(path) == profile)
        True
        """
        Path(path).write_text(json.dumps(asdict(self)) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Profile:
        """What `save` wrote."""
        held = json.loads(Path(path).read_text(encoding="utf-8"))
        nodes = [
            NodeCost(
                **{
                    **node,
                    "reads": tuple(node["reads"]),
                    "makes": tuple((name, size) for name, size in node["makes"]),
                }
            )
            for node in held.pop("nodes")
        ]
        parameters = [
            ParameterCost(**{**each, "shape": tuple(each["shape"])})
            for each in held.pop("parameters")
        ]
        held["kept"] = tuple(held["kept"])
        return cls(tuple(nodes), tuple(parameters), **held)
