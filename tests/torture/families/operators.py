"""Every operator with every dtype and layout, as a function, in place and with `out=`."""

from __future__ import annotations

import contextlib
import math
import random
import warnings
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

import plugrad
from plugrad.testing.cases import OpCase, T, all_cases, resolve
from tests.torture import messages, specs
from tests.torture.finding import Finding, counts, oracle
from tests.torture.known.operators import known_difference

NAME = "operators"
SHARE = 2.0
NEEDS = ("torch",)

DTYPES = (
    *("float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8"),
    *("bool", "complex64", "complex128"),
)
LAYOUTS = ("contiguous", "transposed", "expanded", "sliced", "offset")
FORMS = ("function", "function", "method", "inplace", "inplace", "out", "out")
SPECIAL = (math.nan, math.inf, -math.inf, 0.0, 300.0, 60000.0)
NUMBERS = (0, 1, -1, 2, 3, -2, 5, 0.5, -1.5, 2.0, True, None, 100, 1 << 40)
_TOLERANCE = {
    "float64": 1e-7,
    "complex128": 1e-7,
    "float32": 1e-4,
    "complex64": 1e-4,
    "float16": 2e-2,
    "bfloat16": 1e-1,
}
# What is drawn at random has no value to compare.
_RANDOM = (
    *("rand", "bernoulli", "multinomial", "normal", "dropout", "empty", "exponential", "uniform"),
    *("cauchy", "geometric", "poisson", "random", "rrelu", "resize", "new_empty", "set_"),
)


@dataclass
class Call:
    """A call that both libraries can run."""

    op: str
    torch_op: str
    form: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    out: specs.Tensor | None
    on_copy: bool
    case: OpCase
    special: bool = False  # one element is infinite, nan, zero or large

    def expression(self) -> str:
        kwargs = [f"{name}={specs.text(value)}" for name, value in self.kwargs.items()]
        if self.form in ("method", "inplace") or self.op.startswith("Tensor."):
            args = [f"x{i}" for i in range(1, len(self.args))]
            return f"x0.{self.name()}({', '.join([*args, *kwargs])})"
        args = [f"x{i}" for i in range(len(self.args))]
        out = ["out=out"] if self.out else []
        return f"lib.{self.op}({', '.join([*args, *kwargs, *out])})"

    def name(self) -> str:
        name = self.op.rpartition(".")[2].rpartition("::")[2]
        return name + "_" if self.form == "inplace" and not name.endswith("_") else name

    def program(self) -> str:
        lines = ["import plugrad, torch", "for lib in (plugrad, torch):", "    try:"]
        lines += [f"        x{i} = {specs.text(arg)}" for i, arg in enumerate(self.args)]
        if self.form == "inplace" and self.on_copy:
            lines.append("        x0 = x0.clone()")
        if self.out:
            lines.append(f"        out = {specs.text(self.out)}")
        lines.append(f"        y = {self.expression()}")
        if "::" in self.op or self.op != self.torch_op:
            lines[-1] += f"  # torch: {self.torch_op}"
        lines.append("        print(y)")
        lines.append("    except Exception as error:")
        lines.append("        print(type(error).__name__, error)")
        return "\n".join(lines)


@cache
def _cases() -> list[OpCase]:
    import torch

    found = []
    for case in all_cases():
        try:
            resolve(case.torch or case.op, torch)
        except AttributeError:
            continue
        if case.all_samples():
            found.append(case)
    return found


@cache
def _samples(position: int) -> list[Any]:
    return _cases()[position].all_samples()


