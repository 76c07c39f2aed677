"""Selective checkpointing: the gradients of PyTorch, and its questions."""

from __future__ import annotations

import functools
import importlib
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad.autograd.checkpoint import (
    CheckpointPolicy,
    checkpoint,
    create_selective_checkpoint_contexts,
)

KEPT = ["mm", "exp"]


def run(library: Any, checkpoints: Any, operators: Any, as_list: bool) -> dict[str, Any]:
    """Gradients, and the operators for which the policy was called."""
    asked: list[str] = []
    keep = [getattr(operators, name).default for name in KEPT]
    x = (library.arange(6.0).reshape(2, 3) / 10).requires_grad_()
    w = (library.arange(9.0).reshape(3, 3) / 7).requires_grad_()

    def policy(context: Any, op: Any, *args: Any, **kwargs: Any) -> Any:
        asked.append(str(op).split(".")[1])
        assert context.op_output.shape
        assert not context.is_recompute
        policies = checkpoints.CheckpointPolicy
        return policies.PREFER_SAVE if op in keep else policies.MUST_RECOMPUTE

    def function(x: Any, w: Any) -> Any:
        return library.sigmoid(library.matmul(library.matmul(x, w), w).exp()) * x

    contexts = functools.partial(
        checkpoints.create_selective_checkpoint_contexts, keep if as_list else policy
    )
    y = checkpoints.checkpoint(function, x, w, use_reentrant=False, context_fn=contexts)
    y.sum().backward()
    return {"x": x.grad, "w": w.grad, "asked": asked}


@pytest.mark.parametrize("as_list", [True, False])
def test_gradients_and_questions_are_those_of_pytorch(
    torch_oracle: ModuleType, as_list: bool
) -> None:
    theirs = importlib.import_module("torch.utils.checkpoint")
    expected = run(torch_oracle, theirs, torch_oracle.ops.aten, as_list)
    ours = importlib.import_module("plugrad.autograd.checkpoint")
    found = run(plugrad, ours, plugrad.ops.plugrad, as_list)
    for name in "xw":
        np.testing.assert_allclose(found[name].numpy(), expected[name].numpy(), rtol=1e-5)
    assert found["asked"] == expected["asked"]


def test_kept_results_are_returned_and_others_computed() -> None:
    values: list[Any] = []
    x = plugrad.ones(2, 2, requires_grad=True)
    first, second = create_selective_checkpoint_contexts(
        lambda context, op, *args: op.op.name == "exp"
    )
    with first:
        values.append(x.exp())
        values.append(x.sin())
    with plugrad.no_grad():
        x.mul_(2)
    with second:
        values.append(x.exp())
        values.append(x.sin())
    np.testing.assert_array_equal(values[2].detach().numpy(), values[0].detach().numpy())
    np.testing.assert_allclose(values[3].tolist(), np.sin(2.0), rtol=1e-6)
    assert values[2].untyped_storage() == values[0].untyped_storage()


def test_random_numbers_are_drawn_again() -> None:
    x = plugrad.ones(1000, requires_grad=True)
    y = checkpoint(
        lambda x: plugrad.ops.plugrad.native_dropout(x, 0.5, True)[0].exp(),
        x,
        use_reentrant=False,
        context_fn=functools.partial(
            create_selective_checkpoint_contexts, lambda *args: CheckpointPolicy.MUST_SAVE
        ),
    )
    value = y.detach().clone()
    y.sum().backward()
    expected = np.where(value.numpy() > 1, 2 * value.numpy(), 0)
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-6)


def test_results_can_wait_on_the_cpu(second_backend: str) -> None:
    x = plugrad.ones(2, 2, device="second").requires_grad_()
    y = checkpoint(
        lambda x: plugrad.mm(x, x).exp(),
        x,
        use_reentrant=False,
        context_fn=functools.partial(
            create_selective_checkpoint_contexts, lambda *args: CheckpointPolicy.MUST_CPU_OFFLOAD
        ),
    )
    y.sum().backward()
    assert x.grad is not None
    assert str(x.grad.device) == "second"
    np.testing.assert_allclose(x.grad.cpu().numpy(), 4 * np.exp(2.0), rtol=1e-6)


def mutating(x: Any) -> Any:
    y = plugrad.mm(x, x)
    z = y.exp()
    y.add_(1)
    return z * y


@pytest.mark.parametrize("allowed", [True, False])
def test_a_kept_result_that_is_written_to_is_noticed(allowed: bool) -> None:
    x = plugrad.ones(2, 2, requires_grad=True)
    y = checkpoint(
        mutating,
        x,
        use_reentrant=False,
        context_fn=functools.partial(
            create_selective_checkpoint_contexts,
            [plugrad.ops.plugrad.mm.default],
            allow_cache_entry_mutation=allowed,
        ),
    )
    if allowed:
        y.sum().backward()
        return
    with pytest.raises(RuntimeError, match="cached during selective activation checkpoint has bee"):
        y.sum().backward()


def test_a_region_can_be_gone_through_once() -> None:
    x = plugrad.ones(2, 2, requires_grad=True)
    y = checkpoint(
        lambda x: plugrad.mm(x, x).exp(),
        x,
        use_reentrant=False,
        context_fn=functools.partial(
            create_selective_checkpoint_contexts, [plugrad.ops.plugrad.mm.default]
        ),
    )
    y.sum().backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="Trying to backward an extra time"):
        y.sum().backward()


@pytest.mark.parametrize(
    ("policy", "error", "message"),
    [
        (3, TypeError, "must be either a function or a list of ops"),
        (
            [plugrad.ops.plugrad.mm],
            ValueError,
            r"change it to `plugrad\.ops\.plugrad\.mm\.default`",
        ),
        ([plugrad.mm], ValueError, "Expected op in `op_list` to be an OpOverload"),
    ],
)
def test_what_is_no_policy_is_refused(policy: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        create_selective_checkpoint_contexts(policy)
