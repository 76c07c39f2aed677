"""Errors of public functions with arguments that do not fit. Oracle: PyTorch's type and first
line."""

from __future__ import annotations

import inspect
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad.plugins.arguments import explains

X = plugrad.ones(2)

SAME: list[Any] = [
    # By keyword: no position is named.
    lambda lib: lib.add(lib.ones(2), other="a"),
    lambda lib: lib.exp(input=1),
    lambda lib: lib.softmax(lib.ones(2), dim="a"),
    lambda lib: lib.sum(lib.ones(2), dim=0, keepdim="a"),
    lambda lib: lib.zeros(size="a"),
    lambda lib: lib.zeros(size=[1.5]),
    lambda lib: lib.cat(tensors=1),
    lambda lib: lib.ones(2).transpose(0, dim1="a"),
    lambda lib: lib.ones(2).add_(other="a"),
    lambda lib: lib.ones(2).expand(size="a"),
    lambda lib: lib.ones(2).pow("a"),
    lambda lib: lib.set_grad_enabled(),
    lambda lib: lib.set_grad_enabled(1, 2, 3),
    lambda lib: lib.set_grad_enabled(foo=1),
    lambda lib: lib.autograd.set_detect_anomaly(),
    lambda lib: lib.ones(2, 3).mul("a"),
    lambda lib: lib.mul(lib.ones(2), [1]),
    lambda lib: lib.mul("a", lib.ones(2)),
    lambda lib: lib.matmul(lib.ones(2), np.ones(2)),
    lambda lib: lib.matmul(lib.ones(2), np.float64(2)),
    lambda lib: lib.matmul(lib.ones(2), lib.float32),
    lambda lib: lib.matmul(lib.ones(2), lib.device("cpu")),
    lambda lib: lib.matmul(lib.ones(2), lib.Size([2])),
    lambda lib: lib.ones(2, 3).transpose(0, "a"),
    lambda lib: lib.cumsum(lib.ones(2), True),
    lambda lib: lib.cumsum(lib.ones(2), lib.ones(1, dtype=lib.int64)),
    lambda lib: lib.cumsum(lib.ones(2), np.ones(3)),
    lambda lib: lib.cumsum(lib.ones(2), 2**70),
    lambda lib: lib.ones(2, 3).reshape("a"),
    lambda lib: lib.ones(2, 3).reshape([2, "a"]),
    lambda lib: lib.zeros("a"),
    lambda lib: lib.zeros([2], dtype=3),
    lambda lib: lib.zeros([2], device=3.0),
    lambda lib: lib.ones(2, dtype=lib.int8).fill_(300),
    lambda lib: lib.where(lib.ones(2, 3) > 0, lib.ones(2, 3), lib.ones(5)),
    lambda lib: lib.addcmul(lib.ones(2, 3), lib.ones(5), lib.ones(2, 3)),
    lambda lib: lib.lerp(lib.ones(3), lib.ones(4), 0.5),
    lambda lib: lib.zeros(2**62),
    lambda lib: lib.einsum(1, lib.ones(2, 3)),
    lambda lib: lib.tensordot(lib.ones(2, 3), lib.ones(3, 2), dims="a"),
    lambda lib: lib.ones(2).size("a"),
    lambda lib: lib.Generator().manual_seed("a"),
    lambda lib: lib.copysign(lib.ones(2, 3), lib.ones(4)),
    lambda lib: lib.ones(2).copy_("a"),
    lambda lib: lib.meshgrid(),
    lambda lib: lib.tensor([[1, 2], [3, 4]]).matrix_power(-1),
    lambda lib: lib.func.functional_call(lib.nn.Linear(2, 1), {"a": 1}, lib.ones(2)),
    lambda lib: lib.promote_types(1, lib.float32),
    lambda lib: lib.can_cast(lib.float32, 1),
    lambda lib: lib.finfo("a"),
    lambda lib: lib.iinfo([1]),
    lambda lib: lib.linalg.norm(lib.ones(2, 2), lib.tensor(1j)),
    lambda lib: lib.ones(2).stride(np.ones(2)),
    lambda lib: lib.ones(2).stride(5),
    lambda lib: lib.tensor(1).stride(0),
    lambda lib: lib.var_mean(lib.ones(2), correction=1j),
    lambda lib: [1] @ lib.ones(1, 1),
    lambda lib: lib.nn.ReLU().load_state_dict(lib.Size([2])),
    lambda lib: lib.linspace(lib.ones(2), 3, 4),
    lambda lib: lib.logspace(1, lib.ones(1, 1), 4),
    lambda lib: lib.narrow(lib.ones(2, 3), 1, lib.ones(5, dtype=lib.int32), 2),
    lambda lib: lib.ones(3).narrow(0, lib.tensor(True), 2),
    lambda lib: lib.nn.functional.embedding(lib.tensor([0]), lib.tensor(1.0)),
]


