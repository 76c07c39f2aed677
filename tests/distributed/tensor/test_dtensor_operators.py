"""Operators on DTensors give what they give on whole tensors, under all placements."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import plugrad
import plugrad.distributed as dist
from plugrad.distributed.device_mesh import init_device_mesh
from plugrad.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from plugrad.nn import functional as F
from plugrad.testing import assert_close

Case = tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]
EVEN, UNEVEN = (4, 6), (3, 5)


def _data(shape: tuple[int, ...], number: int) -> Any:
    generator = plugrad.Generator().manual_seed(number)
    return plugrad.rand(shape, generator=generator, dtype=plugrad.float64) + 0.5


def _tensors(result: Any) -> list[Any]:
    return list(result) if isinstance(result, (list, tuple)) else [result]


def _run(function: Callable[..., Any], inputs: list[Any], weigh: bool) -> tuple[Any, Any]:
    """Results and gradients of the sum of the weighted results."""
    results = _tensors(function(*inputs))
    total = 0.0
    for result in results:
        if result.requires_grad:
            total = total + (result * result).sum() if weigh else total + result.sum()
    grads = list(plugrad.autograd.grad(total, inputs)) if not isinstance(total, float) else []
    return results, grads


def _whole(tensor: Any) -> Any:
    return tensor.full_tensor().detach() if isinstance(tensor, DTensor) else tensor.detach()


def _placements(shape: tuple[int, ...]) -> list[Any]:
    return [Replicate(), *(Shard(dim) for dim in range(len(shape)))]


# How many ways to place its inputs a case is tried with; they are spread evenly over all ways.
MOST_WAYS = 27


def _check(case: Case, mesh_shape: tuple[int, ...]) -> None:
    """Compare results and gradients for placements of the inputs."""
    function, shapes = case
    data = [_data(shape, number) for number, shape in enumerate(shapes)]
    plain = [one.clone().requires_grad_() for one in data]
    expected, expected_grads = _run(function, plain, True)
    ways = [list(itertools.product(_placements(shape), repeat=len(mesh_shape))) for shape in shapes]

    chosen = list(itertools.product(*ways))
    # A step that shares no factor with the numbers of placements, so that all come up.
    step = -(-len(chosen) // MOST_WAYS)
    while any(step % factor == 0 for factor in (2, 3, 5)) and step > 1:
        step += 1

    def ranks() -> None:
        mesh = init_device_mesh("cpu", mesh_shape)
        for way in chosen[::step]:
            given = [
                distribute_tensor(one, mesh, placements, src_data_rank=None).requires_grad_()
                for one, placements in zip(data, way, strict=True)
            ]
            results, grads = _run(function, given, True)
            for found, wanted in zip(results, expected, strict=True):
                assert isinstance(found, DTensor)
                assert_close(_whole(found), wanted.detach(), msg=lambda m, w=way: f"{w}: {m}")
            for found, wanted in zip(grads, expected_grads, strict=True):
                assert_close(_whole(found), wanted, msg=lambda m, w=way: f"gradient, {w}: {m}")

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dist.run_ranks(ranks, int(plugrad.tensor(mesh_shape).prod()))


def _in_place(change: Callable[..., Any]) -> Callable[..., Any]:
    def function(x: Any, *others: Any) -> Any:
        target = x.clone()
        change(target, *others)
        return target

    return function


ELEMENTWISE: dict[str, Case] = {
    "exp": (plugrad.exp, (UNEVEN,)),
    "neg": (plugrad.neg, (EVEN,)),
    "add": (plugrad.add, (EVEN, EVEN)),
    "add_broadcast": (plugrad.add, (UNEVEN, (5,))),
    "sub_alpha": (lambda x, y: plugrad.sub(x, y, alpha=3), (EVEN, (4, 1))),
    "mul": (plugrad.mul, (UNEVEN, UNEVEN)),
    "div": (plugrad.div, (EVEN, (6,))),
    "number": (lambda x: 2 / (x * 3 + 1) - 4, (UNEVEN,)),
    "pow": (lambda x: x**3, (EVEN,)),
    "where": (lambda x, y: plugrad.where(x > 1.0, x, y), (EVEN, EVEN)),
    "maximum": (plugrad.maximum, (EVEN, (4, 1))),
    "clamp": (lambda x: x.clamp(0.7, 1.2), (UNEVEN,)),
    "addcmul": (lambda x, y, z: plugrad.addcmul(x, y, z, value=2), ((3,), (3,), (3,))),
    "lerp": (lambda x, y: plugrad.lerp(x, y, 0.3), (EVEN, EVEN)),
    "masked_fill": (lambda x: x.masked_fill(x > 1.0, 0.0), (EVEN,)),
    "gelu": (F.gelu, (EVEN,)),
    "silu": (F.silu, (UNEVEN,)),
    "tanh": (plugrad.tanh, (UNEVEN,)),
    "softplus": (F.softplus, (EVEN,)),
    "cast": (lambda x: x.to(plugrad.float32).to(plugrad.float64), (EVEN,)),
    "add_": (_in_place(lambda x, y: x.add_(y)), (UNEVEN, (5,))),
    "mul_": (_in_place(lambda x, y: x.mul_(y)), (EVEN, EVEN)),
    "sub_number_": (_in_place(lambda x: x.sub_(3)), (EVEN,)),
    "exp_": (_in_place(lambda x: x.exp_()), (UNEVEN,)),
    "addcdiv_": (_in_place(lambda x, y, z: x.addcdiv_(y, z)), ((4,), (4,), (4,))),
    "copy_": (_in_place(lambda x, y: x.copy_(y)), (EVEN, EVEN)),
    "zero_": (_in_place(lambda x: x[:2].zero_()), (EVEN,)),
    "fill_": (_in_place(lambda x: x.fill_(2.0)), (EVEN,)),
    "masked_fill_": (_in_place(lambda x: x.masked_fill_(x > 1.0, 3.0)), (EVEN,)),
}

REDUCTIONS: dict[str, Case] = {
    "sum": (plugrad.sum, (UNEVEN,)),
    "sum_dim": (lambda x: x.sum(0), (UNEVEN,)),
    "sum_keepdim": (lambda x: x.sum(1, keepdim=True), (EVEN,)),
    "mean": (plugrad.mean, (EVEN,)),
    "mean_uneven": (lambda x: x.mean(0), (UNEVEN,)),
    "amax": (lambda x: x.amax(0), (EVEN,)),
    "max_uneven": (plugrad.max, (UNEVEN,)),
    "max_dim": (lambda x: x.max(1).values, (EVEN,)),
    "var": (lambda x: x.var(1), (UNEVEN,)),
    "std": (lambda x: x.std(0), (EVEN,)),
    "prod": (lambda x: x.prod(1), (EVEN,)),
    "logsumexp": (lambda x: x.logsumexp(1), (UNEVEN,)),
    "norm": (lambda x: x.norm(), (UNEVEN,)),
    "cumsum": (lambda x: x.cumsum(0), (UNEVEN,)),
    "sort": (lambda x: x.sort(1).values, (EVEN,)),
    "topk": (lambda x: x.topk(2, 1).values, (EVEN,)),
    "chained": (lambda x: x.sum(0) * 2 + x.sum(), (UNEVEN,)),
}

VIEWS: dict[str, Case] = {
    "view": (lambda x: x.view(4, 2, 3), (EVEN,)),
    "merge": (lambda x: x.view(-1), (EVEN,)),
    "merge_uneven": (lambda x: x.reshape(-1), (UNEVEN,)),
    "split_first": (lambda x: x.view(2, 2, 6), (EVEN,)),
    "regroup": (lambda x: x.reshape(8, 3), (EVEN,)),
    "flatten": (lambda x: x.flatten(0, 1), ((2, 3, 4),)),
    "heads": (lambda x: x.view(2, 3, 2, 2).transpose(1, 2), ((2, 3, 4),)),
    "transpose": (lambda x: x.t() @ x, (UNEVEN,)),
    "permute": (lambda x: x.permute(2, 0, 1), ((2, 3, 4),)),
    "unsqueeze": (lambda x: x.unsqueeze(1), (UNEVEN,)),
    "squeeze": (lambda x: x.squeeze(), ((2, 1, 3),)),
    "select": (lambda x: x[1], (UNEVEN,)),
    "slice": (lambda x: x[:, 1:4], (UNEVEN,)),
    "step": (lambda x: x[::2], (EVEN,)),
    "whole_slice": (lambda x: x[:, :], (EVEN,)),
    "expand": (lambda x: x.expand(2, 3, 5), (UNEVEN,)),
    "split": (lambda x: x.split(2, 1), (EVEN,)),
    "chunk": (lambda x: x.chunk(3, 0), ((5, 2),)),
    "unbind": (lambda x: x.unbind(1), (UNEVEN,)),
    "cat": (lambda x, y: plugrad.cat([x, y]), (EVEN, (3, 6))),
    "stack": (lambda x, y: plugrad.stack([x, y], 1), (UNEVEN, UNEVEN)),
    "flip": (lambda x: x.flip(0), (UNEVEN,)),
    "roll": (lambda x: x.roll(1, 0), (UNEVEN,)),
    "tril": (plugrad.tril, ((2, 3, 3),)),
    "repeat": (lambda x: x.repeat(2, 1), (UNEVEN,)),
    "diagonal": (lambda x: x.diagonal(), ((4, 4),)),
    "clone": (plugrad.clone, (UNEVEN,)),
    "contiguous": (lambda x: x.t().contiguous(), (EVEN,)),
    "write_to_view": (_in_place(lambda x, y: x.t()[1:3].mul_(y)), ((4, 6), (4,))),
}

PRODUCTS: dict[str, Case] = {
    "mm": (plugrad.mm, (EVEN, (6, 2))),
    "mm_uneven": (plugrad.mm, (UNEVEN, (5, 3))),
    "matmul_vector": (plugrad.matmul, (EVEN, (6,))),
    "addmm": (plugrad.addmm, ((2,), EVEN, (6, 2))),
    "bmm": (plugrad.bmm, ((2, 3, 4), (2, 4, 3))),
    "einsum": (lambda x, y: plugrad.einsum("ij,kj->ik", x, y), (EVEN, (3, 6))),
    "linear": (F.linear, ((2, 3, 4), (5, 4), (5,))),
    "linear_no_bias": (F.linear, (EVEN, (2, 6))),
    "dot": (plugrad.dot, ((5,), (5,))),
    "two": (lambda x, y, z: F.linear(F.relu(F.linear(x, y)), z), ((2, 4), (4, 4), (2, 4))),
}

LAYERS: dict[str, Case] = {
    "softmax": (lambda x: x.softmax(1), (UNEVEN,)),
    "log_softmax": (lambda x: x.log_softmax(0), (EVEN,)),
    "layer_norm": (lambda x, w, b: F.layer_norm(x, (4,), w, b), ((2, 3, 4), (4,), (4,))),
    "layer_norm_plain": (lambda x: F.layer_norm(x, (5,)), (UNEVEN,)),
    "rms_norm": (lambda x, w: F.rms_norm(x, (6,), w), (EVEN, (6,))),
    "attention": (F.scaled_dot_product_attention, ((2, 2, 3, 2),) * 3),
    "causal": (
        lambda q: F.scaled_dot_product_attention(q, q * 2, q + 1, is_causal=True),
        ((2, 2, 4, 2),),
    ),
    "batch_norm": (
        lambda x, w: F.batch_norm(x, None, None, w, training=True),
        ((4, 3), (3,)),
    ),
    "group_norm": (lambda x: F.group_norm(x, 2), ((3, 4, 2),)),
    "conv2d": (lambda x, w, b: F.conv2d(x, w, b, padding=1), ((3, 2, 3, 3), (2, 2, 2, 2), (2,))),
    "max_pool2d": (lambda x: F.max_pool2d(x, 2), ((3, 2, 4, 4),)),
    "avg_pool2d": (lambda x: F.avg_pool2d(x, 2), ((3, 2, 4, 4),)),
    "mse_loss": (F.mse_loss, (UNEVEN, UNEVEN)),
    "l1_loss": (lambda x, y: F.l1_loss(x, y, reduction="sum"), (UNEVEN, UNEVEN)),
    "bce": (lambda x: F.binary_cross_entropy_with_logits(x, (x > 1).to(x.dtype)), (EVEN,)),
    "gather": (lambda x: x.gather(1, x.argsort(1)), (EVEN,)),
}

FAMILIES = {**ELEMENTWISE, **REDUCTIONS, **VIEWS, **PRODUCTS, **LAYERS}


@pytest.mark.parametrize("name", FAMILIES)
def test_results_and_gradients_are_one_process_s(name: str) -> None:
    _check(FAMILIES[name], (2,))


@pytest.mark.parametrize(
    "name",
    [
        *("add_broadcast", "mul_", "sum_dim", "mean_uneven", "max_uneven", "view", "merge"),
        *("heads", "mm_uneven", "linear", "layer_norm", "attention", "write_to_view"),
    ],
)
def test_results_are_one_process_s_on_a_mesh_of_two_dimensions(name: str) -> None:
    _check(FAMILIES[name], (2, 2))