def draw(seed: int) -> Call:
    rng = random.Random(seed)
    position = rng.randrange(len(_cases()))
    case = _cases()[position]
    sample = rng.choice(_samples(position))
    dtype = rng.choice(DTYPES)
    sizes = _sizes((sample.args, sample.kwargs))
    changed = {rng.choice(sizes): rng.choice((0, 1, 1, 2, 4))} if sizes and _chance(rng, 5) else {}
    mixed, wild = _chance(rng, 4), _chance(rng, 6)
    maker = specs.Specs(dtype, rng.randrange(1000))

    def change(value: Any) -> Any:
        if isinstance(value, T):
            new = replace(
                value,
                strides=rng.choice(LAYOUTS) if _chance(rng, 3) else value.strides,
                requires_grad=value.requires_grad and not _chance(rng, 3),
            )
            if value.values is None and not value.unique:
                new = replace(new, shape=tuple(changed.get(size, size) for size in value.shape))
            if mixed and (value.dtype is None or _chance(rng, 4)):
                new = replace(new, dtype=rng.choice(DTYPES))
            return new
        if type(value) in (list, tuple):
            return type(value)(change(item) for item in value)
        if type(value) in (bool, int, float) and wild and _chance(rng, 3):
            return rng.choice(NUMBERS)
        return value

    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        args = _made(maker, change(tuple(sample.args)))
        kwargs = _made(maker, {key: change(value) for key, value in sample.kwargs.items()})
    if "as_strided" in case.op:
        # Its result is a matter of the memory behind the tensor.
        for tensor in specs.tensors_in(args):
            tensor.layout = "contiguous"
    form = rng.choice(FORMS)
    if case.op.startswith("Tensor.") or "::" in case.op:
        form = "function"
    if form in ("method", "inplace") and not (args and isinstance(args[0], specs.Tensor)):
        form = "function"
    call = Call(case.op, case.torch or case.op, form, args, kwargs, None, _chance(rng, 2), case)
    if form in ("method", "inplace") and not hasattr(plugrad.Tensor, call.name()):
        call.form = "function"
    if _chance(rng, 6):
        _put_special(call, rng)
    return call


def _put_special(call: Call, rng: random.Random) -> None:
    """Make one element infinite, nan, zero or large: it is no business of the others, and what
    squares it in 16 bits overflows."""
    tensors = specs.tensors_in([call.args, call.kwargs])
    held = [t for t in tensors if t.values.dtype.kind in "fc" and t.values.size]
    if held:
        chosen = rng.choice(held)
        chosen.values = np.array(chosen.values, order="C")
        chosen.values.reshape(-1)[rng.randrange(chosen.values.size)] = rng.choice(SPECIAL)
        call.special = True


def _made(maker: specs.Specs, value: Any) -> Any:
    """Arguments; "offset" is a layout of ours only."""
    if isinstance(value, T):
        made: specs.Tensor = maker.make(replace(value, strides="contiguous"))
        made.layout = value.strides
        made.__post_init__()
        return made
    if type(value) in (list, tuple):
        return type(value)(_made(maker, item) for item in value)
    if type(value) is dict:
        return {key: _made(maker, item) for key, item in value.items()}
    return maker.make(value)


def _chance(rng: random.Random, one_in: int) -> bool:
    return rng.random() * one_in < 1.0


def _sizes(value: Any) -> list[int]:
    if isinstance(value, T):
        return list(value.shape) if value.values is None else []
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [size for item in value for size in _sizes(item)]
    return []


@dataclass
class Outcome:
    """What a call did in one library."""

    result: Any = None
    error: BaseException | None = None
    inputs: Any = None
    versions: Any = None
    grads: Any = None
    grad_error: BaseException | None = None


def perform(call: Call, lib: Any) -> Outcome:
    outcome = Outcome()
    mine = lib is plugrad
    args = specs.make(call.args, lib)
    kwargs = specs.make(call.kwargs, lib)
    leaves = [t for t in _tensors((args, kwargs)) if t.requires_grad]
    # A leaf is refused; in place on what was computed is more to the point.
    if call.form == "inplace" and leaves and call.on_copy and leaves[0] is args[0]:
        args = (args[0].clone(), *args[1:])
    out = None
    if call.out is not None:
        # In memory that PyTorch may resize, unlike an array's memory.
        out = call.out.make(lib).detach().clone().requires_grad_(call.out.requires_grad)
    try:
        if call.form in ("method", "inplace"):
            result = getattr(args[0], call.name())(*args[1:], **kwargs)
        elif out is not None:
            result = resolve(call.op if mine else call.torch_op, lib)(*args, **kwargs, out=out)
        else:
            result = resolve(call.op if mine else call.torch_op, lib)(*args, **kwargs)
    except Exception as error:
        outcome.error = error
        return outcome
    try:
        outcome.result = specs.describe(result)
    except (NotImplementedError, RuntimeError, ValueError, MemoryError) as error:
        too_large = isinstance(error, MemoryError) or "allocate memory" in str(error)
        if mine and not too_large and not isinstance(error, NotImplementedError):
            raise
        outcome.error = error  # a result that cannot be read: of a negative size, too large
        return outcome
    outputs = [t for t in _tensors(result) if t.requires_grad and _differentiable(t)]
    if outputs and leaves:
        weights = [_weights(t, lib) for t in outputs]
        try:
            found = lib.autograd.grad(outputs, leaves, weights, allow_unused=True)
            outcome.grads = [None if g is None else specs.describe(g) for g in found]
        except Exception as error:
            outcome.grad_error = error
    with contextlib.suppress(RuntimeError, ValueError):
        # What was left without a proper size cannot be read, in either library.
        outcome.inputs = specs.describe(_tensors((args, kwargs)))
    outcome.versions = [t._version for t in _tensors((args, kwargs))]
    return outcome