def nested(depth: int) -> Any:
    found: Any = 1
    for _ in range(depth):
        found = [found]
    return found


# Where PyTorch says what is of its own making: a trace of its frames, an OverflowError of Python's.
OTHER: list[Any] = [
    (lambda: plugrad.zeros(2**70), TypeError, 'at pos 1 with error "Overflow when unpacking'),
    (lambda: plugrad.ones(2).sum([2**70]), TypeError, "Overflow when unpacking"),
    (lambda: plugrad.ones(2).clamp(2**70), RuntimeError, "without overflow"),
    (lambda: plugrad.ones(2) * 10**400, RuntimeError, "without overflow"),
    (lambda: plugrad.tensor([1, 2]) * 2**70, RuntimeError, "without overflow"),
    (lambda: plugrad.tensordot(1, 2), TypeError, "argument 'self' .* must be Tensor, not int"),
    (lambda: plugrad.broadcast_shapes("a"), TypeError, "must be tuple of ints, not str"),
    (lambda: X.resize_(2, "a"), TypeError, "at pos 2 .* tuple of ints,but got str"),
    (lambda: plugrad.linalg.matrix_norm(plugrad.ones(2, 2), []), TypeError, "'ord' .* not list"),
    (lambda: plugrad.linalg.matrix_norm(plugrad.ones(2, 2), dim=1), TypeError, "tuple of ints"),
    (lambda: plugrad.nn.functional.rms_norm(X, None), TypeError, "must be tuple of ints, not None"),
    (lambda: plugrad.special.xlog1py(10**30, X), RuntimeError, "without overflow"),
    (lambda: plugrad.manual_seed("a"), TypeError, "expected a long, but got str"),
    (lambda: plugrad.vmap(len)(nested(100000)), ValueError, "nested too deep"),
    (lambda: plugrad.special.hermite_polynomial_h(X, 10**9), NotImplementedError, "degrees above"),
    (lambda: plugrad.UntypedStorage([None]), TypeError, "one of the items was of type NoneType"),
    (lambda: plugrad.UntypedStorage(None), TypeError, "a sequence of ints, but got NoneType"),
    (lambda: plugrad.from_numpy(type("A", (), {})()), TypeError, "expected np.ndarray"),
    (lambda: plugrad.view_as_complex(X.half()), NotImplementedError, "not implemented for 'Half'"),
    (lambda: X.__array_wrap__([X, X]), TypeError, "must be numpy.ndarray, not list"),
    (lambda: plugrad.Tensor(plugrad.Tensor), TypeError, "must be a sequence"),
    (
        lambda: plugrad.ops.plugrad.native_layer_norm_backward(X, X, [2], X, X, None, None, [True]),
        RuntimeError,
        "List with 1 elements to a fixed-size array of size 3",
    ),
    (
        lambda: plugrad.utils.checkpoint.checkpoint_sequential([abs], 1 << 40, X),
        ValueError,
        "between 1 and the number of functions, 1, got",
    ),
    (
        lambda: plugrad.ops.plugrad.native_batch_norm_backward(
            X, X, X, None, None, None, None, False, 0.5, [True] * 3
        ),
        RuntimeError,
        "do not fit together",
    ),
    (lambda: plugrad.dtype("a", "A", 1, 2, 3), TypeError, "cannot create 'plugrad.dtype'"),
    (lambda: X.__deepcopy__(1), TypeError, "'memo' must be dict, not int"),
    (lambda: X.__setstate__([[1]]), TypeError, "expected a dict of attributes, got list"),
    (lambda: X.__array_ufunc__(X, "x"), TypeError, "expected numpy.ufunc"),
    (lambda: plugrad.func.vjp(len, plugrad.Size([2])), ValueError, "<class 'plugrad.Size'>"),
    (lambda: plugrad.amp.autocast("cpu", 3), TypeError, "'dtype' .* must be plugrad.dtype"),
    (lambda: plugrad.func.stack_module_state("a"), TypeError, "must be list of modules, not str"),
    (
        lambda: plugrad.ops.plugrad.leaky_relu_backward(X, X, 1j, True),
        RuntimeError,
        "to type double without overflow",
    ),
    (
        lambda: plugrad.ones(1, dtype=plugrad.complex64).new(X),
        TypeError,
        "expected ComplexFloatTensor .got FloatTensor",
    ),
    (lambda: plugrad.zeros(2**44), RuntimeError, "you tried to allocate 70368744177664 bytes"),
]


@pytest.mark.parametrize("call", SAME)
def test_errors_are_those_of_pytorch(call: Any, torch_oracle: Any) -> None:
    with pytest.raises(Exception) as theirs:  # whatever PyTorch raises
        call(torch_oracle)
    with pytest.raises(type(theirs.value)) as ours:
        call(plugrad)
    words = str(theirs.value).partition("\n")[0].replace("torch.", "plugrad.")
    assert str(ours.value).partition("\n")[0] == words


