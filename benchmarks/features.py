"""Features of libraries, as snippets to run: the table of docs/comparison.md."""

from __future__ import annotations

from benchmarks.measure import PLUGRAD, TORCH

JAX = "JAX"
HIPS = "HIPS autograd"
MYGRAD = "MyGrad"
TINYGRAD = "tinygrad"

# The names that a snippet may use.
PREPARE = {
    PLUGRAD: "import plugrad as torch",
    TORCH: "import torch",
    JAX: "import jax, jax.numpy as np",
    HIPS: "import autograd, autograd.numpy as np",
    MYGRAD: "import mygrad, numpy as np",
    # tinygrad's interpreter: features do not depend on a compiler.
    TINYGRAD: "import os; os.environ['DEV'] = 'PYTHON'\nfrom tinygrad import Tensor, TinyJit",
}


def both(snippet: str) -> dict[str, str]:
    """A snippet in PyTorch's names."""
    return {PLUGRAD: snippet, TORCH: snippet}


# For libraries that need a compiler that most machines lack.
NOT_TRIED = "raise NotImplementedError"

# Libraries without a snippet lack the feature.
FEATURES: dict[str, dict[str, str]] = {
    "gradients, recorded while the program runs": {
        **both("""
x = torch.tensor(3.0, requires_grad=True)
y = x
while y < 100:
    y = y * x
y.backward()
assert x.grad == 5 * 3.0 ** 4
"""),
        JAX: """
def f(x):
    y = x
    while y < 100:
        y = y * x
    return y
assert jax.grad(f)(3.0) == 5 * 3.0 ** 4
""",
        HIPS: """
def f(x):
    y = x
    while y < 100:
        y = y * x
    return y
assert autograd.grad(f)(3.0) == 5 * 3.0 ** 4
""",
        MYGRAD: """
x = mygrad.tensor(3.0)
y = x
while y < 100:
    y = y * x
y.backward()
assert x.grad == 5 * 3.0 ** 4
""",
        TINYGRAD: """
x = Tensor([3.0])
y = x
while y.tolist()[0] < 100:
    y = y * x
assert y.sum().gradient(x)[0].tolist() == [5 * 3.0 ** 4]
""",
    },
    "gradients of gradients": {
        **both("""
x = torch.tensor(2.0, requires_grad=True)
(g,) = torch.autograd.grad(x ** 3, x, create_graph=True)
g.backward()
assert x.grad == 12
"""),
        JAX: "assert jax.grad(jax.grad(lambda x: x ** 3))(2.0) == 12",
        HIPS: "assert autograd.grad(autograd.grad(lambda x: x ** 3))(2.0) == 12",
        TINYGRAD: """
x = Tensor([2.0])
first = (x * x * x).sum().gradient(x)[0]
assert first.sum().gradient(x)[0].tolist() == [12]
""",
    },
    "forward mode": {
        **both("""
_, tangent = torch.func.jvp(lambda x: x ** 3, (torch.tensor(2.0),), (torch.tensor(1.0),))
assert tangent == 12
"""),
        JAX: "assert jax.jvp(lambda x: x ** 3, (2.0,), (1.0,))[1] == 12",
        HIPS: """
from autograd.core import make_jvp
assert make_jvp(lambda x: x ** 3, 2.0)(1.0)[1] == 12
""",
    },
    "vmap": {
        **both("assert torch.vmap(torch.dot)(torch.ones(2, 3), torch.ones(2, 3)).shape == (2,)"),
        JAX: "assert jax.vmap(np.dot)(np.ones((2, 3)), np.ones((2, 3))).shape == (2,)",
    },
    "a step compiled as a whole": {
        PLUGRAD: """
x = torch.ones(2, requires_grad=True)
@torch.compile
def step(x):
    x.grad = None
    loss = (x.sin() + 1).sum()
    loss.backward()
    return loss
for _ in range(4):
    step(x)
assert step.cache_info().hits > 0
assert abs(float(x.grad[0]) - 0.5403) < 1e-4
""",
        TORCH: """
f = torch.compile(lambda x: x.sin() + 1, backend='eager')
assert f(torch.zeros(2)).sum() == 2
""",
        JAX: "assert jax.jit(lambda x: np.sin(x) + 1)(np.zeros(2)).sum() == 2",
        TINYGRAD: """
f = TinyJit(lambda x: (x + 1).realize())
for _ in range(3):
    out = f(Tensor.zeros(2).contiguous().realize())
assert out.sum().item() == 2
""",
    },
    "sparse tensors": {
        TORCH: "assert torch.eye(3).to_sparse().is_sparse",
        JAX: """
from jax.experimental.sparse import BCOO
assert BCOO.fromdense(np.eye(3)).nse == 3
""",
    },
    "writes into tensors and views, with gradients": {
        **both("""
x = torch.ones(3, requires_grad=True)
y = x * 2
y[0].mul_(5)
y.sum().backward()
assert x.grad.tolist() == [10, 2, 2]
"""),
        MYGRAD: """
x = mygrad.ones(3)
y = x * 2
view = y[:1]
view *= 5
y.sum().backward()
assert x.grad.tolist() == [10, 2, 2]
""",
        TINYGRAD: NOT_TRIED,
    },
    "a derivative of your own": {
        **both("""
class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2
    @staticmethod
    def backward(ctx, grad):
        return grad * 7
x = torch.ones(1, requires_grad=True)
Double.apply(x).backward()
assert x.grad == 7
"""),
        JAX: """
@jax.custom_vjp
def double(x):
    return x * 2
double.defvjp(lambda x: (x * 2, None), lambda _, grad: (grad * 7,))
assert jax.grad(double)(1.0) == 7
""",
        HIPS: """
from autograd.extend import defvjp, primitive
double = primitive(lambda x: x * 2)
defvjp(double, lambda out, x: lambda grad: grad * 7)
assert autograd.grad(double)(1.0) == 7
""",
        MYGRAD: """
from mygrad.operation_base import Operation
class Double(Operation):
    def __call__(self, x):
        self.variables = (x,)
        return x.data * 2
    def backward_var(self, grad, index, **kwargs):
        return grad * 7
x = mygrad.tensor(1.0)
x._op(Double, x).backward()
assert x.grad == 7
""",
        TINYGRAD: """
x = Tensor([1.0])
y = x.call(fxn=x.as_param(0) * 2, grad_fxn=lambda grad, call: (grad * 7,))
assert y.sum().gradient(x)[0].tolist() == [7]
""",
    },
    "hooks on tensors and on nodes of the graph": both("""
seen = []
x = torch.ones(1, requires_grad=True)
y = x * 2
y.register_hook(seen.append)
y.grad_fn.register_hook(lambda *_: seen.append('node'))
y.backward()
assert len(seen) == 2
"""),
    "an operator of your own, with its schema, found by name": both("""
@torch.library.custom_op('demo::twice', mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2
assert torch.ops.demo.twice(torch.ones(1)) == 2
"""),
    "a backend of your own, in Python, beside others": {
        PLUGRAD: """
import types
import numpy as np
from plugrad.plugins import Backend, get_manager, hookimpl
class Foo(Backend):
    def __init__(self):
        super().__init__('foo', array_type=np.ndarray)
    def kernels(self):
        return {'mul': np.multiply, 'add': np.add}
plugin = types.ModuleType('plugin')
plugin.plugrad_backends = hookimpl(lambda: [Foo])
plugin.plugrad_backends.__name__ = 'plugrad_backends'
get_manager().register(plugin, 'foo')
x = torch.tensor([3.0], device='foo', requires_grad=True)
(x * x).backward(torch.tensor([1.0], device='foo'))
assert x.grad.tolist() == [6]
"""
    },
}
