"""Operators inside of `vmap`: all of them, nested; writes to views; geometry.

Oracle: a loop over the batch; PyTorch's vmap, where it is installed.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad import vmap
from plugrad.dispatch.operator import Operator, all_operators
from plugrad.levels.batching import BatchedCall
from plugrad.testing.cases import (
    FAMILIES,
    Arguments,
    OpCase,
    OpSample,
    family_cases,
    flatten,
    resolve,
    seed_of,
)
from tests.core.ops.against_torch.oracle import is_tensor, to_numpy, torch
from tests.core.ops.harness import needs_torch

# They look at elements and raise, as PyTorch's do; the last ones look at strides.
_REFUSED = {
    "allclose", "argwhere", "equal", "masked_select", "nonzero", "Tensor.nonzero", "one_hot",
    "Tensor.as_strided", "as_strided", "as_strided_scatter", "view_as_complex",
    "as_strided_copy", "view_as_complex_copy", "unique", "unique_consecutive", "Tensor.unique",
    # Elements that are turned round make no offsets, and no positive definite matrices.
    "_embedding_bag", "_embedding_bag_forward_only", "cholesky", "embedding_bag", "linalg.cholesky",
    # What would be written to is not mapped over.
    "_foreach_copy_", "_foreach_lerp_", "_foreach_zero_",
}  # fmt: skip
# Their results are random.
_DRAWN = ("creation", "distributions")
# Samples of one operator that are tried, the first ones.
_ENOUGH = 2


def _with_tensors(value: Any, tensors: list[Any]) -> Any:
    """`value` with the tensors of a list, from its front, in the place of its own."""
    if is_tensor(value):
        return tensors.pop(0)
    if isinstance(value, (list, tuple)):
        return type(value)([_with_tensors(item, tensors) for item in value])
    if isinstance(value, dict):
        return {key: _with_tensors(item, tensors) for key, item in value.items()}
    return value


def _tensors(value: Any) -> list[Any]:
    if is_tensor(value):
        return [value.detach()]
    items = value.values() if isinstance(value, dict) else value
    return (
        [tensor for item in items for tensor in _tensors(item)]
        if isinstance(value, (list, tuple, dict))
        else []
    )


def _function(case: OpCase, sample: OpSample) -> tuple[Callable[..., Any], list[Any]]:
    """A sample's operator as a function of its tensors, and these."""
    made = Arguments("float64", seed_of(case, sample), overlapping=False)
    given = [made.make(tuple(sample.args)), made.make(dict(sample.kwargs))]

    def of_tensors(*tensors: Any) -> Any:
        args, kwargs = _with_tensors(given, list(tensors))
        return tuple(item for item in flatten(resolve(case.op)(*args, **kwargs)) if is_tensor(item))

    return of_tensors, _tensors(given)


def _samples(family: str) -> list[tuple[OpCase, OpSample]]:
    return [
        (case, sample)
        for case in family_cases(family)
        if case.op not in _REFUSED
        for sample in case.all_samples()[:_ENOUGH]
    ]


