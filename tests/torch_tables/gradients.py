"""Gradients in either library, with the same numbers as gradients of the results."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from tests.torch_tables.compare import flat


def differentiable(value: Any) -> list[torch.Tensor]:
    """The different tensors in nested lists and dicts that a gradient is taken for."""
    tensors = {
        id(t): t
        for t in flat(value, torch.Tensor)
        # PyTorch has no gradient for views of leaves that were made where none is recorded.
        if isinstance(t, torch.Tensor) and t.requires_grad and not (t.is_leaf and t._is_view())
    }
    return list(tensors.values())


def numbers(tensors: list[Any], seed: int) -> list[Any]:
    """Random arrays of the tensors' shapes."""
    random = np.random.default_rng(seed)
    made = []
    for tensor in tensors:
        values = random.standard_normal(tuple(tensor.shape))
        if tensor.is_complex():
            values = values + 1j * random.standard_normal(tuple(tensor.shape))
        made.append(np.asarray(values))
    return made


def grad(library: Any, outs: Any, inputs: Any, seeds: Any, again: bool, zeros: bool = True) -> Any:
    """The library's gradients of `outs` by `inputs`.

    Args:
        again: whether they are to be differentiated again.
        zeros: whether those that nothing depends on are zeros rather than None.
    """
    pairs = [
        (out, library.tensor(seed).to(out.device, out.dtype))
        for out, seed in zip(outs, seeds, strict=True)
        # A gradient that is constant has no graph here.
        if out.requires_grad
    ]
    if not pairs:
        return [library.zeros_like(tensor) for tensor in inputs]
    options = {"create_graph": again, "allow_unused": True, "materialize_grads": zeros}
    return library.autograd.grad(
        [out for out, _ in pairs], inputs, [seed for _, seed in pairs], **options
    )
