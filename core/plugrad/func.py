"""Transforms of functions, as `torch.func` has them: derivatives and batches that nest.

>>> import plugrad
>>> from plugrad.func import grad, vmap
>>> vmap(grad(lambda x: x ** 3))(plugrad.tensor([1., 2.]))
tensor([ 3., 12.])
"""

from plugrad.transforms.func.gradients import grad, grad_and_value, vjp
from plugrad.transforms.vmap import vmap

__all__ = ["grad", "grad_and_value", "vjp", "vmap"]