@pytest.mark.parametrize(("call", "error", "words"), OTHER)
def test_errors_in_words_of_our_own(call: Any, error: Any, words: str) -> None:
    with pytest.raises(error, match=words):
        call()


# Functions written in Python: their annotations say what was expected.
PYTHON: list[Any] = [
    lambda lib: lib.is_complex("a"),
    lambda lib: lib.numel(1),
    lambda lib: lib.ones(1).is_same_size([1]),
    lambda lib: lib.linalg.vecdot(0, 1),
    lambda lib: lib.nn.functional.pad(1, (1, 1)),
    lambda lib: lib.nn.functional.relu(np.ones(2), True),
    lambda lib: lib.rand("a"),
]


@pytest.mark.parametrize("call", PYTHON)
def test_functions_in_python_name_the_argument(call: Any, torch_oracle: Any) -> None:
    with pytest.raises(TypeError) as theirs:
        call(torch_oracle)
    with pytest.raises(TypeError) as ours:
        call(plugrad)
    words = str(theirs.value).partition("\n")[0].replace("relu_()", "relu()")
    assert str(ours.value) == words


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: plugrad.nn.functional.smooth_l1_loss(X, X, beta=[1]),
            r"'beta' \(position 4\) must be float",
        ),
        (lambda: plugrad.nn.init.calculate_gain([]), r"'nonlinearity' \(position 1\) must be str"),
        (lambda: plugrad.optim.Adam([X], lr=plugrad.float32), r"Adam\(\): argument 'lr' must be"),
        (lambda: plugrad.nn.utils.vector_to_parameters(X, 2), "'parameters' .* tuple of Tensors"),
        (lambda: plugrad.optim.Adam([X], betas=[1, "a"]), "'betas' must be tuple, not list"),
        (lambda: plugrad.optim.SGD([X]).load_state_dict(None), "'state_dict' .* must be dict"),
        (lambda: plugrad.nn.Linear(1, 1).get_submodule(3), "'target' .* must be str, not int"),
        (lambda: plugrad.nn.Embedding(2, 2, padding_idx="a"), "'padding_idx' must be int, not str"),
        (lambda: plugrad.nn.functional.embedding(-1, X, 7), "'input' .* must be Tensor, not int"),
        (
            lambda: plugrad.nn.functional.conv1d(X[None], X[None, None], stride=None),
            "'stride' must be int or tuple of ints, not NoneType",
        ),
        (lambda: plugrad.utils.data.random_split(3, [1]), "'dataset' .* must be sized, not int"),
        (lambda: plugrad.utils.data.RandomSampler(1.5), "'data_source' .* sized, not float"),
        (lambda: plugrad.utils.data.RandomSampler([1], 5), "'replacement' .* must be bool"),
        (
            lambda: plugrad.utils.data.TensorDataset(X, 3),
            r"'tensors' \(position 2\) must be Tensor",
        ),
        (lambda: plugrad.vmap(len, chunk_size="a"), "'chunk_size' must be int, not str"),
        (lambda: plugrad.func.jacrev(len, chunk_size="a"), "'chunk_size' must be int, not str"),
    ],
)
def test_annotations_explain_failures(call: Any, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        call()


def test_failures_of_what_fits_are_left_alone() -> None:
    @explains
    def look_up(table: dict[str, int], input: plugrad.Tensor, name: str) -> int:
        return table[name]

    with pytest.raises(KeyError, match="b"):
        look_up({"a": 1}, X, "b")
    with pytest.raises(TypeError, match="missing 1 required"):
        look_up({"a": 1}, X)  # type: ignore[call-arg]


def test_numbers_of_numpy_are_sizes() -> None:
    assert plugrad.zeros(np.uint8(2)).shape == X.repeat(np.int64(1)).shape == (2,)


@pytest.mark.parametrize(
    "name",
    ["sin_", "__le__", "__rmod__", "__rmatmul__", "__getitem__", "is_complex", "type", "cuda"],
)
def test_methods_refuse_what_is_no_tensor(name: str) -> None:
    with pytest.raises(TypeError, match=r"doesn't apply to|requires|must be Tensor"):
        getattr(plugrad.Tensor, name)((), *[X] * name.startswith("__"))


def test_the_product_with_a_list_is_refused_in_either_order() -> None:
    for call in (lambda: [[1.0]] @ X, lambda: X @ [[1.0]]):
        with pytest.raises(TypeError, match="unsupported operand"):
            call()
    assert plugrad.Tensor.__rmatmul__(X, {}) is NotImplemented
    assert plugrad.Tensor.__rmatmul__(plugrad.ones(2, 1), plugrad.ones(3, 2)).shape == (3, 1)


CLASS_FOR_A_TENSOR = """
import plugrad
F = plugrad.nn.functional
x = plugrad.ones(2)
for function in (plugrad.numel, plugrad.is_complex, plugrad.is_conj, F.sigmoid, F.tanh):
    for _ in range(100):
        function(x)
    try:
        function(plugrad.Tensor)
    except TypeError as error:
        print(error)
    function(x)
"""


def test_the_class_is_refused_where_a_tensor_was_taken_a_hundred_times() -> None:
    """CPython 3.11 crashes there, or calls the method on an arbitrary object on its stack."""
    ended = subprocess.run(
        [sys.executable, "-c", CLASS_FOR_A_TENSOR], capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines() == [
        f"{name}(): argument 'input' (position 1) must be Tensor, not type"
        for name in ("numel", "is_complex", "is_conj", "sigmoid", "tanh")
    ]


def test_the_class_never_reaches_a_function_that_may_be_overridden() -> None:
    reached = []

    @plugrad.overrides.overridable("mine")
    def add(input: plugrad.Tensor, other: plugrad.Tensor) -> None:
        reached.append(input)

    x, cls = plugrad.ones(1), plugrad.Tensor
    for args, kwargs in (((cls, 1), {}), ((x, cls), {}), ((), {"input": x, "other": cls})):
        with pytest.raises(TypeError, match="must be Tensor, not type"):
            add(*args, **kwargs)
    assert reached == []


def test_what_is_set_at_once_shows_its_parameters(torch_oracle: Any) -> None:
    for get in (lambda lib: lib.set_grad_enabled, lambda lib: lib.autograd.set_detect_anomaly):
        assert str(inspect.signature(get(plugrad))) == str(inspect.signature(get(torch_oracle)))


def test_an_argument_given_by_one_of_many_keywords_is_known_as_such() -> None:
    numbers = "\n".join(f"    x = {number}.5" for number in range(300))
    names: dict[str, Any] = {"plugrad": plugrad}
    exec(f"def call():\n{numbers}\n    plugrad.sum(plugrad.ones(2), keepdim=True, dim='a')", names)
    with pytest.raises(TypeError, match="argument 'dim' must be tuple of ints, not str"):
        names["call"]()


NAMED = {
    "make_dual": lambda: plugrad.autograd.forward_ad.make_dual(X, abs, level=0),
    "get_gradient_edge": lambda: plugrad.autograd.graph.get_gradient_edge([1]),
    "register_multi_grad_hook": lambda: plugrad.autograd.graph.register_multi_grad_hook(3, abs),
    "backward": lambda: plugrad.autograd.backward(slice(1)),
    "grad": lambda: plugrad.autograd.grad(X.requires_grad_(), 3),
    "checkpoint": lambda: plugrad.utils.checkpoint.checkpoint(True, X, use_reentrant=False),
    "once_differentiable": lambda: plugrad.autograd.function.once_differentiable(True),
    "no_grad": lambda: plugrad.no_grad()(3),
    "schedule": lambda: plugrad.profiler.schedule(wait=[1], warmup=1, active=1),
    "profile": lambda: plugrad.profiler.profile(activities=3),
    "EventList": lambda: plugrad.autograd.profiler.EventList(3),
    "fork_rng": lambda: plugrad.random.fork_rng(3),
    "GradScaler": lambda: plugrad.amp.GradScaler("cpu", growth_factor="a"),
    "custom_fwd": lambda: plugrad.amp.custom_fwd(3, device_type="cpu"),
    "gradcheck": lambda: plugrad.autograd.gradcheck.gradcheck(3, X.double().requires_grad_()),
    "make_tensor": lambda: plugrad.testing.make_tensor(2, dtype="a"),
    "vjp": lambda: plugrad.func.vjp(X),
    "linearize": lambda: plugrad.func.linearize(3, X),
    "jacobian": lambda: plugrad.autograd.functional.jacobian({1}, X),
    "replace_all_batch_norm_modules_": lambda: plugrad.func.replace_all_batch_norm_modules_(3),
    "get_vmap_rule": lambda: plugrad.library.get_vmap_rule([]),
    "Conv1d": lambda: plugrad.nn.Conv1d(3, abs, 1),
    "default_collate": lambda: plugrad.utils.data.default_collate(3),
    "parameters_to_vector": lambda: plugrad.nn.utils.parameters_to_vector(iter([1])),
}


@pytest.mark.parametrize("name", NAMED)
def test_what_is_written_in_python_names_function_and_argument(name: str) -> None:
    with pytest.raises(
        TypeError, match=rf"^{name}\(\): argument '\w+'.* must be .*, (but|not) \w+"
    ):
        NAMED[name]()
