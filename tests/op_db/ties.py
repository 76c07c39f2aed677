"""Positions of equal elements, which PyTorch gives in any order unless `stable=True`."""

from __future__ import annotations

from typing import Any

# Entries that give positions -> where `dim` is among the arguments behind the input.
POSITIONS = {"argsort": 0, "kthvalue": 1, "mode": 0, "sort": 0, "topk": 1}


def has_ties(entry: Any, sample: Any) -> bool:
    """Whether the positions that an entry gives for a sample are not unique."""
    if entry.name not in POSITIONS or sample.kwargs.get("stable") or sample.input.ndim == 0:
        return False
    dim = _dim(entry, sample)
    if sample.input.shape[dim] == 0:
        return False
    row = sample.input.detach().sort(dim).values
    same = row.narrow(dim, 1, row.shape[dim] - 1) == row.narrow(dim, 0, row.shape[dim] - 1)
    return bool(same.any())


def picked(entry: Any, sample: Any, input: Any, result: Any) -> Any:
    """The result with positions replaced by the elements there, and whether all positions are
    different. For tensors of either library."""
    dim = _dim(entry, sample)
    values, positions = ([], result) if entry.name == "argsort" else ([result[0]], result[1])
    if positions.ndim < input.ndim:
        positions = positions.unsqueeze(dim)
    ordered = positions.sort(dim)[0]
    size = ordered.shape[dim]
    repeated = ordered.narrow(dim, 1, size - 1) == ordered.narrow(dim, 0, size - 1)
    return [*values, input.detach().gather(dim, positions), repeated.any()]


def _dim(entry: Any, sample: Any) -> int:
    place = POSITIONS[entry.name]
    given = sample.args[place] if len(sample.args) > place else -1
    return int(sample.kwargs.get("dim", given))
