"""Transforms of functions, as `torch.func` has them: derivatives and batches that nest.

>>> import plugrad
>>> from plugrad.func import grad, vmap
>>> vmap(grad(lambda x: x ** 3))(plugrad.tensor([1., 2.]))
tensor([ 3., 12.])
"""

from plugrad.transforms.func.forward import hessian, jacfwd, jvp, linearize
from plugrad.transforms.func.functionalization import functionalize
from plugrad.transforms.func.gradients import grad, grad_and_value, vjp
from plugrad.transforms.func.jacobians import jacrev
from plugrad.transforms.func.stateful import (
    functional_call,
    replace_all_batch_norm_modules_,
    stack_module_state,
)
from plugrad.transforms.vmap import vmap

__all__ = [
    "functional_call", "functionalize", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev",
    "jvp", "linearize", "replace_all_batch_norm_modules_", "stack_module_state", "vjp", "vmap",
]  # fmt: skip
