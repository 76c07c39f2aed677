"""Numbers that their dtype does not hold, and tensors in the place of numbers, as in PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pytest

from tests.core.ops.against_torch.edges import EDGES, check

PROGRAMS: Final[dict[str, Callable[[Any], Any]]] = {
    "linspace": lambda L: L.linspace(0, 1e10, 5, dtype=L.int32),
    "linspace, one": lambda L: L.linspace(0, 1e10, 1, dtype=L.int32),
    "linspace of bytes": lambda L: L.linspace(-5, 200, 5, dtype=L.uint8),
    "linspace of floats": lambda L: L.linspace(0, 1e39, 3),
    "logspace": lambda L: L.logspace(0, 1e10, 4, dtype=L.int32),
    "arange": lambda L: L.arange(0, 1e20, 1e19, dtype=L.int64),
    **{
        f"{name}{args}": (
            lambda L, name=name, args=args: getattr(L.ones(2, dtype=L.int8), name)(*args)  # type: ignore[misc]
        )
        for name, *args in (
            ("clamp", -300, 300), ("clamp_min", -300), ("pow", 300), ("add", 300), ("mul", 300),
            ("eq", 300), ("clamp", 1.5, 2.5), ("fill_", 300), ("index_fill", 0),
        )
    },
    "where": lambda L: L.where(L.ones(2) == 1, L.ones(2, dtype=L.int8), 300),
    "alpha": lambda L: L.add(L.ones(2, dtype=L.int8), 1, alpha=300),
    "value": lambda L: L.addcmul(*[L.ones(2, dtype=L.int8)] * 3, value=300),
    "scatter": lambda L: L.ones(2, dtype=L.int8).scatter(0, L.tensor([0]), 300),
    "threshold": lambda L: L.threshold(L.ones(2, dtype=L.int8), 300, 1),
    "addmm": lambda L: L.addmm(*[L.ones(2, 2, dtype=L.int8)] * 3, alpha=300),
    **{
        f"{name} of half precision": (
            lambda L, name=name: getattr(L.special, name)(L.ones(2, dtype=L.float16) * 2, 1 << 40)  # type: ignore[misc]
        )
        for name in ("xlogy", "xlog1py")
    },
    **{
        f"round to {decimals} decimals": (
            lambda L, decimals=decimals: L.tensor(EDGES, dtype=L.float64).round(decimals=decimals)  # type: ignore[misc]
        )
        for decimals in (308, 309, -308, -309, 1 << 40)
    },
    # A tensor without dimensions is a number, also where several signatures are tried.
    "the probability of bernoulli": lambda L: L.ones(3).bernoulli(L.tensor(0.0)),
    "a probability that is complex": lambda L: L.ones(3).bernoulli(L.tensor(1 + 0j)),
    "a probability that is not real": lambda L: L.ones(3).bernoulli(L.tensor(1j)),
    "the mean of normal": lambda L: L.normal(L.tensor(1), 0.0, (3,)),
    "the slope of elu": lambda L: L.nn.functional.elu(-L.ones(2), L.tensor(1 + 0j)),
    "an array of an object for a number": lambda L: L.ones(2).nan_to_num(np.array(None)),
    "a NumPy number of bytes": lambda L: L.UntypedStorage(np.int64(2)).size(),
    **{
        f"{kind} of {data!r}": (lambda L, kind=kind, data=data: getattr(L, kind)(data))  # type: ignore[misc]
        for kind in ("Tensor", "FloatTensor", "LongTensor")
        for data in (
            {1, 2}, {}, None, 1.5, "a", b"a", ["a"], [None], [1, "a"], range(2), [[1], [2, 3]],
        )
    },
    "the input of one_hot": lambda L: L.nn.functional.one_hot(input=L.tensor([0, 1])),
    "a complex number that is real": lambda L: L.full((2,), L.tensor(2 + 0j), dtype=L.float32),
}  # fmt: skip
del PROGRAMS["index_fill[0]"]


@pytest.mark.parametrize("name", PROGRAMS)
def test_numbers_at_edges_are_those_of_pytorch(torch_oracle: Any, name: str) -> None:
    check(torch_oracle, PROGRAMS[name])
