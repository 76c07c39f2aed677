"""Parametrizations: a parameter of a module becomes a function of other parameters."""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import plugrad
from plugrad import Tensor
from plugrad.plugins.arguments import explains
from plugrad_nn.nn.container import ModuleDict, ModuleList
from plugrad_nn.nn.module import Module
from plugrad_nn.nn.parameter import Parameter

__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "transfer_parametrizations_and_params",
    "type_before_parametrizations",
]


class _Cache(threading.local):
    """Parametrized tensors cached in the thread's `with cached()` blocks."""

    depth = 0

    def __init__(self) -> None:
        self.tensors: dict[tuple[int, str], Tensor] = {}


_CACHE = _Cache()


@contextmanager
def cached() -> Iterator[None]:
    """A block in which each parametrized tensor is computed once. Its originals must not change
    meanwhile.

    >>> import plugrad
    >>> from plugrad.nn.utils import parametrizations, parametrize
    >>> layer = parametrizations.orthogonal(plugrad.nn.Linear(2, 2))
    >>> with parametrize.cached():
    ...     layer.weight is layer.weight
    True
    """
    _CACHE.depth += 1
    try:
        yield
    finally:
        _CACHE.depth -= 1
        if not _CACHE.depth:
            _CACHE.tensors.clear()


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, one after the other, and the tensors they start from.

    Those are `original`, or `original0`, `original1`, ... where the `right_inverse` of a
    parametrization gives a sequence. `register_parametrization` makes it.

    Args:
        modules: the parametrizations.
        original: the original tensor.
        unsafe: do not check that shape and dtype stay.

    >>> import plugrad
    >>> layer = plugrad.nn.utils.parametrizations.weight_norm(plugrad.nn.Linear(2, 3))
    >>> chain = layer.parametrizations.weight
    >>> type(chain).__name__, len(chain)
    ('ParametrizationList', 1)
    """

    def __init__(self, modules: Sequence[Module], original: Tensor, unsafe: bool = False) -> None:
        if not modules:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        shape, dtype = original.shape, original.dtype
        start: Any = original
        with plugrad.no_grad():
            for module in reversed(list(self)):
                if hasattr(module, "right_inverse"):
                    try:
                        start = module.right_inverse(start)
                    except NotImplementedError:
                        # It uses the current tensor as its starting value.
                        continue
        if not isinstance(start, Tensor | Sequence):
            raise ValueError(
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                f"Got {type(start).__name__}"
            )
        self.is_tensor = isinstance(start, Tensor)
        self.ntensors = 1 if self.is_tensor else len(start)
        if isinstance(start, Tensor):
            for what in ("dtype", "device"):
                was, became = getattr(original, what), getattr(start, what)
                if was != became:
                    raise ValueError(
                        f"When `right_inverse` outputs one tensor, it may not change the {what}.\n"
                        f"original.{what}: {was}\nright_inverse(original).{what}: {became}"
                    )
            # The object stays, so that optimisers keep it.
            original.data = start.detach()
            _register(self, "original", original)
        else:
            for place, part in enumerate(start):
                if not isinstance(part, Tensor):
                    raise ValueError(
                        "'right_inverse' must return a Tensor or a Sequence of tensors (list, "
                        f"tuple...). Got element {place} of the sequence with type "
                        f"{type(part).__name__}."
                    )
                made = part.detach()
                if isinstance(original, Parameter):
                    made = Parameter(made, original.requires_grad)
                _register(self, f"original{place}", made)
        if not unsafe:
            _check(
                self(),
                shape,
                dtype,
                "Registering a parametrization may not change the {} of the tensor, unless "
                "`unsafe` flag is enabled.\nunparametrized {}: {}\nparametrized {}: {}",
            )

    def _originals(self) -> list[Tensor]:
        if self.is_tensor:
            return [self.original]
        return [getattr(self, f"original{place}") for place in range(self.ntensors)]

    def forward(self) -> Any:
        """The parametrized tensor."""
        first, *others = self
        result = first(*self._originals())
        for module in others:
            result = module(result)
        return result

    def right_inverse(self, value: Any) -> None:
        """Makes the originals such that the parametrized tensor is `value`.

        RuntimeError if a parametrization has no `right_inverse`; ValueError if its result does not
        fit the originals.

        >>> import plugrad
        >>> from plugrad.nn.utils import parametrize
        >>> class Doubled(plugrad.nn.Module):
        ...     def forward(self, x):
        ...         return 2 * x
        ...     def right_inverse(self, x):
        ...         return x / 2
        >>> layer = plugrad.nn.Linear(2, 1, bias=False)
        >>> _ = parametrize.register_parametrization(layer, "weight", Doubled())
        >>> layer.weight = plugrad.ones(1, 2)
        >>> layer.parametrizations.weight.original.tolist(), layer.weight.tolist()
        ([[0.5, 0.5]], [[1.0, 1.0]])
        """
        with plugrad.no_grad():
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(
                        f"parametrization {type(module).__name__} does not implement right_inverse."
                    )
                value = module.right_inverse(value)
            if self.is_tensor:
                if not isinstance(value, Tensor):
                    raise ValueError(
                        f"`right_inverse` should return a tensor. Got {type(value).__name__}"
                    )
                if value.dtype != self.original.dtype:
                    raise ValueError(
                        f"The tensor returned by `right_inverse` has dtype {value.dtype} while "
                        f"`original` has dtype {self.original.dtype}"
                    )
                self.original.data = value.detach()
                return
            if not isinstance(value, Sequence):
                raise ValueError(
                    "'right_inverse' must return a sequence of tensors. "
                    f"Got {type(value).__name__}."
                )
            if len(value) != self.ntensors:
                raise ValueError(
                    "'right_inverse' must return a sequence of tensors of length "
                    f"{self.ntensors}. Got a sequence of length {len(value)}."
                )
            for place, (part, original) in enumerate(zip(value, self._originals(), strict=True)):
                if part.dtype != original.dtype:
                    raise ValueError(
                        f"Tensor {place} returned by `right_inverse` has dtype {part.dtype} while "
                        f"`original{place}` has dtype {original.dtype}"
                    )
                original.data = part.detach()


def _register(module: Module, name: str, tensor: Any) -> None:
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


def _check(found: Any, shape: Any, dtype: Any, message: str) -> None:
    if not isinstance(found, Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {type(found).__name__}.")
    for what, was in (("dtype", dtype), ("shape", shape)):
        became = getattr(found, what)
        if became != was:
            raise ValueError(message.format(what, what, was, what, became))


@explains
def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Makes `module.tensor_name` the result of `parametrization` on the original tensor.

    The tensor moves to `module.parametrizations.tensor_name.original`. A `right_inverse` of the
    parametrization converts assignments to `module.tensor_name`, and its first value, to the
    original; it may give several tensors. Further parametrizations are applied after existing ones.

    Args:
        module: has the tensor.
        tensor_name: the name of a parameter or buffer there.
        parametrization: a module of one tensor, and of several if `right_inverse` gives several.
        unsafe: do not check that shape and dtype stay.

    Raises:
        ValueError: there is no such parameter or buffer, or the check fails.

    >>> import plugrad
    >>> from plugrad.nn.utils.parametrize import register_parametrization
    >>> class Symmetric(plugrad.nn.Module):
    ...     def forward(self, x):
    ...         return x.triu() + x.triu(1).T
    >>> layer = register_parametrization(plugrad.nn.Linear(3, 3), "weight", Symmetric())
    >>> plugrad.equal(layer.weight, layer.weight.T)
    True
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            _check_next(module, tensor_name, parametrization)
        chain = module.parametrizations[tensor_name]
        chain.append(parametrization)
        chain.unsafe |= unsafe
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        original = getattr(module, tensor_name)
        # Before anything of the module changes: it may raise.
        chain = ParametrizationList([parametrization], original, unsafe=unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            module.__class__ = _parametrized(type(module))
            module.parametrizations = ModuleDict()
        setattr(type(module), tensor_name, _property(tensor_name))
        module.parametrizations[tensor_name] = chain
    else:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element "
            f"with name '{tensor_name}'"
        )
    return module


def _check_next(module: Module, name: str, parametrization: Any) -> None:
    """Whether a further parametrization keeps shape and dtype, there and back."""
    before = getattr(module, name)
    after = parametrization(before)
    _check(
        after,
        before.shape,
        before.dtype,
        "Registering a parametrization may not change the {} of the tensor, unless the `unsafe` "
        f"flag is enabled.\nmodule.{name}.{{}}: {{}}\nparametrization(module.{name}).{{}}: {{}}",
    )
    if not hasattr(parametrization, "right_inverse"):
        return
    try:
        back = parametrization.right_inverse(after)
    except NotImplementedError:
        return
    if not isinstance(back, Tensor):
        raise ValueError(
            f"parametrization.right_inverse must return a tensor. Got: {type(back).__name__}"
        )
    _check(
        back,
        before.shape,
        before.dtype,
        "The tensor returned by parametrization.right_inverse must have the same {} as "
        f"module.{name}, unless the `unsafe` flag is enabled.\nmodule.{name}.{{}}: {{}}\n"
        "returned {}: {}",
    )


def _parametrized(cls: type[Module]) -> type[Module]:
    """A class for one module alone: its parametrized tensors are properties of the class."""

    def deep(self: Module, memo: dict[int, Any]) -> Module:
        # A separate class, because parametrizations of the two are added and removed independently.
        other = _parametrized(type(self).__bases__[0])
        for name in self.parametrizations:
            setattr(other, name, _property(name))
        made: Module = other.__new__(other)
        memo[id(self)] = made
        made.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return made

    def refuse(self: Module) -> Any:
        raise RuntimeError(
            "Serialization of parametrized modules is only supported through state_dict(). See:\n"
            "https://pytorch.org/tutorials/beginner/saving_loading_models.html"
            "#saving-loading-a-general-checkpoint-for-inference-and-or-resuming-training"
        )

    members: dict[str, Any] = {"__getstate__": refuse}
    if not hasattr(cls, "__deepcopy__"):
        members["__deepcopy__"] = deep
    return type(f"Parametrized{cls.__name__}", (cls,), members)


def _property(name: str) -> property:
    def get(self: Module) -> Any:
        chain = self.parametrizations[name]
        if not _CACHE.depth:
            return chain()
        key = (id(self), name)
        if key not in _CACHE.tensors:
            _CACHE.tensors[key] = chain()
        return _CACHE.tensors[key]

    def put(self: Module, value: Any) -> None:
        self.parametrizations[name].right_inverse(value)

    return property(get, put)


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether any tensor of the module, or the one of this name, has parametrizations.

    Args:
        module: the module to inspect.
        tensor_name: which of its tensors; None for any.

    >>> import plugrad
    >>> layer = plugrad.nn.utils.parametrizations.weight_norm(plugrad.nn.Linear(2, 3))
    >>> plugrad.nn.utils.parametrize.is_parametrized(layer, "bias")
    False
    """
    found = getattr(module, "parametrizations", None)
    if not isinstance(found, ModuleDict):
        return False
    return len(found) > 0 if tensor_name is None else tensor_name in found


