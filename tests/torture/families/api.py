"""Public functions, methods, modules and optimizers with right and wrong arguments.

No call may crash, hang, or answer with a message from inside. What PyTorch accepts is accepted, or
refused because it is not implemented.
"""

from __future__ import annotations

import inspect
import random
import re
import warnings
from functools import cache
from typing import Any

import numpy as np

import plugrad
from plugrad.testing.cases import all_cases
from tests.torture import hostile, specs
from tests.torture.calls import Call, judge
from tests.torture.finding import Finding

NAME = "api"
SHARE = 2.0
NEEDS = ("torch",)

_NAMESPACES = (
    *("", "", "", "Tensor", "Tensor", "Tensor", "nn", "nn.functional", "nn.functional", "optim"),
    *("linalg", "special", "func", "autograd", "autograd.functional", "autograd.graph", "amp"),
    *("autograd.forward_ad", "nn.init", "nn.utils", "utils.checkpoint", "utils.data", "random"),
)
# What changes the process, or has no business with arguments.
_LEFT_OUT = re.compile(
    r"set_.*|_.*|show_.*|record_dispatch_trace|seed|initial_seed|Library|impl|define|register_.*|"
    r"custom_op|compile|.*profile.*|.*warn.*|__init_subclass__|__class__|__reduce.*|"
    r"save_on_cpu|enforce_.*|enter_dual_level|exit_dual_level|seed_everything|CheckpointFunction|"
    r"__internal_mypyc_setup|__mypyc.*|__del.*|__dict__|__weakref__|__module__|__doc__|"
    r"__annotations__|__set_name__|.*[mM]ode|Any|Callable|Literal|Strategy|share_memory_|"
    r"__hash__|__sizeof__|__dir__|__subclasshook__|__getstate__|__new__|__init__|__setattr__|"
    r"__getattribute__|__format__|__str__|__repr__|__torch_function__|__plugrad_function__"
)
# plugrad's own on tensors, which are no part of the public API.
_OWN = frozenset(("array", "set_"))


def _public(namespace: str) -> dict[str, Any]:
    try:
        module = hostile.Source(f"lib.{namespace}" if namespace else "lib").make(plugrad)
    except AttributeError:
        return {}
    import torch

    try:
        other = hostile.Source(f"lib.{namespace}" if namespace else "lib").make(torch)
    except AttributeError:
        other = None
    listed = set(getattr(module, "__all__", ()))
    found = {}
    for name in dir(module):
        special = namespace == "Tensor" and name.startswith("__")
        if (_LEFT_OUT.fullmatch(name) and not special) or (special and _SPECIAL.fullmatch(name)):
            continue
        if name in _OWN:
            continue
        if namespace not in ("", "Tensor") and name not in listed and not hasattr(other, name):
            continue
        value = getattr(module, name, None)
        if callable(value) and not inspect.ismodule(value):
            found[name] = value
    return found


_SPECIAL = re.compile(
    r"__(internal_mypyc_setup|mypyc\w+|del\w*|dict|weakref|module|doc|annotations|init\w*|new|class|"
    r"reduce\w*|hash|sizeof|dir|subclasshook|getstate|setattr|getattribute|getattr|format|str|repr|"
    r"torch_function|plugrad_function|set_name|class_getitem|dlpack\w*)__|__internal_mypyc_setup"
)


@cache
def _functions() -> list[list[str]]:
    found = []
    for namespace in _NAMESPACES:
        names = [f"{namespace}.{name}".lstrip(".") for name in _public(namespace)]
        if names:
            found.append(names)
    return found


@cache
def _samples() -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for case in all_cases():
        if "::" not in case.op:
            samples = case.all_samples()
            found.setdefault(case.op, []).extend(samples)
            found.setdefault("Tensor." + case.op.rpartition(".")[2], []).extend(samples)
    return found


@cache
def _most_arguments(path: str) -> int:
    function = hostile.Source(f"lib.{path}").make(plugrad)
    try:
        return min(6, len(inspect.signature(function).parameters))
    except (TypeError, ValueError):
        return 3


def draw(seed: int) -> Call:
    rng = random.Random(seed)
    path = rng.choice(rng.choice(_functions()))
    samples = _samples().get(path)
    if samples and rng.random() < 0.6:
        call = _changed_sample(rng, path, rng.choice(samples))
    else:
        most = _most_arguments(path)
        count = rng.choice((most, rng.randrange(most + 2), rng.randrange(4)))
        args: list[Any] = [hostile.argument(rng) for _ in range(count)]
        kwargs = {}
        if rng.random() < 0.25:
            kwargs[rng.choice(hostile.KEYWORDS)] = hostile.argument(rng)
        call = Call(path, args, kwargs)
    receives = bool(call.args) and (isinstance(call.args[0], specs.Tensor) or rng.random() < 0.03)
    if path.startswith("Tensor.") and not receives:
        call.args[:1] = [hostile.tensor(rng)]
    name = path.rpartition(".")[2]
    makes = (path.startswith(("nn.", "utils.data")) and name[0].isupper()) or "func." in path
    if makes and rng.random() < 0.7:
        call.more = [hostile.argument(rng) for _ in range(rng.choice((1, 1, 1, 2, 3)))]
        call.then = rng.choice((*[".__call__"] * 4, ".load_state_dict", ".to"))
    if path.startswith("optim."):
        if rng.random() < 0.7:
            call.args[:1] = [hostile.Source("[lib.ones(2, requires_grad=True)]")]
        call.then = rng.choice((".step", ".zero_grad", ".load_state_dict", ".add_param_group"))
        call.more = [hostile.argument(rng)] if rng.random() < 0.7 else []
    return call


def _changed_sample(rng: random.Random, path: str, sample: Any) -> Call:
    dtype = rng.choice(("float32", "float32", "float64", "int64", "bool", "complex64", "bfloat16"))
    maker = specs.Specs(dtype, rng.randrange(100))
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        args = list(maker.make(tuple(sample.args)))
        kwargs = dict(maker.make(dict(sample.kwargs)))
    for _ in range(rng.choice((0, 1, 1, 1, 2))):
        which = rng.random()
        if which < 0.6 and args:
            args[rng.randrange(len(args))] = hostile.argument(rng)
        elif which < 0.7 and args:
            del args[rng.randrange(len(args))]
        elif which < 0.8:
            args.insert(rng.randrange(len(args) + 1), hostile.argument(rng))
        elif which < 0.9 and kwargs:
            kwargs[rng.choice(list(kwargs))] = hostile.argument(rng)
        else:
            kwargs[rng.choice(hostile.KEYWORDS)] = hostile.argument(rng)
    return Call(path, args, kwargs)


def prepare() -> None:
    """Load what is loaded at the first use."""
    for name in ("nn", "optim"):
        getattr(plugrad, name)
    plugrad.ones(2).sum()
    _functions()
    _samples()


def program_of(seed: int) -> str:
    return draw(seed).program()


def run_case(seed: int) -> Finding | None:
    return judge(NAME, draw(seed))
