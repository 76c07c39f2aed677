"""Several named results: printed, copied, pickled and taken apart like PyTorch's."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

import plugrad
from plugrad import return_types

X = plugrad.tensor([[3.0, 1.0], [2.0, 5.0]])

CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "max": lambda lib, x: x.max(0),
    "min": lambda lib, x: x.min(1),
    "sort": lambda lib, x: x.sort(),
    "topk": lambda lib, x: x.topk(1),
    "kthvalue": lambda lib, x: x.kthvalue(1),
    "median": lambda lib, x: x.median(0),
    "cummax": lambda lib, x: x.cummax(0),
    "cummin": lambda lib, x: x.cummin(0),
    "aminmax": lambda lib, x: x.aminmax(),
}


@pytest.mark.parametrize("name", sorted(CALLS))
def test_they_print_as_in_pytorch(name: str, torch_oracle: ModuleType) -> None:
    ours = CALLS[name](plugrad, X)
    theirs = CALLS[name](torch_oracle, torch_oracle.tensor(X.tolist()))
    expected = repr(theirs).replace("torch.", "plugrad.").replace("-0.", " 0.")
    assert repr(ours).replace("-0.", " 0.") == expected
    assert str(ours) == f"{ours}" == repr(ours)


@pytest.mark.parametrize("name", dir(return_types))
def test_each_class_is_found_by_its_name(name: str) -> None:
    kind = getattr(return_types, name)
    made = kind(range(kind.n_fields))
    assert type(made) is kind
    assert made == tuple(range(kind.n_fields))
    assert made._fields == tuple(made._asdict())
    assert made._replace(**{made._fields[0]: 7})[0] == 7
    assert repr(made).startswith(f"plugrad.return_types.{name}(\n{made._fields[0]}=0,\n")
    assert kind(*made) == made
    for copied in (copy.copy(made), copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert type(copied) is kind
        assert copied == made


def test_the_class_is_the_same_wherever_it_comes_from() -> None:
    found = X.max(0)
    assert type(found) is return_types.max
    assert type(plugrad.max(X, dim=1)) is return_types.max
    assert type(plugrad.vmap(lambda row: row.max(0))(X)) is return_types.max
    assert isinstance(found, tuple)
    values, indices = found
    assert found.values is values
    assert found[1] is indices


def test_they_are_unpickled_by_a_program_that_has_not_called_the_operator() -> None:
    code = "import pickle, plugrad, sys; print(pickle.loads(sys.stdin.buffer.read()).values)"
    done = subprocess.run(
        [sys.executable, "-c", code], input=pickle.dumps(X.max(0)), capture_output=True, check=True
    )
    assert done.stdout.decode().split() == ["tensor([3.,", "5.])"]


def test_too_few_results_are_refused() -> None:
    with pytest.raises(TypeError, match="takes a sequence of 2 results"):
        return_types.max([1])


def test_unknown_names_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="return_types"):
        return_types.add  # noqa: B018
