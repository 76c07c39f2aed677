"""Arguments, right ones and wrong ones, as source text that is evaluated for either library."""

# ruff: noqa: E501, SIM905  # tables

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from tests.torture.specs import Argument

_DTYPES = (
    *("float32", "float64", "float16", "bfloat16", "int64", "int32", "uint8", "bool"),
    *("complex64", "complex128"),
)
NUMBERS = """
0 1 2 3 -1 -2 5 7 1000000000 -1000000000 1<<62 -(1<<63) 1<<63 1<<70 0.0 0.5 1.5 -2.5 1e-30 1e300
float('nan') float('inf') -float('inf') True False 1j complex(0.5,-1) np.float32(0.5) np.int64(2)
np.bool_(True) np.float64(1.5) np.uint8(3)
""".split()
OTHERS = (
    """
None|...|"cpu"|"cpu:0"|"cpu:7"|"cuda"|"meta"|"gpu"|""|"mean"|"sum"|"none"|"xyz"|"ij"|"ij,jk->ik"|"floor"
b"bytes"|object()|slice(None)|slice(0,2)|range(3)|int|lambda *a: a[0]|lambda *a, **k: None|lib.no_grad
{}|{"a": 1}|{1, 2}|set()|[]|()|[None]|[[]]|(1,)|(2, 3)|[2, 3]|[1, -1]|(-1,)|(0, 1)|[0, 0]|(3, 3, 3)
(10**9, 1)|[1<<62, 2]|[1<<70]|(1.5, 2)|["a"]|[True]|[1, [2]]|[[1, 2], [3]]|(None, 1)|[0.5, 1]|(2, 2, 2, 2, 2)
np.ones((2, 3))|np.zeros((0, 3), np.int64)|np.array("a")|np.array(None)|np.ones(3, np.float16)
np.float32(1)|np.arange(6).reshape(2, 3)[:, ::-1]|np.array(["a"], object)|np.ma.ones(3)|np.datetime64("2020")
lib.Size([2, 3])|lib.device("cpu")|lib.device("meta")|lib.Generator()|lib.Tensor|lib.nn.ReLU()|lib.nn.Module
lib.strided|lib.contiguous_format|lib.channels_last|lib.preserve_format|iter([1, 2])|type("A", (), {})()
""".strip()
    .replace("\n", "|")
    .split("|")
)
TENSORS = (
    """
lib.ones(3)|lib.ones(2, 3)|lib.ones(3, 3)|lib.tensor(1.5)|lib.tensor(2)|lib.tensor(True)|lib.empty(0)
lib.ones(0, 3)|lib.ones(2, 3).mT|lib.ones(1).expand(4)|lib.ones(2, 3, 4)|lib.ones(1, 2, 4, 4)
lib.ones(2, 2, 3, 3, 3)|lib.tensor([0, 1, 2])|lib.tensor([0, -1])|lib.tensor([5, 100])|lib.tensor([True, False, True])
lib.tensor([1 + 2j, 0.5])|lib.tensor([0.5, -1.0, 2.0], requires_grad=True)|lib.ones(2, 3, requires_grad=True)
lib.ones(2, 3, requires_grad=True) * 2|lib.ones(3, dtype=lib.float64)|lib.ones(3, dtype=lib.float16)
lib.ones(2, 2, dtype=lib.bfloat16)|lib.tensor([1, 2, 3], dtype=lib.uint8)|lib.tensor([float("nan"), float("inf")])
lib.zeros(3, dtype=lib.complex64)|lib.nn.Parameter(lib.ones(2, 2))|lib.ones(3).as_strided((2, 2), (1, 1))
lib.ones(4, 3)[::2]|lib.zeros(2, 3, device="meta")|lib.ones(2).detach()|lib.ones((1,) * 12)|lib.eye(3, dtype=lib.float64)
lib.arange(6).view(2, 3)|lib.zeros(3, dtype=lib.int64)|lib.ones(())|lib.ones(2, 0, 3)
""".strip()
    .replace("\n", "|")
    .split("|")
)
LISTS = """
[{0}, {1}]|({0},)|[{0}, None]|[{0}, 1]|[[{0}], {1}]|{{"a": {0}}}|({0}, [{1}])|[{0}] * 3
""".strip().split("|")
KEYWORDS = """
dim keepdim dtype device requires_grad out input other self size axis axes keepdims alpha beta value
reduction generator x foo index source src mask weight bias eps p n correction unbiased rounding_mode
memory_format non_blocking copy inplace training momentum stable descending largest sorted create_graph
retain_graph grad_outputs inputs allow_unused is_grads_batched strict vectorize has_aux argnums in_dims
out_dims randomness chunk_size lr params indexing layout pin_memory full dims shifts k diagonal
""".split()


@dataclass(frozen=True)
class Source(Argument):
    """An argument as an expression of the library `lib` and of NumPy `np`."""

    source: str

    def make(self, lib: Any) -> Any:
        return eval(_compiled(self.source), {"lib": lib, "np": np})

    def text(self) -> str:
        return self.source


@cache
def _compiled(source: str) -> Any:
    return compile(source, "<argument>", "eval")


def tensor(rng: random.Random) -> Source:
    if rng.random() < 0.2:
        shape = tuple(rng.choice((0, 1, 2, 3, 4)) for _ in range(rng.randrange(5)))
        return Source(f"lib.ones({shape}, dtype=lib.{rng.choice(_DTYPES)})")
    return Source(rng.choice(TENSORS))


def argument(rng: random.Random) -> Source:
    """Anything at all."""
    which = rng.random()
    if which < 0.35:
        return tensor(rng)
    if which < 0.6:
        return Source(rng.choice(NUMBERS))
    if which < 0.65:
        return Source(f"lib.{rng.choice(_DTYPES)}")
    if which < 0.75:
        form = rng.choice(LISTS)
        return Source(form.format(tensor(rng).source, tensor(rng).source))
    return Source(rng.choice(OTHERS))
