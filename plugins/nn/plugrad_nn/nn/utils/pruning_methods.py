"""Methods of pruning: masks of zeros and ones, which are chosen by size, norm or chance."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any, ClassVar

import plugrad
from plugrad import Tensor

__all__ = [
    "BasePruningMethod",
    "CustomFromMask",
    "Identity",
    "L1Unstructured",
    "LnStructured",
    "PruningContainer",
    "RandomStructured",
    "RandomUnstructured",
    "methods_of",
]


class BasePruningMethod(ABC):
    """A method of choosing a mask; a subclass defines `compute_mask`.

    `apply` moves the parameter `name` of a module to `name_orig`, puts the mask into the buffer
    `name_mask`, and computes `name` as their product before each call of the module::

        name_orig (parameter) --+
                                * --> name (tensor)
        name_mask (buffer) -----+

    `PRUNING_TYPE` determines what a second method sees: "unstructured" sees the remaining elements,
    "structured" the remaining channels, "global" everything.

    >>> import plugrad
    >>> from plugrad.nn.utils import prune
    >>> layer = plugrad.nn.Linear(2, 2, bias=False)
    >>> _ = plugrad.nn.init.constant_(layer.weight, 3.0)
    >>> class First(prune.BasePruningMethod):
    ...     PRUNING_TYPE = "unstructured"
    ...     def compute_mask(self, t, default_mask):
    ...         mask = default_mask.clone()
    ...         mask[0] = 0
    ...         return mask
    >>> _ = First.apply(layer, "weight")
    >>> layer.weight.tolist()
    [[0.0, 0.0], [3.0, 3.0]]
    """

    PRUNING_TYPE: ClassVar[str]
    _tensor_name: str | None = None

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, str(self._tensor_name), self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask for `t`, the importance of the elements; 0 where `default_mask` is 0."""

    def apply_mask(self, module: Any) -> Tensor:
        """The parameter times its mask."""
        if self._tensor_name is None:
            raise AssertionError(f"Module {module} has to be pruned")
        original = getattr(module, f"{self._tensor_name}_orig")
        mask = getattr(module, f"{self._tensor_name}_mask")
        found: Tensor = mask.to(original.dtype) * original
        return found

    @classmethod
    def apply(
        cls,
        module: Any,
        name: str,
        *args: Any,
        importance_scores: Tensor | None = None,
        **kwargs: Any,
    ) -> BasePruningMethod:
        """Prunes `module.name`; an existing method is combined with this one.

        Args:
            importance_scores: take these for the elements' importance, not the elements.
            args, kwargs: arguments of the class.
        """
        earlier = [key for key, hook in methods_of(module) if hook._tensor_name == name]
        if len(earlier) > 1:
            raise AssertionError(
                f"Avoid adding multiple pruning hooks to the same tensor {name} of module {module}."
                " Use a PruningContainer."
            )
        made: BasePruningMethod = cls(*args, **kwargs)
        made._tensor_name = name
        if earlier:
            before = module._forward_pre_hooks.pop(earlier[0])
            both = before if isinstance(before, PruningContainer) else PruningContainer(before)
            both.add_pruning_method(made)
            made = both
        original = getattr(module, name)
        scores = original if importance_scores is None else importance_scores
        if scores.shape != original.shape:
            raise AssertionError(
                "importance_scores should have the same shape as parameter "
                f"{name} of {module}, got {scores.shape} vs {original.shape}"
            )
        if earlier:
            mask = getattr(module, f"{name}_mask").detach().clone()
        else:
            mask = plugrad.ones_like(original)
        with plugrad.no_grad():
            # It may raise: the module has not changed yet.
            mask = made.compute_mask(scores, default_mask=mask)
        if not earlier:
            del module._parameters[name]
            module.register_parameter(f"{name}_orig", original)
        module.register_buffer(f"{name}_mask", mask)
        setattr(module, name, made.apply_mask(module))
        module.register_forward_pre_hook(made)
        return made

    def prune(
        self,
        t: Tensor,
        default_mask: Tensor | None = None,
        importance_scores: Tensor | None = None,
    ) -> Tensor:
        """A tensor times the mask for it, without a module."""
        scores = t if importance_scores is None else importance_scores
        if scores.shape != t.shape:
            raise AssertionError(
                "importance_scores should have the same shape as tensor t, "
                f"got {scores.shape} vs {t.shape}"
            )
        mask = plugrad.ones_like(t) if default_mask is None else default_mask
        return t * self.compute_mask(scores, default_mask=mask)

    def remove(self, module: Any) -> None:
        """Makes the pruned tensor the parameter, for good; the hook stays."""
        name = self._tensor_name
        if name is None:
            raise AssertionError(f"Module {module} has to be pruned before pruning can be removed")
        with plugrad.no_grad():
            weight = self.apply_mask(module)
        if hasattr(module, name):
            delattr(module, name)
        original = module._parameters.pop(f"{name}_orig")
        original.data = weight.detach()
        del module._buffers[f"{name}_mask"]
        setattr(module, name, original)


