"""Programs of one line and their results beside PyTorch's: values, dtypes, gradients, refusals."""

# ruff: noqa: E501  # a table

from __future__ import annotations

from typing import Any, Final

import pytest

import plugrad
from tests.core.ops.against_torch.edges import outcome

# By topic; statements before the last `;` run first, the last is what is compared.
PROGRAMS: Final[dict[str, str]] = {
    "reductions compute in the dtype of out": """
        L.sum(L.full((3,), 2.5), 0, out=L.empty((), dtype=L.int64))
        L.sum(L.full((3,), 0.5), 0, out=L.empty((), dtype=L.bool))
        L.sum(L.full((3,), 2.5 + 1j), 0, out=L.empty((), dtype=L.float32))
        L.prod(L.full((3,), 2.5), 0, out=L.empty((), dtype=L.int64))
        L.prod(L.ones(3, dtype=L.bool), 0, out=L.empty((), dtype=L.bool))
        L.cumsum(L.full((3,), 2.5), 0, out=L.empty(3, dtype=L.int64))
        L.cumprod(L.full((3,), 2.5), 0, out=L.empty(3, dtype=L.int64))
        L.cumsum(L.ones(3), 0, out=L.empty(3, dtype=L.bool))
        L.cumprod(L.ones(3), 0, out=L.empty(3, dtype=L.bool))
        L.mean(L.ones(3), 0, out=L.empty((), dtype=L.bool))
        L.sum(L.ones(3, requires_grad=True), 0, out=L.empty((), dtype=L.int64))
        L.sum(L.ones(3), 0, dtype=L.float64, out=L.empty(()))
        L.cumprod(L.ones(3), 0, dtype=L.int64, out=L.empty(3))
        L.mean(L.ones(3), 0, dtype=L.float64, out=L.empty(()))
    """,
    "running sums and products": """
        L.cumsum(L.ones(3), 0, dtype=L.bool)
        L.cumprod(L.ones(3), 0, dtype=L.bool)
        L.full((3,), 2).cumsum_(0, dtype=L.float32)
        L.full((3,), 2.5).cumsum_(0, dtype=L.int64)
        L.full((3,), 2.5).cumsum_(0, dtype=L.float32)
        L.full((3,), 2.5).cumprod_(0, dtype=L.float64)
        L.full((3,), 2, dtype=L.int32).cumprod_(0)
        L.full((3,), True).cumsum_(0)
        x = L.full((3,), 2.5, requires_grad=True); (x * 1).cumsum_(0, dtype=L.float64)
        x = L.full((3,), 2.5, requires_grad=True); (x * 1).cumprod_(0, dtype=L.float32).sum().backward(); x.grad
    """,
    "sequences keep the shape of out": """
        L.linspace(0, 1, 3, out=L.empty(3, 1))
        L.linspace(0, 1, 0, out=L.empty(2, 0))
        L.linspace(0, 1, 1, out=L.empty(()))
        L.linspace(0, 1, 3, out=L.empty(0))
        L.logspace(0, 1, 4, out=L.empty(2, 2))
        L.arange(4, out=L.empty(2, 4)[:, ::2])
        L.arange(4, out=L.empty(4).view(2, 2).t())
        L.arange(3, out=L.empty(4))
        L.arange(0, out=L.empty(2, 0))
    """,
    "other functions with out": """
        L.special.shifted_chebyshev_polynomial_t(L.tensor([3., 4.]), L.tensor([2.]), out=L.empty(2))
        L.special.shifted_chebyshev_polynomial_w(2., L.tensor([2.]), out=L.empty(1))
        L.argsort(L.tensor([3., 1., 2.]), stable=True, dim=0, descending=True, out=L.empty(3, dtype=L.int64))
        L.argsort(L.tensor([3., 1., 2.]), stable=True, out=L.empty(3, dtype=L.int32))
    """,
    "products": """
        a = L.ones(2, 2, dtype=L.uint8); L.addmm(a, a, a, beta=-1, alpha=-2)
        a = L.ones(2, 2, dtype=L.uint8); L.addmm(a, a, a, beta=300)
        a = L.ones(2, 2, dtype=L.int64); L.addmm(a, a, a, beta=1.5, alpha=2.7)
        L.bmm(L.ones(0, 2, 3), L.ones(0, 3, 2, dtype=L.float64))
        L.bmm(L.ones(2, 2, 0), L.ones(2, 0, 2, dtype=L.int64))
        L.matmul(L.ones(2, 0, 3, dtype=L.float64), L.ones(2, 3, 2))
        L.bmm(L.ones(1, 2, 3), L.ones(1, 3, 2, dtype=L.float64))
        L.mm(L.ones(2, 0), L.ones(0, 2, dtype=L.float64))
        x = L.ones(2, 2, 0, requires_grad=True); L.bmm(x, L.ones(2, 0, 2, dtype=L.float64)).sum().backward(); x.grad
    """,
    "einsum of several dtypes": """
        L.einsum('ij,jk->ik', L.ones(2, 2), L.ones(2, 2, dtype=L.float64))
        L.einsum('ij,jk->ik', L.ones(2, 2, dtype=L.bool), L.ones(2, 2, dtype=L.bool))
        L.einsum('ij,jk->ik', L.ones(2, 0), L.ones(0, 2, dtype=L.float64))
        L.einsum('i,i->', L.ones(2, dtype=L.int64), L.ones(2, dtype=L.float64))
        L.einsum('i,i->', L.ones(1), L.ones(2, dtype=L.float64))
        L.einsum('i,i->', L.ones(1, dtype=L.complex64), L.ones(2, dtype=L.float64))
        L.einsum('ij,j->i', L.ones(2, 1), L.ones(1, dtype=L.float64))
        L.einsum('ij,ij->j', L.tensor([[1., 2.]]), L.tensor([[1., 2.], [3., 4.]]))
        L.einsum('ij,jk->ik', L.tensor([[1.], [2.]]), L.tensor([[1., 2.], [3., 4.]]))
        x = L.tensor([[1.], [2.]], requires_grad=True); L.einsum('ij,jk->i', x, L.tensor([[1., 2.], [3., 4.]])).sum().backward(); x.grad
    """,
    "one value where a mask is true is cast": """
        L.ones(3).index_put((L.tensor([True, False, False]),), L.tensor([2.], dtype=L.float64))
        L.ones(3).index_put((L.tensor([True, False, False]),), L.tensor(2))
        L.ones(3, dtype=L.int64).index_put_((L.tensor([True, False, False]),), L.tensor(2.5))
        L.ones(3, 2).index_put((L.ones(3, 2, dtype=L.bool),), L.tensor(1.5, dtype=L.float64))
        L.ones(3).index_put((L.tensor([True, False, False]),), L.tensor(2), accumulate=True)
        L.ones(3).index_put((L.tensor([True, True, False]),), L.tensor([2, 3]))
        L.ones(3).index_put((L.tensor([0]),), L.tensor([2]))
        x = L.ones(3); x[L.tensor([True, False, False])] = L.tensor([1.5], dtype=L.float64); x
        v = L.tensor([2.], dtype=L.float64, requires_grad=True); L.ones(3).index_put((L.tensor([True, False, True]),), v).sum().backward(); v.grad
    """,
    "adaptive_avg_pool2d of any rank": """
        L.nn.functional.adaptive_avg_pool2d(L.ones(2, 3), 1)
        L.nn.functional.adaptive_avg_pool2d(L.ones(2, 3), (1, 1))
        L.nn.functional.adaptive_avg_pool2d(L.ones(2, 2, 2, 2, 3), (1, 1))
        L.nn.functional.adaptive_avg_pool2d(L.ones(2, 4, 4), (2, 2, 2))
        L.nn.functional.adaptive_avg_pool2d(L.ones(4), 1)
        L.nn.functional.adaptive_avg_pool2d(L.ones(2, 3, dtype=L.int64), 1)
        L.nn.functional.adaptive_avg_pool2d(L.ones(2, 0, 3), 1)
    """,
    "addr": """
        L.addr(L.ones(3, dtype=L.int64), L.ones(2), L.ones(3))
        L.addr(L.ones(3), L.ones(2, dtype=L.float64), L.ones(3))
        L.addr(L.ones(3, dtype=L.int64), L.ones(2, dtype=L.int64), L.ones(3, dtype=L.int64), beta=.5)
        L.addr(L.ones(3, dtype=L.bool), L.ones(2, dtype=L.bool), L.ones(3, dtype=L.bool), beta=False, alpha=False)
        L.addr(L.ones(3, dtype=L.uint8), L.ones(2, dtype=L.uint8), L.ones(3, dtype=L.uint8), beta=-1)
        L.addr(L.full((3,), nan), L.ones(2), L.ones(3), beta=0)
        L.addr(L.ones(3), L.ones(2), L.ones(3), beta=True)
        L.addr(L.ones(3, dtype=L.bool), L.ones(2, dtype=L.int16), L.ones(3, dtype=L.int16), beta=2, alpha=3)
        L.addr(L.ones((), dtype=L.int64), L.ones(2, dtype=L.int16), L.ones(3, dtype=L.bool), beta=2, alpha=3)
        L.addr(L.ones(4), L.ones(2), L.ones(3))
        L.addr(2, L.ones(3), 3, L.ones(2), L.ones(3))
        L.addr(L.ones(2, 3), L.ones(2), L.ones(3), out=L.empty(2, 3, dtype=L.float64))
        L.ones(2, 3, dtype=L.int64).addr_(L.ones(2), L.ones(3), alpha=2)
        x = L.ones(3, requires_grad=True); v = L.tensor([1., 2.], requires_grad=True); L.addr(x, v, x, beta=2, alpha=3).sum().backward(); (x.grad, v.grad)
    """,
    "an addend times 0 has a gradient of 0": """
        x = L.full((2,), nan, requires_grad=True); L.addmv(x, L.ones(2, 3), L.ones(3), beta=0).sum().backward(); x.grad
        x = L.full((3,), nan, requires_grad=True); L.addr(x, L.ones(2), L.ones(3), beta=0).sum().backward(); x.grad
        x = L.full((3,), nan, requires_grad=True); L.addbmm(x, L.ones(1, 2, 3), L.ones(1, 3, 3), beta=0).sum().backward(); x.grad
        x = L.full((3,), nan, requires_grad=True); L.baddbmm(x, L.ones(1, 2, 3), L.ones(1, 3, 3), beta=0)
    """,
    "signs of nan": """
        L.signbit(L.tensor([nan, -nan, -0., 0.]))
        L.signbit(-L.tensor([nan, -nan, -0.]))
        L.signbit(L.tensor([nan, -nan], dtype=L.float16))
        L.signbit(L.tensor([nan, -nan], dtype=L.bfloat16))
        L.signbit(L.tensor([1j]))
        L.signbit(L.tensor([True, False]))
        L.copysign(L.tensor([1., 2., 3.]), L.tensor([nan, -nan, -0.]))
        L.copysign(L.tensor([1, 2]), -nan)
        L.copysign(L.tensor([1., 2.], dtype=L.bfloat16), L.tensor([nan, -nan], dtype=L.bfloat16))
        x = L.tensor([1., -2., 0.], requires_grad=True); L.copysign(x, L.tensor([nan, -nan, -nan])).sum().backward(); x.grad
        L.cdist(L.tensor([[nan, 1.]]), L.tensor([[1., 2.], [nan, nan]]), p=0)
        x = L.tensor([[inf, 1.]], requires_grad=True); L.cdist(x, L.tensor([[1., 2.], [inf, nan]]), p=0).sum().backward(); x.grad
    """,
    "logaddexp of complex numbers": """
        L.logaddexp(L.tensor([1 + 4j, 100 + 3j]), L.tensor([2 - 1j, 99 - 2j]))
        L.logaddexp(L.tensor([-inf, inf + 1j, complex(-inf, 1)]), L.tensor([1j, 2j, -inf]))
        L.logaddexp(L.tensor([nan + 1j, 1]), L.tensor([1, complex(1, nan)]))
        L.logaddexp(L.tensor([1 + 1j]), L.tensor([2.]))
        x = L.tensor([1 + 1j], requires_grad=True); y = L.tensor([2 - 1j], requires_grad=True); L.logaddexp(x, y).abs().sum().backward(); (x.grad, y.grad)
    """,
    "arange of narrow integers": """
        L.arange(1, 2, .1, dtype=L.int64)
        L.arange(1, 2, .1, dtype=L.int32)
        L.arange(0.5, 3, 1.5, dtype=L.int64)
        L.arange(0.5, 3, 1.5, dtype=L.int32)
        L.arange(0.5, 3.7, dtype=L.int16)
        L.arange(5, 0, -1.5, dtype=L.int8)
        L.arange(0.2, 0.1, dtype=L.int64)
        L.arange(0, 300, 100, dtype=L.int8)
        L.arange(-3, 3, dtype=L.uint8)
        L.arange(0.5, 3, 1.5, out=L.empty(0, dtype=L.int8))
    """,
    "range includes its end": """
        L.range(0, 3)
        L.range(0, 1, .25)
        L.range(0, 1, .1)
        L.range(5, 0, -1.5, dtype=L.int16)
        L.range(5, 1, -1)
        L.range(0.5, 3.2, dtype=L.int64)
        L.range(0, 3, dtype=L.bool)
        L.range(0, 3, dtype=L.complex64)
        L.range(0, nan)
        L.range(5, 1)
        L.range(0, 3, requires_grad=True)
        L.range(0, 3, out=L.empty(2, 2))
        L.range(0, 3, out=L.empty(4, dtype=L.bfloat16))
    """,
    "avg_pool1d": """
        L.avg_pool1d(L.arange(8.).view(1, 8), 3, 2, 1, True, False)
        L.avg_pool1d(L.arange(8.).view(1, 8), (3,), stride=())
        L.avg_pool1d(L.arange(8.).view(8), 3)
        L.avg_pool1d(L.arange(8.).view(1, 8), 9)
        L.avg_pool1d(L.arange(8.).view(1, 8), [3, 2])
        L.avg_pool1d(L.ones(1, 0, 8), 3)
        L.nn.AvgPool1d(3, 2, 1)(L.arange(8.).view(1, 8))
        x = L.arange(8.).view(1, 8).requires_grad_(); L.avg_pool1d(x, 3, 2, 1, True, False).sum().backward(); x.grad
    """,
    "layouts of views without elements": """
        [L.ones(s).t().stride() for s in ((0, 3), (3, 0), (0, 0), (0, 1))]
        [L.ones(s).permute(2, 1, 0).stride() for s in ((2, 0, 4), (0, 2, 3), (2, 3, 0))]
        [L.ones(s).unsqueeze(0).stride() for s in ((0,), (0, 3), (3, 0), (2, 0, 4))]
        [L.ones(s).expand(2, *s).stride() for s in ((0,), (0, 3), (3, 0), (2, 0, 4))]
        [L.ones(s).diagonal().stride() for s in ((0, 3), (3, 0), (2, 0, 4))]
        [L.ones(s).split(1, -1)[0].stride() for s in ((0, 3), (2, 0, 4))]
        [L.ones(s).unfold(0, 0, 1).stride() for s in ((0, 3), (3, 0), (2, 0))]
        x = L.ones(3, 4)[:, 1:1]; (x.stride(), x.storage_offset(), x.is_contiguous())
        x = L.ones(3, 4).t()[:, 1:1].unsqueeze(0).transpose(0, 1); (x.stride(), x.storage_offset())
        x = L.ones(0, 3, requires_grad=True).unbind(1)[2]; (x.stride(), x.storage_offset())
        x = L.ones(2, 0, dtype=L.complex64); (x.real.stride(), L.view_as_real(x).stride())
        L.ones(0, 4).as_strided((0, 4), (7, 3)).stride()
        L.ones(2, 0).view(0, 5).stride()
        L.func.vmap(lambda x: x.t())(L.ones(2, 0, 3)).stride()
    """,
    "linearize of other outputs": """
        L.func.linearize(lambda x: (x * x, 1), L.ones(2))[0]
        L.func.linearize(lambda x: (x * x, 1), L.ones(2))[1](L.ones(2))
        L.func.linearize(lambda x: (x > 0, x * 3), L.ones(2))[1](L.ones(2))
        L.func.linearize(lambda x: None, L.ones(2))[1](L.ones(2))
        L.func.linearize(lambda x: (), L.ones(2))[1](L.ones(2))
    """,
}


def run(text: str) -> Any:
    *before, last = text.split("; ")

    def program(library: Any) -> Any:
        names = {"L": library, "nan": float("nan"), "inf": float("inf")}
        for statement in before:
            exec(statement, names)
        return eval(last, names)

    return program


@pytest.mark.parametrize("topic", PROGRAMS)
def test_programs_give_what_they_give_in_pytorch(torch_oracle: Any, topic: str) -> None:
    for line in PROGRAMS[topic].strip().splitlines():
        program = run(line.strip())
        assert outcome(plugrad, program) == outcome(torch_oracle, program), line.strip()