def _weights(tensor: Any, lib: Any) -> Any:
    count = math.prod(tensor.shape)
    values = (np.arange(count) % 5 * 0.25 + 0.5).reshape(tuple(tensor.shape))
    return lib.from_numpy(values).to(tensor.dtype)


def _differentiable(tensor: Any) -> bool:
    return bool(tensor.is_floating_point() or tensor.is_complex())


def _tensors(value: Any) -> list[Any]:
    if hasattr(value, "requires_grad"):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [found for item in value for found in _tensors(item)]
    return []


def with_out(call: Call, rng: random.Random, result: Any) -> None:
    """Give a call an `out=`: one that fits PyTorch's result, or nearly."""
    if not isinstance(result, specs.Seen) or call.form != "out":
        return
    shape, dtype = result.shape, result.dtype
    if _chance(rng, 4):
        dtype = rng.choice(DTYPES)
    if _chance(rng, 4):
        shape = rng.choice([(0,), (*shape, 2), (1,), shape[::-1]])
    held = "float32" if dtype == "bfloat16" else dtype
    call.out = specs.Tensor(np.zeros(shape, held), dtype, rng.choice(LAYOUTS[:4:3]))
    call.out.requires_grad = _chance(rng, 8) and dtype.startswith(("float", "complex"))


def prepare() -> None:
    """Load what is loaded at the first use."""
    plugrad.ones(2).sum()
    _cases()


def program_of(seed: int) -> str:
    return draw(seed).program()


