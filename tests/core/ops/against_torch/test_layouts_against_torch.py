"""Results are views or contiguous as in PyTorch, independent of their decomposition."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import plugrad
from plugrad.testing.cases import FAMILIES, OpCase, OpSample, T, family_cases, flatten, resolve
from tests.core.ops.against_torch.oracle import is_tensor
from tests.core.ops.against_torch.test_against_torch import arguments

# The order of the contractions decides, which neither library promises.
OTHER_ORDER = frozenset(["einsum"])


def results(library: Any, case: OpCase, sample: OpSample) -> list[Any] | None:
    args, kwargs, _ = arguments(library, case, sample, "float32")
    name = case.op if library is plugrad else case.torch or case.op
    try:
        result = resolve(name, library)(*args, **kwargs)
    except Exception:
        return None  # what is refused is the operator suite's business
    return [x for x in flatten(result) if is_tensor(x)]


@pytest.mark.parametrize("family", FAMILIES)
def test_results_are_views_and_lie_in_order_where_those_of_pytorch_do(
    torch_oracle: Any, family: str
) -> None:
    wrong = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for case in family_cases(family):
            for sample in case.all_samples():
                if any(isinstance(t, T) and t.strides != "contiguous" for t in sample.args):
                    continue
                expected = results(torch_oracle, case, sample)
                found = results(plugrad, case, sample)
                for mine, other in zip(found or [], expected or [], strict=False):
                    # Where PyTorch's is a view of a temporary, plugrad's may be none.
                    if mine._is_view() and not other._is_view():
                        wrong.append((case.op, sample, "a view"))
                    in_order = case.op in OTHER_ORDER or not other.is_contiguous()
                    if not (in_order or mine.is_contiguous()):
                        wrong.append((case.op, sample, mine.stride(), other.stride()))
    assert not wrong


GRADIENTS = {
    "mean of one": lambda lib, x: x[:1].mean() * x[0],
    "mean": lambda lib, x: x.mean(),
    "a number that was broadcast": lambda lib, x: (x[0].detach().requires_grad_() * x).sum(),
    "hardsigmoid": lambda lib, x: lib.nn.functional.hardsigmoid(x).sum(),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_may_be_written_to_and_recorded_as_in_pytorch(
    torch_oracle: Any, name: str
) -> None:
    found = []
    for library in (plugrad, torch_oracle):
        x = library.tensor([0.5, -4.0, 2.0], requires_grad=True)
        (grad,) = library.autograd.grad(GRADIENTS[name](library, x), x, create_graph=True)
        flag = grad.requires_grad
        grad = grad.detach()
        found.append((flag, grad.stride(), grad.mul_(2).tolist()))
    assert found[0] == found[1]


def test_one_element_of_a_sorted_tensor_has_no_negative_stride() -> None:
    values, indices = plugrad.tensor([3.0, 1.0]).topk(1)
    assert (values.stride(), indices.stride()) == ((1,), (1,))
    assert plugrad.tensor([3.0]).sort(descending=True)[1].stride() == (1,)


TURNED = {
    "cat": lambda lib, x: lib.cat([x, x]),
    "stack": lambda lib, x: lib.stack([x, x], -1),
    "hstack": lambda lib, x: lib.hstack([x, x]),
    "roll": lambda lib, x: x.roll(1, 0),
    "softmax": lambda lib, x: x.softmax(0),
    "log_softmax": lambda lib, x: x.log_softmax(-1),
    "logsigmoid": lambda lib, x: lib.nn.functional.logsigmoid(x),
    "cumsum": lambda lib, x: x.cumsum(0),
    "cumprod": lambda lib, x: x.cumprod(-1),
    "sort": lambda lib, x: x.sort(dim=0, stable=True)[0],
    "argsort": lambda lib, x: x.argsort(-1),
    "gather": lambda lib, x: x.gather(0, x.argsort(0)),
    "index_fill": lambda lib, x: x.index_fill(0, lib.tensor([0]), 0.5),
    "index_put": lambda lib, x: x.index_put((lib.tensor([0]),), x[1]),
    "complex": lambda lib, x: lib.complex(x, x),
    "gelu": lambda lib, x: lib.nn.functional.gelu(x),
    "power of a number": lambda lib, x: 2.0**x,
    "pad": lambda lib, x: lib.nn.functional.pad(x, (1, 1)),
}


@pytest.mark.parametrize("name", TURNED)
def test_results_of_what_is_turned_lie_as_in_pytorch(torch_oracle: Any, name: str) -> None:
    found = []
    for library in (plugrad, torch_oracle):
        x = library.tensor([[3.0, 1.0, 2.0], [0.5, 2.5, -1.0]]).t()
        found.append([TURNED[name](library, y).stride() for y in (x, x[:, :1].expand(3, 2))])
    assert found[0] == found[1]
