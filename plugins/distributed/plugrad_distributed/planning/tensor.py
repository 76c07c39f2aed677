"""Tensor parallelism: a profile with layers split in turns by columns and by rows."""

from __future__ import annotations

from dataclasses import dataclass, replace

from plugrad_distributed.planning.profiles import NodeCost, ParameterCost, Profile

__all__ = ["Split", "split_tensors"]

# They need whole rows: what is split is gathered for them.
WHOLE = ("layer_norm", "group_norm", "rms_norm", "log_softmax", "loss", "cross_entropy")


@dataclass(frozen=True)
class Split:
    """What one of the ranks does.

    Attributes:
        calls: by node, the collectives after it, each with the bytes of its tensor.
        updated: the parameters that are DTensors.
    """

    profile: Profile
    calls: dict[int, list[tuple[str, float]]]
    updated: tuple[ParameterCost, ...] = ()


class _Splitter:
    """Goes through the nodes. If a layer's input is whole, its weight and its result are split by
    outputs. The next layer's weight is split by inputs; its results are summed."""

    def __init__(self, profile: Profile, ranks: int, layer: float) -> None:
        self.profile = profile
        self.ranks = ranks
        self.layer = layer
        self.layers: set[int] = set()
        self.matrices = {p.name: p for p in profile.parameters if len(p.shape) > 1}
        self.sides: dict[str, str] = {}
        # Memory of which each rank has a part, and when it is freed.
        self.split: set[str] = set()
        self.sizes = profile.sizes
        self.calls: dict[int, list[tuple[str, float]]] = {}

    def run(self) -> Split:
        nodes = []
        for number, node in enumerate(self.profile.nodes):
            if node.phase == "optimizer":
                continue
            parted = self._forward if node.phase == "forward" else self._backward
            made = self._smaller(node, 1 / self.ranks) if parted(number, node) else node
            if number in self.layers:
                seconds = made.seconds + self.layer
                made = replace(made, seconds=seconds, fixed=made.fixed + self.layer)
            nodes.append(made)
        parameters = tuple([self._parameter(each) for each in self.profile.parameters])
        before = max(self.profile.parameter_bytes, 1)
        part = sum(each.bytes for each in parameters) / before
        nodes += [
            self._smaller(node, part) for node in self.profile.nodes if node.phase == "optimizer"
        ]
        profile = replace(
            self.profile,
            nodes=tuple(nodes),
            parameters=parameters,
            optimizer_bytes=round(self.profile.optimizer_bytes * part),
        )
        updated = tuple([each for each in parameters if each.used in self.layers])
        return Split(profile, self.calls, updated)

    def _smaller(self, node: NodeCost, part: float) -> NodeCost:
        makes = [
            (name, round(size / self.ranks) if name in self.split else size)
            for name, size in node.makes
        ]
        seconds = node.fixed + (node.seconds - node.fixed) * part
        return replace(node, seconds=seconds, makes=tuple(makes), held=node.held * part)

    def _parameter(self, parameter: ParameterCost) -> ParameterCost:
        # A bias of a layer that is split by outputs is split as well, but hardly counts.
        if parameter.name not in self.sides:
            return parameter
        return replace(parameter, bytes=-(-parameter.bytes // self.ranks))

    def _forward(self, number: int, node: NodeCost) -> bool:
        weights = [name for name in node.reads if name in self.matrices]
        parted = [name for name in node.reads if name in self.split]
        if not weights:
            if parted and any(word in node.op for word in WHOLE):
                size = max(self.sizes[name] for name in parted)
                self._call(number, "all_gather", size)
                return False
            if parted:
                self.split.update(name for name, _ in node.makes)
            return bool(parted)
        if not node.makes:
            return False  # a view
        by_rows = bool(parted) or "embedding" in node.op
        self.layers.add(number)
        for name in weights:
            self._assign(name, "rows" if by_rows else "columns")
        if by_rows:
            self._call(number, "all_reduce", node.makes[0][1])
        else:
            self.split.update(name for name, _ in node.makes)
        return True

    def _assign(self, name: str, side: str) -> None:
        shape = self.matrices[name].shape
        extent = shape[0] if side == "columns" else shape[1]
        if extent < self.ranks:
            raise ValueError(
                f"TensorParallel: a weight of shape {list(shape)} cannot be split by {side} over "
                f"{self.ranks} ranks"
            )
        self.sides.setdefault(name, side)

    def _backward(self, number: int, node: NodeCost) -> bool:
        weights = [self.matrices[name] for name in node.reads if name in self.sides]
        if not weights:
            parted = any(name in self.split for name in node.reads)
            if parted:
                self.split.update(name for name, _ in node.makes)
            return parted
        inputs = dict(node.makes)
        for weight in weights:
            bias = weight.bytes * weight.shape[0]
            for shape in weight.shape:
                bias //= shape
            for size in (weight.bytes, bias):
                name = next((n for n, s in reversed(inputs.items()) if s == size), None)
                if name is not None:
                    del inputs[name]
        own = {name for name, _ in node.makes}
        if self.sides[weights[0].name] == "columns":
            # Each rank has a summand of the gradient of the input.
            if inputs:
                self._call(number, "all_reduce", sum(inputs.values()))
            own -= set(inputs)
        self.split.update(own)
        return True

    def _call(self, number: int, collective: str, size: float) -> None:
        self.calls.setdefault(number, []).append((collective, size))


def split_tensors(profile: Profile, ranks: int, layer: float = 0.0) -> Split:
    """The part of one of some ranks, layers split in pairs.

    Convolutions are split by channels, attention by heads; norms over features and losses have
    whole inputs.

    Source: Shoeybi et al., "Megatron-LM", 2019, section 3.

    Args:
        layer: seconds of Python's time that a split layer takes more.

    Raises:
        ValueError: a weight is smaller than the number of ranks.
    """
    return _Splitter(profile, ranks, layer).run()