def run_case(seed: int) -> Finding | None:
    import torch

    call = draw(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with oracle():
            theirs = perform(call, torch)
            if call.form == "out" and theirs.error is None:
                with_out(call, random.Random(seed + 1), theirs.result)
                if call.out is not None:
                    theirs = perform(call, torch)
        ours = perform(call, plugrad)
    counts["calls"] += 1
    counts["accepted by both"] += ours.error is None and theirs.error is None
    found = compare(call, ours, theirs)
    if found is None or known_difference(call, *found):
        return None
    kind, details = found
    if kind.endswith(("values", "value")) and is_unstable(call, theirs):
        counts["ill-conditioned"] += 1
        return None
    return Finding(
        f"operators: {call.expression()}: {kind}: {details}",
        call.program(),
        f"{call.op} {call.form if call.form != 'method' else 'function'} {kind}",
    )


def is_unstable(call: Call, theirs: Outcome) -> bool:
    """Whether PyTorch's own answer is another one once its arguments move by a rounding."""
    import torch

    for seed in range(4):
        moved = replace(
            call, args=specs.moved(call.args, seed), kwargs=specs.moved(call.kwargs, seed)
        )
        with warnings.catch_warnings(), oracle():
            warnings.simplefilter("ignore")
            other = perform(moved, torch)
        found = compare(call, other, theirs)
        if found is not None and found[0].endswith(("values", "value")):
            return True
    return False


def compare(call: Call, ours: Outcome, theirs: Outcome) -> tuple[str, str] | None:
    """The kind of difference and what it is."""
    for error in (ours.error, ours.grad_error):
        if error is not None and (why := messages.internal(error, theirs.error)):
            return f"message: {why}", f"{type(error).__name__}: {error}"
    if ours.error is not None or theirs.error is not None:
        return _compare_errors(ours.error, theirs.error)
    if kind := _compare(ours.result, theirs.result, call, "result"):
        return kind
    if call.form == "inplace" and (kind := _compare(ours.inputs, theirs.inputs, call, "inputs")):
        return kind
    if ours.versions != theirs.versions and call.form in ("inplace",):
        return "versions", f"{ours.versions}, PyTorch: {theirs.versions}"
    if ours.grad_error is not None or theirs.grad_error is not None:
        found = _compare_errors(ours.grad_error, theirs.grad_error)
        return found and (f"gradient: {found[0]}", found[1])
    if call.op.startswith("special::") and None in (theirs.grads or [None]):
        return None  # PyTorch has no gradient
    return _compare(ours.grads, theirs.grads, call, "gradient")


def _compare_errors(
    ours: BaseException | None, theirs: BaseException | None
) -> tuple[str, str] | None:
    if ours is not None and theirs is not None:
        return None
    if ours is not None:
        if messages.says_not_implemented(ours) or "'out'" in str(ours):
            return None
        return "only plugrad raises", f"{type(ours).__name__}: {ours}"
    assert theirs is not None
    text = str(theirs)
    if messages.says_not_implemented(theirs) or "INTERNAL ASSERT" in text:
        return None
    # plugrad may have a method, or take a number or `out=`, where PyTorch does not.
    if isinstance(theirs, (TypeError, AttributeError)):
        return None
    return "only PyTorch raises", f"{type(theirs).__name__}: {text[:400]}"


def _compare(ours: Any, theirs: Any, call: Call, where: str) -> tuple[str, str] | None:
    if isinstance(theirs, specs.Seen):
        if not isinstance(ours, specs.Seen):
            return f"{where}: type", f"{ours}, PyTorch: a tensor"
        for name in ("shape", "dtype", "requires_grad", "is_leaf", "stride"):
            mine, other = getattr(ours, name), getattr(theirs, name)
            if name == "stride":
                if where != "result" or not (call.case.view or call.form == "inplace"):
                    continue
                mine, other = _steps(ours), _steps(theirs)
            if name in ("requires_grad", "is_leaf") and call.op.startswith("special::"):
                continue
            if mine != other:
                return f"{where}: {name}", f"{mine}, PyTorch: {other}"
        if _close(ours, theirs, call):
            return None
        return f"{where}: values", f"{ours.values.tolist()}, PyTorch: {theirs.values.tolist()}"
    if isinstance(theirs, list) and isinstance(ours, list):
        if len(ours) != len(theirs):
            return f"{where}: number", f"{len(ours)}, PyTorch: {len(theirs)}"
        for mine, other in zip(ours, theirs, strict=True):
            if found := _compare(mine, other, call, where):
                return found
        return None
    same = ours == theirs or (ours != ours and theirs != theirs)
    if isinstance(ours, float) and isinstance(theirs, float):
        same = same or math.isclose(ours, theirs, rel_tol=1e-4, abs_tol=1e-6)
    return None if same else (f"{where}: value", f"{ours!r}, PyTorch: {theirs!r}")


def _steps(seen: specs.Seen) -> list[int]:
    """The strides that lead from one element to another."""
    if 0 in seen.shape:
        return []
    return [stride for size, stride in zip(seen.shape, seen.stride, strict=True) if size > 1]


def _close(ours: specs.Seen, theirs: specs.Seen, call: Call) -> bool:
    if any(word in call.op for word in _RANDOM):
        return True
    a, b = ours.values, theirs.values
    if a.dtype.kind not in "fc":
        if np.array_equal(a, b):
            return True
        # What is no number, or too large, becomes any integer.
        return any(
            t.dtype.startswith(("float", "bfloat", "complex"))
            and not (np.abs(np.asarray(t.values, complex)) < 100).all()
            for t in specs.tensors_in([call.args, call.kwargs])
        )
    least = min(
        (_TOLERANCE.get(t.dtype, 0.0) for t in specs.tensors_in([call.args, call.kwargs])),
        default=0.0,
        key=lambda tolerance: -tolerance,
    )
    tolerance = max(_TOLERANCE[ours.dtype], least) * call.case.low_precision
    if np.array_equal(a, b, equal_nan=True):
        return True
    with np.errstate(all="ignore"):
        a, b = np.asarray(a, complex), np.asarray(b, complex)
        if call.special:
            # Infinities and nans become one another as the order of the steps has it.
            a, b = a[np.isfinite(b)], b[np.isfinite(b)]
        finite = np.abs(b[np.isfinite(b)])
        scale = max(1.0, float(finite.max())) if finite.size else 1.0
        return bool(np.allclose(a, b, rtol=tolerance, atol=tolerance * scale, equal_nan=True))