@pytest.mark.parametrize("family", [family for family in FAMILIES if family not in _DRAWN])
def test_operators_in_nested_vmaps_agree_with_loops(family: str) -> None:
    for case, sample in _samples(family):
        function, tensors = _function(case, sample)
        if not tensors:
            continue
        turns = [[_rolled(tensor, number) for tensor in tensors] for number in range(4)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = [function(*[tensor.clone() for tensor in turn]) for turn in turns]
            batches = [
                plugrad.stack([plugrad.stack(pair, -1) for pair in (items[:2], items[2:])], 0)
                for items in map(list, zip(*turns, strict=True))
            ]
            found = vmap(vmap(function, in_dims=-1))(*batches)
        for output, wanted in zip(found, zip(*expected, strict=True), strict=True):
            stacked = np.stack([to_numpy(item) for item in wanted])
            np.testing.assert_allclose(
                to_numpy(output).reshape(stacked.shape), stacked, 1e-6, 1e-8, err_msg=str(sample)
            )


def _rolled(tensor: Any, number: int) -> Any:
    return tensor.reshape(-1).roll(number).reshape(tensor.shape).clone()


def _written_through_views(lib: Any, x: Any) -> Any:
    y = x.clone()
    y.t()[0].mul_(2)
    y[1:].add_(y[:1])
    y.diagonal().zero_()
    y.unsqueeze(0).select(1, 0).fill_(7.0)
    y.view(-1)[-1] = x.sum()
    return y


def _written_in_parts(lib: Any, x: Any) -> Any:
    y = x.clone()
    y.narrow(0, 0, 1).copy_(x[-1])
    y.select(1, -1).sub_(x[:, 0])
    y.unfold(1, 2, 1)[0, 0].mul_(3)
    y.expand(2, 3, 3)
    return y


def _written_one_of_several(lib: Any, x: Any) -> Any:
    y = x.clone()
    for number, part in enumerate(y.unbind(1)):
        part.sub_(number)
    return y


def _turned_in_place(lib: Any, x: Any) -> Any:
    y = x.clone()
    y.t_()
    y.unsqueeze_(1)
    y.transpose_(0, 2)
    y.squeeze_()
    y.mul_(x)
    return y


def _of_numbers(lib: Any, x: Any) -> Any:
    # Without logical dimensions they count less for the dtype than what has some.
    total = x.double().sum()
    row = x[0] * total
    row += total
    return lib.where(row > total, row, total.float())


def _strided(lib: Any, x: Any) -> Any:
    return x.as_strided((2, 2), (4, 1)) + x.t().as_strided((2, 2), (1, 3))


_PROGRAMS = [
    _written_through_views, _written_in_parts, _written_one_of_several, _turned_in_place,
    _of_numbers, _strided,
]  # fmt: skip


def _run(lib: Any, program: Any, nested: bool, in_dim: int, gradient: str) -> Any:
    values = np.random.default_rng(0).uniform(-1, 1, (2, 2, 3, 3)).astype(np.float32)
    leaf = lib.from_numpy(np.moveaxis(values, 1, in_dim if in_dim < 0 else in_dim + 1).copy())

    def function(x: Any) -> Any:
        return program(lib, x)

    map_ = vmap if lib is plugrad else torch.func.vmap
    if gradient == "inside":
        inner = (plugrad.func if lib is plugrad else torch.func).grad(
            lambda x: (function(x) * function(x)).sum()
        )
    else:
        inner = function
        leaf.requires_grad_(gradient == "outside")
    mapped = map_(inner, in_dims=in_dim)
    output = map_(mapped)(leaf) if nested else mapped(leaf[0])
    if gradient != "outside":
        return output
    return lib.autograd.grad((output * output).sum(), [leaf])[0]


@needs_torch
@pytest.mark.parametrize("gradient", ["none", "outside", "inside"])
@pytest.mark.parametrize(("nested", "in_dim"), [(False, 0), (False, -1), (True, 1)])
@pytest.mark.parametrize("program", _PROGRAMS)
def test_programs_do_the_same_as_under_torch(
    program: Any, nested: bool, in_dim: int, gradient: str
) -> None:
    try:
        theirs = _run(torch, program, nested, in_dim, gradient)
    except RuntimeError as error:
        # Some view cannot be had, or not be written to.
        with pytest.raises(RuntimeError, match=re.escape(str(error)[:60])):
            _run(plugrad, program, nested, in_dim, gradient)
        return
    ours = _run(plugrad, program, nested, in_dim, gradient)
    assert str(ours.dtype).removeprefix("plugrad.") == str(theirs.dtype).removeprefix("torch.")
    np.testing.assert_allclose(to_numpy(ours), to_numpy(theirs), rtol=1e-5, atol=1e-6)


def test_strides_do_not_reach_other_elements_of_the_batch() -> None:
    x = plugrad.ones(4, 3)
    with pytest.raises(RuntimeError, match="access some memory in range"):
        vmap(lambda row: row.as_strided((4,), (1,)))(x)


# Which operators are called once for every element of a batch, and why.
_LOOPS = {
    "_update_lists": "the operators of lists call it for tensors that nothing has wrapped",
    "_update_sgd": "as for lists",
    "_update_adam": "as for lists",
}


def _served(op: Operator) -> str:
    """How `vmap` does an operator: "rule", "parts" or "loop"."""
    call = BatchedCall(op)
    if op.structure == "inplace_view" or (call.mutates and call.rule is None):
        if call.implicit is not None:
            return "parts"
        return "loop" if call.functional is None else _served(call.functional)
    if call.rule is not None:
        return "rule"
    return "loop" if call.implicit is None and call.explicit is None else "parts"


def test_every_operator_is_mapped_by_a_rule_or_its_parts() -> None:
    takes_tensors = [
        op
        for op in all_operators()
        if op.namespace == "plugrad"
        and any(argument.type.base == "Tensor" for argument in op.schema.arguments)
    ]
    assert {op.full_name for op in takes_tensors if _served(op) == "loop"} == set(_LOOPS)
