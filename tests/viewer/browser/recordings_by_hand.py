"""Handwritten recordings for the tests of the page: layers in modules, and an engine that counts.

Everything is computed from the number of layers, so a test knows what the page must show.
"""

from __future__ import annotations

import heapq
from collections import Counter
from typing import Any

Recording = dict[str, Any]
KEYS = (("AutogradCPU", "autograd"), ("ADInplaceOrView", "fallthrough"), ("CPU", "numpy.{op}"))
SOURCE = (
    "def step(model, x, target):",
    "    for layer in model.blocks:",
    "        x = layer(x)",
    "    loss = loss_function(x, target)",
    "    loss.backward()",
    "    optimizer.step()",
)


class _Maker:
    """Writes a recording with a clock of its own."""

    def __init__(self, layers: int) -> None:
        self.clock = 0.0
        self.layers = layers
        self.memory = 0
        self.modules: list[Recording] = [
            {"name": "", "kind": "Net", "parent": -1},
            {"name": "blocks", "kind": "Sequential", "parent": 0},
        ]
        self.calls: list[Recording] = []
        self.nodes: list[Recording] = []
        self.events: list[Recording] = []

    def event(self, kind: str, thread: int = 0, after: float = 1.0, **more: Any) -> None:
        self.clock += after
        self.events.append({"t": round(self.clock, 1), "th": thread, "k": kind, **more})

    def allocate(self, thread: int, size: int) -> None:
        self.memory += size
        self.event("memory", thread, 0.0, device="cpu", bytes=self.memory)

    def leaf(self, label: str, module: int, place: tuple[float, float]) -> int:
        shape = [8, 8]
        return self.node("AccumulateGrad", -1, module, "leaf", label, shape, [], [], place)

    def node(self, name, call, module, kind, label, shape, edges, saved, place):  # type: ignore[no-untyped-def]
        node = {"name": name, "call": call, "module": module, "kind": kind, "label": label}
        node |= {"shape": shape, "edges": edges, "saved": saved, "x": place[0], "y": place[1]}
        self.nodes.append(node)
        return len(self.nodes) - 1

    def call(self, op, line, module, edges, saved, place, thread=0, outer=-1):  # type: ignore[no-untyped-def]
        """An operator of the forward pass; gives its node."""
        number = len(self.calls)
        self.calls.append({})
        self.event("call", thread, 3.0, c=number)
        start = self.clock
        steps: list[Recording] = []
        node = -1
        for depth, (key, kernel) in enumerate(KEYS):
            self.event("step", thread, 2.0, c=number, s=depth)
            steps.append({"key": key, "kernel": kernel.format(op=op), "start": self.clock})
            if depth == 0 and edges is not None:
                base = op.partition(".")[0]
                name = "".join(part.title() for part in base.split("_")) + "Backward0"
                node = self.node(name, number, module, "function", "", [32, 8], edges, saved, place)
                self.event("node", thread, 1.0, n=node)
                if size := sum(each["bytes"] for each in saved):
                    self.event("save", thread, 0.5, n=node, bytes=size)
        self.allocate(thread, 1024)
        self.event("end", thread, 6.0, c=number)
        for depth, step in enumerate(steps):
            step |= {"depth": depth, "end": self.clock - 0.2 * depth}
        tensor = {"name": "", "shape": [32, 8], "dtype": "float32", "device": "cpu"}
        self.calls[number] = {"op": op, "source": None if line is None else [0, line]}
        self.calls[number] |= {"module": module, "thread": thread, "start": start}
        self.calls[number] |= {"end": self.clock, "parent": outer, "inputs": [tensor, tensor]}
        self.calls[number] |= {"outputs": [tensor], "steps": steps, "node": node}
        return node

    def forward(self) -> int:
        previous, row = -1, 0.0
        saved = [{"name": "self", "shape": [32, 8], "dtype": "float32", "bytes": 1024}]
        for layer in range(self.layers):
            block = len(self.modules)
            self.modules.append({"name": f"blocks.{layer}", "kind": "Block", "parent": 1})
            self.modules.append(
                {"name": f"blocks.{layer}.linear", "kind": "Linear"} | {"parent": block}
            )
            weight = self.leaf(f"blocks.{layer}.linear.weight", block + 1, (-170.0, row))
            bias = self.leaf(f"blocks.{layer}.linear.bias", block + 1, (170.0, row))
            for leaf in (weight, bias):
                self.event("node", n=leaf)
            edges = [[weight, 0], [bias, 0]] + ([[previous, 0]] if previous >= 0 else [])
            linear = self.call("addmm", 14, block + 1, edges, saved, (0.0, row + 80))
            relu = self.call("relu", 14, block, [[linear, 0]], saved, (0.0, row + 160))
            edges = [[relu, 0], [linear, 0]]
            previous = self.call("add.Tensor", 14, block, edges, [], (60.0, row + 240))
            row += 320
        return self.call("mse_loss", 15, 0, [[previous, 0]], saved, (0.0, row))

    def backward(self, root: int) -> None:
        """What the engine does: counts, queues, buffers, in order of when nodes were made."""
        self.event("backward", 0, 5.0, roots=[root], b=0)
        counts: Counter[int] = Counter()
        for node in self.nodes:
            counts.update(edge[0] for edge in node["edges"])
        self.event("dependencies", 0, 4.0, counts=[[node, n] for node, n in sorted(counts.items())])
        queue = [-root]
        full: set[tuple[int, int]] = set()
        self.event("ready", 0, 1.0, n=root, q="cpu:0")
        while queue:
            number = -heapq.heappop(queue)
            node = self.nodes[number]
            self.event("pop", 1, 1.0, n=number, q="cpu:0")
            self.event("run", 1, 1.0, n=number)
            if node["kind"] == "leaf":
                self.event("hook", 1, 1.0, n=number, what="accumulate", name="log_gradient")
                self.event("grad", 1, 2.0, n=number, label=node["label"], bytes=256)
            else:
                self.call("mul.Tensor", None, node["module"], None, [], (0.0, 0.0), thread=1)
            if size := sum(each["bytes"] for each in node["saved"]):
                self.event("free", 1, 1.0, n=number, bytes=size)
                self.allocate(1, -size)
            self.event("ran", 1, 4.0, n=number)
            for target, place in node["edges"]:
                again = (target, place) in full
                full.add((target, place))
                self.event("buffer", 1, 1.0, n=target, i=place, bytes=1024, sum=again)
                counts[target] -= 1
                self.event("count", 1, 1.0, n=target, left=counts[target])
                if not counts[target]:
                    heapq.heappush(queue, -target)
                    self.event("ready", 1, 1.0, n=target, q="cpu:0")
        self.event("backward_end", 0, 2.0, b=0)
        self.event("optimizer", 0, 5.0, name="SGD")


def training_step(layers: int) -> Recording:
    """A step of a net of residual blocks: 5 nodes a layer and one for the loss."""
    maker = _Maker(layers)
    maker.backward(maker.forward())
    return {
        "version": 1,
        "about": {"title": f"A net of {layers} blocks", "plugrad": "0.2.0", "python": "3.12.0"}
        | {"when": "2026-01-02T03:04:05", "truncated": None},
        "sources": [{"file": "train.py", "first": 12, "lines": list(SOURCE)}],
        "modules": maker.modules,
        "threads": [{"name": "MainThread"}, {"name": "device cpu:0"}],
        "calls": maker.calls,
        "nodes": maker.nodes,
        "events": maker.events,
    }


def graph_alone(layers: int) -> Recording:
    """The same graph, as `draw` gives it: without events."""
    return training_step(layers) | {"events": []}