@explains
def remove_parametrizations(
    module: Module, tensor_name: str, leave_parametrized: bool = True
) -> Module:
    """Makes `tensor_name` a parameter or buffer again.

    Its value is the parametrized one, or with `leave_parametrized=False` the original
    one. ValueError if it has none, or if several originals were to be left.

    Args:
        module: has the tensor.
        tensor_name: of the tensor.
        leave_parametrized: whether its value stays.

    >>> import plugrad
    >>> layer = plugrad.nn.utils.parametrizations.weight_norm(plugrad.nn.Linear(2, 3))
    >>> _ = plugrad.nn.utils.parametrize.remove_parametrizations(layer, "weight")
    >>> sorted(layer.state_dict())
    ['bias', 'weight']
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    chain = module.parametrizations[tensor_name]
    if chain.is_tensor:
        left = chain.original
        if leave_parametrized:
            with plugrad.no_grad():
                left.data = getattr(module, tensor_name).detach()
    elif leave_parametrized:
        left = getattr(module, tensor_name)
        left = Parameter(left.detach()) if left.requires_grad else left
    else:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is "
            "parametrized in terms of a sequence of tensors."
        )
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    _register(module, tensor_name, left)
    if not is_parametrized(module):
        del module.parametrizations
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module: Module) -> type:
    """The class of the module without its parametrizations.

    Args:
        module: with parametrizations or without.

    >>> import plugrad
    >>> layer = plugrad.nn.utils.parametrizations.weight_norm(plugrad.nn.Linear(2, 3))
    >>> plugrad.nn.utils.parametrize.type_before_parametrizations(layer) is plugrad.nn.Linear
    True
    """
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


@explains
def transfer_parametrizations_and_params(
    from_module: Module, to_module: Module, tensor_name: str | None = None
) -> Module:
    """Gives `to_module` the parametrizations and originals of another module, or of one tensor of
    it.

    Args:
        from_module: has the parametrizations.
        to_module: gets them.
        tensor_name: of one tensor; None for all.

    >>> import plugrad
    >>> layer = plugrad.nn.utils.parametrizations.weight_norm(plugrad.nn.Linear(2, 3))
    >>> other = plugrad.nn.Linear(2, 3)
    >>> _ = plugrad.nn.utils.parametrize.transfer_parametrizations_and_params(layer, other)
    >>> plugrad.equal(other.weight, layer.weight)
    True
    """
    if not is_parametrized(from_module):
        return to_module
    names = list(from_module.parametrizations) if tensor_name is None else [tensor_name]
    for name in names:
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name).detach()))
        chain = from_module.parametrizations[name]
        for parametrization in chain:
            register_parametrization(to_module, name, parametrization)
        for original, tensor in [*chain._parameters.items(), *chain._buffers.items()]:
            setattr(to_module.parametrizations[name], original, tensor)
    return to_module
