"""Operators by their handles, `ops.plugrad.*`, with right and wrong arguments."""

from __future__ import annotations

import random
import warnings
from functools import cache
from typing import Any

import numpy as np

import plugrad
from plugrad.dispatch.operator import all_operators
from plugrad.testing.cases import all_cases
from tests.torture import hostile, specs
from tests.torture.calls import Call, judge
from tests.torture.finding import Finding

NAME = "handles"
NEEDS = ("torch",)

# By the type that a schema names: expressions that fit.
_FITTING: dict[str, tuple[str, ...]] = {
    "int": ("0", "1", "-1", "2", "True"),
    "SymInt": ("0", "1", "-1", "2"),
    "float": ("0.5", "1", "-1.5", "float('nan')"),
    "bool": ("True", "False"),
    "str": ('"mean"', '"sum"', '"none"', '"floor"', '"ij->ji"', '"amax"'),
    "Scalar": ("2", "0.5", "True", "1j", "-1"),
    "ScalarType": ("lib.float32", "lib.float64", "lib.int64", "lib.bool", "lib.complex64"),
    "Device": ('"cpu"', 'lib.device("cpu")', '"cpu:0"'),
    "Generator": ("None", "lib.Generator()"),
    "Layout": ("None", "lib.strided"),
    "MemoryFormat": ("None", "lib.contiguous_format"),
}
_LISTS: dict[str, tuple[str, ...]] = {
    "int": ("(2, 3)", "[0]", "[1, 1]", "(0, 1)", "[]", "(-1,)", "2", "[2, 2, 2]"),
    "Tensor": ("[lib.ones(2, 3), lib.ones(2, 3)]", "(lib.ones(3),)", "[]", "[lib.ones(2, 3)] * 2"),
    "float": ("[0.5, 1.0]", "(2.0,)", "[]"),
    "bool": ("[True, False]", "[True, True, True]"),
    "Scalar": ("[1, 2.0]",),
}


@cache
def _handles() -> list[tuple[str, Any]]:
    found = []
    for operator in all_operators():
        namespace, _, name = str(operator.name).rpartition("::")
        if (namespace or "plugrad") == "plugrad":
            base, _, overload = name.partition(".")
            found.append((f"{base}.{overload or 'default'}", operator.schema))
    return sorted(found, key=lambda pair: pair[0])


@cache
def _samples() -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for case in all_cases():
        if "::" not in case.op:
            found.setdefault(case.op.rpartition(".")[2], []).extend(case.all_samples())
    return found


def _argument(rng: random.Random, argument: Any) -> Any:
    text = str(argument.type)
    if text.endswith("?") and rng.random() < 0.4:
        return hostile.Source("None")
    kind = text.rstrip("?").partition("(")[0]
    if "[" in text:
        return hostile.Source(rng.choice(_LISTS.get(kind.partition("[")[0], ("[]",))))
    if kind == "Tensor":
        return hostile.tensor(rng)
    return hostile.Source(rng.choice(_FITTING.get(kind, ("None",))))


def draw(seed: int) -> Call:
    rng = random.Random(seed)
    name, schema = rng.choice(_handles())
    base, _, overload = name.partition(".")
    path = f"ops.plugrad.{base}" + (f".{overload}" if rng.random() < 0.6 else "")
    samples = _samples().get(base.rstrip("_"))
    if samples and rng.random() < 0.4:
        sample = rng.choice(samples)
        maker = specs.Specs(rng.choice(("float32", "float64", "int64", "complex64")), 1)
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            args = list(maker.make(tuple(sample.args)))
            kwargs = dict(maker.make(dict(sample.kwargs)))
    else:
        args = [_argument(rng, a) for a in schema.arguments if not a.kwarg_only]
        kwargs = {
            a.name: _argument(rng, a)
            for a in schema.arguments
            if a.kwarg_only and rng.random() < 0.4
        }
    for _ in range(rng.choice((0, 0, 1, 1, 2))):
        if args and rng.random() < 0.7:
            args[rng.randrange(len(args))] = hostile.argument(rng)
        elif args and rng.random() < 0.4:
            args.pop()
        elif rng.random() < 0.5:
            args.append(hostile.argument(rng))
        else:
            kwargs[rng.choice(hostile.KEYWORDS)] = hostile.argument(rng)
    return Call(path, args, kwargs)


def prepare() -> None:
    """Load what is loaded at the first use."""
    plugrad.ones(2).sum()
    _handles()
    _samples()


def program_of(seed: int) -> str:
    return draw(seed).program()


def run_case(seed: int) -> Finding | None:
    call = draw(seed)
    return judge(NAME, call, call.path.replace("ops.plugrad.", "ops.aten."), _program)


def _program(text: str) -> str:
    return text.replace(
        "lib.ops.plugrad.", "(lib.ops.plugrad if lib is plugrad else lib.ops.aten)."
    )
