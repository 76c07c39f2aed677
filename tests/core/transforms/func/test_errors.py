"""What transforms refuse, and in which words. Oracle: PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

import plugrad
from tests.core.transforms.func.outcomes import outcome

OUTPUTS: dict[str, Callable[[Any, Any], Any]] = {
    "None": lambda lib, x: None,
    "a number": lambda lib, x: 3,
    "an empty tuple": lambda lib, x: (),
    "a tensor and a number": lambda lib, x: (x, 3),
    "integers": lambda lib, x: x.long(),
    "one element in a tuple": lambda lib, x: (x.sum(),),
    "several elements": lambda lib, x: x,
    "complex": lambda lib, x: x * 1j,
    "a constant": lambda lib, x: lib.ones(2),
}
TRANSFORMS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "grad": lambda lib, f, x: lib.func.grad(f)(x),
    "grad_and_value": lambda lib, f, x: lib.func.grad_and_value(f)(x),
    "grad with aux": lambda lib, f, x: lib.func.grad(f, has_aux=True)(x),
    "vjp": lambda lib, f, x: lib.func.vjp(f, x)[0],
    "jvp": lambda lib, f, x: lib.func.jvp(f, (x,), (x,)),
    "jvp with aux": lambda lib, f, x: lib.func.jvp(f, (x,), (x,), has_aux=True),
    "jacrev": lambda lib, f, x: lib.func.jacrev(f)(x),
    "jacfwd": lambda lib, f, x: lib.func.jacfwd(f)(x),
    "hessian": lambda lib, f, x: lib.func.hessian(f)(x),
}


@pytest.mark.parametrize("returned", OUTPUTS)
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_outputs(torch_oracle: ModuleType, transform: str, returned: str) -> None:
    def program(lib: Any) -> Any:
        return TRANSFORMS[transform](lib, lambda x: OUTPUTS[returned](lib, x), lib.ones(3))

    assert outcome(plugrad, program) == outcome(torch_oracle, program)


def packed(lib: Any) -> Any:
    return lib.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t)


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("inside", [True, False])
def test_hooks_on_saved_tensors(torch_oracle: ModuleType, transform: str, inside: bool) -> None:
    def program(lib: Any) -> Any:
        def function(x: Any) -> Any:
            if not inside:
                return (x * x).sum()
            with packed(lib):
                return (x * x).sum()

        if inside:
            return TRANSFORMS[transform](lib, function, lib.ones(3))
        with packed(lib):
            return TRANSFORMS[transform](lib, function, lib.ones(3))

    assert outcome(plugrad, program) == outcome(torch_oracle, program)
    # Nothing of the refusal stays.
    with packed(plugrad):
        pass


def retained(lib: Any, x: Any) -> Any:
    y = x * x
    y.retain_grad()
    return y.sum()


CALLS: dict[str, Callable[[Any], Any]] = {
    "retain_grad in grad": lambda lib: lib.func.grad(lambda x: retained(lib, x))(lib.ones(3)),
    "retain_grad in vjp": lambda lib: lib.func.vjp(lambda x: retained(lib, x), lib.ones(3)),
    "retain_grad in jvp": lambda lib: lib.func.jvp(
        lambda x: retained(lib, x), (lib.ones(3),), (lib.ones(3),)
    ),
    "requires_grad_ in grad": lambda lib: lib.func.grad(lambda x: x.requires_grad_().sum())(
        lib.ones(3)
    ),
    "a complex input of jacrev": lambda lib: lib.func.jacrev(lambda x: x * x)(lib.ones(2) * 1j),
    "a complex input of jacfwd": lambda lib: lib.func.jacfwd(lambda x, y: x * x)(
        lib.ones(2), lib.ones(2) * 1j
    ),
    "integers in jvp": lambda lib: lib.func.jvp(lambda x: x, (lib.ones(2).long(),), (lib.ones(2),)),
    "an integer tangent": lambda lib: lib.func.jvp(
        lambda x: x, (lib.ones(2),), (lib.ones(2).long(),)
    ),
    "a number in jvp": lambda lib: lib.func.jvp(lambda x: x, (3.0,), (lib.ones(2),)),
    "a number as tangent": lambda lib: lib.func.jvp(lambda x: x, (lib.ones(2),), (3.0,)),
    "None beside the output of vjp": lambda lib: lib.func.vjp(
        lambda x: (x, None), lib.ones(2), has_aux=True
    ),
    "argnums with a str": lambda lib: lib.func.grad(lambda x, y: x.sum(), argnums=(0, "1"))(
        lib.ones(2), lib.ones(2)
    ),
    "vjp of a second time": lambda lib: [
        call(lib.ones(2), retain_graph=keep, create_graph=False)
        for call in [lib.func.vjp(lambda x: x**2, lib.ones(2))[1]]
        for keep in (True, False, True)
    ],
}


@pytest.mark.parametrize("call", CALLS)
def test_calls(torch_oracle: ModuleType, call: str) -> None:
    expected = outcome(torch_oracle, CALLS[call])
    assert isinstance(expected, tuple), "PyTorch refuses it"
    assert outcome(plugrad, CALLS[call]) == expected
