"""Parameter: what kind of tensor it is and how it is copied and printed."""

from __future__ import annotations

import copy
import pickle

import plugrad
from plugrad import nn


def test_parameter_is_a_leaf_that_requires_grad() -> None:
    parameter = nn.Parameter(plugrad.ones(2, 3))
    assert isinstance(parameter, plugrad.Tensor)
    assert parameter.is_leaf
    assert parameter.requires_grad


def test_requires_grad_false_makes_a_frozen_parameter() -> None:
    assert not nn.Parameter(plugrad.ones(1), requires_grad=False).requires_grad


def test_parameter_made_under_no_grad_requires_grad() -> None:
    with plugrad.no_grad():
        parameter = nn.Parameter(plugrad.ones(1))
    assert parameter.requires_grad


def test_parameter_shares_memory_with_its_data() -> None:
    data = plugrad.zeros(2)
    parameter = nn.Parameter(data)
    data.fill_(3.0)
    assert parameter.tolist() == [3.0, 3.0]


def test_parameter_of_a_result_is_a_leaf() -> None:
    result = plugrad.ones(2, requires_grad=True) * 2
    assert nn.Parameter(result).is_leaf


def test_parameter_without_data_is_empty() -> None:
    assert nn.Parameter().numel() == 0


def test_results_of_operators_are_plain_tensors() -> None:
    parameter = nn.Parameter(plugrad.ones(2))
    assert type(parameter * 2) is plugrad.Tensor


def test_repr_says_parameter() -> None:
    text = repr(nn.Parameter(plugrad.ones(2)))
    assert text == "Parameter containing:\ntensor([1., 1.], requires_grad=True)"


def test_deepcopy_gives_an_independent_parameter() -> None:
    parameter = nn.Parameter(plugrad.ones(2))
    copied = copy.deepcopy(parameter)
    with plugrad.no_grad():
        copied.fill_(5.0)
    assert isinstance(copied, nn.Parameter)
    assert copied.requires_grad
    assert parameter.tolist() == [1.0, 1.0]


def test_deepcopy_keeps_sharing_within_one_copy() -> None:
    parameter = nn.Parameter(plugrad.ones(2))
    first, second = copy.deepcopy([parameter, parameter])
    assert first is second


def test_pickle_round_trip() -> None:
    parameter = nn.Parameter(plugrad.ones(2), requires_grad=False)
    restored = pickle.loads(pickle.dumps(parameter))
    assert isinstance(restored, nn.Parameter)
    assert not restored.requires_grad
    assert restored.tolist() == [1.0, 1.0]


def test_backward_fills_the_gradient() -> None:
    parameter = nn.Parameter(plugrad.tensor([1.0, 2.0]))
    (parameter * parameter).sum().backward()
    assert parameter.grad is not None
    assert parameter.grad.tolist() == [2.0, 4.0]