def methods_of(module: Any) -> Iterator[tuple[int, BasePruningMethod]]:
    for key, hook in list(module._forward_pre_hooks.items()):
        if isinstance(hook, BasePruningMethod):
            yield key, hook


class PruningContainer(BasePruningMethod):
    """Several methods for one parameter, one after the other.

    Args:
        args: the methods.

    >>> import plugrad
    >>> from plugrad.nn.utils import prune
    >>> layer = plugrad.nn.Linear(2, 2, bias=False)
    >>> _ = plugrad.nn.init.constant_(layer.weight, 3.0)
    >>> for dim in (0, 1):
    ...     _ = prune.ln_structured(layer, "weight", 1, 2, dim)
    >>> type(next(iter(layer._forward_pre_hooks.values()))).__name__
    'PruningContainer'
    """

    def __init__(self, *args: BasePruningMethod) -> None:
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        if len(args) == 1:
            self._tensor_name = args[0]._tensor_name
        for method in args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: BasePruningMethod) -> None:
        """Adds a method at the end; it must be for the same parameter."""
        if not isinstance(method, BasePruningMethod):
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if self._tensor_name != method._tensor_name:
            raise ValueError(
                "Can only add pruning methods acting on the parameter named "
                f"'{self._tensor_name}' to PruningContainer {self}. Found '{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[BasePruningMethod]:
        return iter(self._pruning_methods)

    def __getitem__(self, idx: int) -> BasePruningMethod:
        return self._pruning_methods[idx]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask after the last method is applied to `default_mask`."""
        method: Any = self._pruning_methods[-1]
        left: Any
        if method.PRUNING_TYPE == "unstructured":
            left = default_mask == 1
        elif method.PRUNING_TYPE == "structured":
            if not hasattr(method, "dim"):
                raise AttributeError(
                    'Pruning methods of PRUNING_TYPE "structured" need to have the attribute '
                    "`dim` defined."
                )
            dim = method.dim + t.dim() if method.dim < 0 else method.dim
            if dim < 0:
                raise IndexError(f"Index is out of bounds for tensor with dimensions {t.dim()}")
            others = [axis for axis in range(t.dim()) if axis != dim]
            left = (*[slice(None)] * dim, default_mask.sum(dim=others) != 0)
        elif method.PRUNING_TYPE == "global":
            left = ...
        else:
            raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
        mask = default_mask.to(t.dtype).clone()
        mask[left] = method.compute_mask(t[left], default_mask=default_mask[left]).to(mask.dtype)
        return mask


class Identity(BasePruningMethod):
    """Prunes nothing, but has the mask.

    >>> import plugrad
    >>> from plugrad.nn.utils import prune
    >>> layer = plugrad.nn.Linear(2, 1)
    >>> prune.Identity.apply(layer, "weight").PRUNING_TYPE
    'unstructured'
    >>> layer.weight_mask
    tensor([[1., 1.]])
    """

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        return default_mask


class _ByAmount(BasePruningMethod):
    """Args: amount, how many elements or channels, or as a float in [0, 1] which share of them."""

    amount: float

    def __init__(self, amount: float) -> None:
        if not isinstance(amount, Real):
            raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
        if amount < 0 or (not isinstance(amount, Integral) and amount > 1):
            raise ValueError(
                f"amount={amount} should either be a float in the range [0, 1] or a non-negative "
                "integer"
            )
        self.amount = amount

    def _count(self, size: int) -> int:
        if not isinstance(self.amount, Integral):
            return round(self.amount * size)
        if int(self.amount) > size:
            raise ValueError(
                f"amount={self.amount} should be smaller than the number of parameters to "
                f"prune={size}"
            )
        return int(self.amount)


class _Unstructured(_ByAmount):
    PRUNING_TYPE = "unstructured"

    def _keys(self, t: Tensor) -> Tensor:
        """The elements with the least of these go."""
        raise NotImplementedError

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        count = self._count(t.numel())
        if not count:
            return default_mask.clone()
        lost = plugrad.topk(self._keys(t).reshape(-1), count, largest=False).indices
        return default_mask.reshape(-1).index_fill(0, lost, 0).reshape(default_mask.shape)


class RandomUnstructured(_Unstructured):
    """Prunes elements at random; `amount` is a number of them or a share.

    Args:
        amount: how many, or as a float in [0, 1] which share.

    >>> import plugrad
    >>> from plugrad.nn.utils import prune
    >>> layer = plugrad.nn.Linear(2, 2, bias=False)
    >>> _ = plugrad.nn.init.constant_(layer.weight, 3.0)
    >>> _ = prune.RandomUnstructured.apply(layer, "weight", 1)
    >>> layer.weight.count_nonzero().item()
    3
    """

    def _keys(self, t: Tensor) -> Tensor:
        return -plugrad.rand_like(t)


class L1Unstructured(_Unstructured):
    """Prunes the elements of least magnitude; `amount` is a number of them or a share.

    Args:
        amount: how many, or as a float in [0, 1] which share.

    >>> import plugrad
    >>> from plugrad.nn.utils import prune
    >>> layer = plugrad.nn.Linear(2, 2, bias=False)
    >>> weight = plugrad.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> _ = layer.load_state_dict({"weight": weight})
    >>> _ = prune.L1Unstructured.apply(layer, "weight", 1)
    >>> layer.weight.tolist()
    [[0.0, 2.0], [3.0, 4.0]]
    """

    def _keys(self, t: Tensor) -> Tensor:
        return t.abs()


class _Structured(_ByAmount):
    """Args: dim, the dimension of the channels."""

    PRUNING_TYPE = "structured"
    dim: int

    def _kept(self, t: Tensor, channels: int, lost: int) -> Tensor:
        """Which channels stay: bool (channels)."""
        raise NotImplementedError

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        if t.dim() <= 1:
            raise ValueError(
                "Structured pruning can only be applied to multidimensional tensors. Found tensor "
                f"of shape {t.shape} with {t.dim()} dims"
            )
        if self.dim >= t.dim():
            raise IndexError(f"Invalid index {self.dim} for tensor of size {t.shape}")
        channels = t.shape[self.dim]
        lost = self._count(channels)
        if not lost:
            return default_mask
        shape = [1] * t.dim()
        shape[self.dim] = channels
        return default_mask.to(t.dtype) * self._kept(t, channels, lost).reshape(shape)


class RandomStructured(_Structured):
    """Prunes channels at random; `amount` is a number of them or a share.

    Args:
        amount: how many, or as a float in [0, 1] which share.
        dim: the dimension of the channels.

    >>> import plugrad
    >>> from plugrad.nn.utils import prune
    >>> layer = plugrad.nn.Linear(2, 2, bias=False)
    >>> _ = plugrad.nn.init.constant_(layer.weight, 3.0)
    >>> _ = prune.RandomStructured.apply(layer, "weight", 1, dim=0)
    >>> layer.weight.count_nonzero().item()
    2
    """

    def __init__(self, amount: float, dim: int = -1) -> None:
        super().__init__(amount)
        self.dim = dim

    def _kept(self, t: Tensor, channels: int, lost: int) -> Tensor:
        drawn = plugrad.rand(channels)
        return (drawn > plugrad.kthvalue(drawn, lost).values).to(t.device)


class LnStructured(_Structured):
    """Prunes the channels of least n-norm; `amount` is a number of them or a share.

    Args:
        amount: how many, or as a float in [0, 1] which share.
        n: which norm, as for `plugrad.norm`.
        dim: the dimension of the channels.

    >>> import plugrad
    >>> from plugrad.nn.utils import prune
    >>> layer = plugrad.nn.Linear(2, 2, bias=False)
    >>> weight = plugrad.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> _ = layer.load_state_dict({"weight": weight})
    >>> _ = prune.LnStructured.apply(layer, "weight", 1, 2, dim=0)
    >>> layer.weight.tolist()
    [[0.0, 0.0], [3.0, 4.0]]
    """

    def __init__(self, amount: float, n: Any, dim: int = -1) -> None:
        super().__init__(amount)
        self.n = n
        self.dim = dim

    def _kept(self, t: Tensor, channels: int, lost: int) -> Tensor:
        others = [axis for axis in range(t.dim()) if axis != self.dim % t.dim()]
        norms = t.norm(self.n, dim=others)
        best = plugrad.topk(norms, channels - lost).indices
        return plugrad.zeros_like(norms, dtype=plugrad.bool).index_fill(0, best, True)


class CustomFromMask(BasePruningMethod):
    """Prunes by a given mask.

    Args:
        mask: ones and zeros, in the shape of the parameter.

    >>> import plugrad
    >>> from plugrad.nn.utils import prune
    >>> layer = plugrad.nn.Linear(2, 2, bias=False)
    >>> weight = plugrad.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> _ = layer.load_state_dict({"weight": weight})
    >>> _ = prune.CustomFromMask.apply(layer, "weight", plugrad.eye(2))
    >>> layer.weight.tolist()
    [[1.0, 0.0], [0.0, 4.0]]
    """

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        if default_mask.shape != self.mask.shape:
            raise AssertionError(
                f"default_mask shape {default_mask.shape} must match self.mask shape "
                f"{self.mask.shape}"
            )
        return default_mask * self.mask.to(default_mask.dtype)
