"""Autograd of every operator, in every form, beside PyTorch's.

Of functions: which results require grad, whichever of the inputs do. Of methods in place: whether a
leaf is refused, a result cast, the write counted, a saved value that is overwritten noticed.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

import pytest

import plugrad
from plugrad.testing.cases import (
    FAMILIES,
    Arguments,
    OpCase,
    OpSample,
    T,
    core_cases,
    family_cases,
    flatten,
    resolve,
    seed_of,
)
from tests.core.ops.against_torch.oracle import TorchArguments, dtype_name, is_tensor, torch
from tests.core.ops.harness import needs_torch

pytestmark = needs_torch

# Other spellings of methods that have samples.
SPELLINGS: Final = {
    "absolute_": "abs_", "arctan2_": "atan2_", "clip_": "clamp_", "divide_": "div_",
    "fix_": "trunc_", "greater_": "gt_", "greater_equal_": "ge_", "less_": "lt_",
    "less_equal_": "le_", "multiply_": "mul_", "negative_": "neg_", "not_equal_": "ne_",
    "subtract_": "sub_", "swapaxes_": "transpose_", "swapdims_": "transpose_",
    "true_divide_": "div_",
}  # fmt: skip
# They write nothing, or what functions of Python return: see test_inplace_view_operators.py,
# test_resizing.py, test_set_data.py, test_older_names.py.
NO_WRITES: Final = frozenset([
    "apply_", "as_strided_", "detach_", "map2_", "map_", "requires_grad_", "resize_",
    "resize_as_", "set_", "share_memory_",
])  # fmt: skip
# PyTorch's messages for refused writes; other tests cover other errors.
REFUSALS: Final = (
    "a leaf Variable that requires grad", "a view of a leaf Variable", "can't be cast to",
    "modified by an inplace operation", "not supported for complex",
)  # fmt: skip
# PyTorch has no kernels for these.
WIDER: Final = {
    ("clamp_max_", "bool"), ("clamp_min_", "bool"), ("ldexp_", "bool"), ("ldexp_", "float16"),
    ("relu_", "bool"), ("relu_", "complex64"),
}  # fmt: skip
# PyTorch overwrites a leaf that requires grad here, and its gradient is meaningless.
STRICTER: Final = frozenset(["logical_and_", "logical_not_", "logical_or_", "logical_xor_"])
# PyTorch has one node for all results, and marks all of them; here each is marked that depends on
# what requires grad. Whether any is marked must agree, and none may be that PyTorch's is not.
OF_ONE_NODE: Final = ("_foreach_", "grid_sampler_", "native_group_norm")
# PyTorch marks the result, though its gradient is not implemented; here, as of `detach`, none is.
WITHOUT_GRADIENT: Final = frozenset(["detach_copy"])
DTYPES: Final = ("bool", "uint8", "int64", "float16", "bfloat16", "float32", "float64", "complex64")
NUMBERS: Final = (True, 2, 0.5, 1 + 1j)


def refused(error: Exception) -> str:
    """Which refusal it is; "" for another error."""
    return next((words for words in REFUSALS if words in str(error)), "")


def arguments(library: Any, case: OpCase, sample: OpSample, dtype: str) -> tuple[Any, Any, Any]:
    made = (Arguments if library is plugrad else TorchArguments)(dtype, seed_of(case, sample))
    return made.make(tuple(sample.args)), made.make(dict(sample.kwargs)), made.leaves


def required(library: Any, case: OpCase, sample: OpSample, dtype: str, only: int) -> Any:
    """Which results require grad if all leaves do, or but the one at `only`; None for an error."""
    args, kwargs, leaves = arguments(library, case, sample, dtype)
    if only >= len(leaves):
        return None
    for place, leaf in enumerate(leaves):
        leaf.requires_grad_(only in (-1, place))
    try:
        result = resolve(case.op if library is plugrad else case.torch or case.op, library)(
            *args, **kwargs
        )
    except Exception:
        return None
    return [(dtype_name(x), x.requires_grad) for x in flatten(result) if is_tensor(x)]


@pytest.mark.parametrize("family", FAMILIES)
def test_results_require_grad_where_those_of_pytorch_do(family: str) -> None:
    wrong = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for case in family_cases(family):
            for sample in case.all_samples()[:3]:
                for dtype in ("float32", "complex64", "int64"):
                    for only in (-1, 0, 1):
                        expected = required(torch, case, sample, dtype, only)
                        actual = required(plugrad, case, sample, dtype, only)
                        if expected is None or actual is None:
                            continue  # what is refused is the operator suite's business
                        marks = [flag for _, flag in actual]
                        if case.op in WITHOUT_GRADIENT:
                            agree = not any(marks)
                        elif case.op.startswith(OF_ONE_NODE):
                            others = [flag for _, flag in expected]
                            pairs = list(zip(marks, others, strict=True))
                            agree = any(marks) == any(others) and all(b or not a for a, b in pairs)
                        else:
                            agree = marks == [flag for _, flag in expected]
                        if not agree:
                            wrong.append((case.op, sample, dtype, only, actual, expected))
    assert not wrong


def in_place_samples() -> dict[str, list[tuple[OpCase, OpSample]]]:
    """By the name of the method, samples of the function or of the method itself."""
    found: dict[str, list[tuple[OpCase, OpSample]]] = {}
    for case in core_cases():
        base = case.op.rpartition(".")[2]
        names = {case.inplace, f"{base}_", base if base.endswith("_") else None}
        for sample in case.all_samples()[:4]:
            if sample.args and isinstance(sample.args[0], T) and sample.args[0].shape:
                for name in names:
                    if name is not None:
                        found.setdefault(name, []).append((case, sample))
    return found


def methods_in_place() -> list[str]:
    return [
        name
        for name in sorted(dir(plugrad.Tensor))
        if name.endswith("_")
        and not name.startswith("_")
        and hasattr(torch.Tensor, name)
        and name not in NO_WRITES
    ]


SAMPLES: Final = in_place_samples() if torch is not None else {}
# Of `polygamma` the first argument is the order; in place it is the tensor.
OTHERS: Final[dict[str, tuple[Any, ...]]] = {
    "bernoulli_": (), "copy_": (T((3,)),), "exponential_": (), "normal_": (), "polygamma_": (1,),
    "random_": (), "uniform_": (),
}  # fmt: skip


def samples_of(name: str) -> Iterator[tuple[OpCase, OpSample]]:
    if name in OTHERS:
        sample = OpSample((T((2, 3)), *OTHERS[name]))
        return iter([(OpCase(name, [sample]), sample)])
    return iter(SAMPLES.get(name) or SAMPLES[SPELLINGS[name]])


def test_every_method_in_place_has_a_sample(torch_oracle: Any) -> None:
    assert [name for name in methods_in_place() if not any(True for _ in samples_of(name))] == []


def detached(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)([detached(item) for item in value])
    return value.detach() if is_tensor(value) else value


def run(library: Any, name: str, case: OpCase, sample: OpSample, dtype: str, way: str) -> Any:
    """What comes of a write in one of these ways: refused, or what the tensors are then."""
    args, kwargs, _ = arguments(library, case, sample, dtype)
    others, kwargs = detached(args[1:]), {key: detached(value) for key, value in kwargs.items()}
    target = args[0].detach().clone()
    method = getattr(library.Tensor, name)
    try:
        if way == "plain":
            before = target._version
            result = method(target, *others, **kwargs)
            return result is target, target._version - before, dtype_name(target)
        if way == "others":
            for other in others:
                if is_tensor(other) and (other.is_floating_point() or other.is_complex()):
                    other.requires_grad_()
            method(target, *others, **kwargs)
            return target.requires_grad, target.is_leaf
        leaf = target.requires_grad_()
        if way in ("leaf", "view of a leaf"):
            method(leaf if way == "leaf" else leaf.view_as(leaf), *others, **kwargs)
            return "accepted"
        written = leaf * 1
        square = written * written
        method(written, *others, **kwargs)
        flags = written.requires_grad, written.is_leaf
        square.abs().sum().backward()
        return flags
    except Exception as error:
        return refused(error)


@needs_torch
@pytest.mark.parametrize("way", ["plain", "others", "leaf", "view of a leaf", "saved"])
def test_methods_in_place_are_refused_and_counted_as_in_pytorch(way: str) -> None:
    wrong = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in methods_in_place():
            for case, sample in samples_of(name):
                for dtype in ("float32", "complex64", "int64"):
                    expected = run(torch, name, case, sample, dtype, way)
                    actual = run(plugrad, name, case, sample, dtype, way)
                    if name in STRICTER and expected == "accepted":
                        expected = REFUSALS[0] if way == "leaf" else REFUSALS[1]
                    if expected in REFUSALS:
                        # It may have refused for another reason, looked at before this one.
                        agree = isinstance(actual, str) and actual != "accepted"
                    else:
                        agree = expected == "" or actual == expected
                    if not agree and (name, dtype) not in WIDER:
                        wrong.append((name, sample, dtype, actual, expected))
    assert not wrong


def test_compositions_in_place_count_one_write_in_inference_mode(torch_oracle: Any) -> None:
    wrong = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in methods_in_place():
            for case, sample in islice(samples_of(name), 1):
                versions: list[int | None] = []
                for library in (plugrad, torch_oracle):
                    args, kwargs, _ = arguments(library, case, sample, "float32")
                    tensor = args[0].clone()
                    try:
                        with library.inference_mode():
                            getattr(tensor, name)(*args[1:], **kwargs)
                    except Exception:
                        break  # what is refused is the business of the test above
                    versions.append(tensor._version)
                if len(versions) == 2 and versions[0] != versions[1]:
                    wrong.append((name, versions))
    assert not wrong


def written(library: Any, name: str, target: str, other: Any) -> Any:
    """The dtype of what was written, or that it was refused."""
    tensor = library.tensor([1, 0, 3], dtype=getattr(library, target))
    if isinstance(other, str):
        other = library.tensor([2, 1, 1], dtype=getattr(library, other))
    try:
        result = getattr(tensor, name)(*(() if other is None else (other,)))
    except Exception:
        return "refused"
    return dtype_name(result)


def elementwise_in_place() -> list[str]:
    """Methods in place of one tensor, or of a tensor and another one."""
    names = []
    for name in methods_in_place():
        schemas = getattr(plugrad.ops.plugrad, name)._overloads
        tensors = {
            sum(a.type.base in ("Tensor", "Scalar") for a in schema._schema.arguments)
            for schema in schemas
        }
        if tensors & {1, 2} and name not in OTHERS:
            names.append(name)
    return names


def test_what_is_written_in_place_is_cast_as_in_pytorch(torch_oracle: Any) -> None:
    wrong = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in elementwise_in_place():
            for target in DTYPES:
                for other in (None, *DTYPES, *NUMBERS):
                    expected = written(torch, name, target, other)
                    actual = written(plugrad, name, target, other)
                    if actual != expected and not {(name, target), (name, other)} & WIDER:
                        wrong.append((name, target, other, actual, expected))
    assert not wrong
