"""Names that packages import from inside of PyTorch, and small modules: what they give is
PyTorch's."""

from __future__ import annotations

import gc
from importlib import import_module
from inspect import signature
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad_as_torch.lookup import find
from plugrad_as_torch.own import accelerator, build, flat, gaussians, layers
from plugrad_as_torch.own.cuda import tensors as cuda_tensors
from plugrad_as_torch.own.futures import Future, collect_all
from plugrad_as_torch.own.reductions import legacy_get_string
from plugrad_as_torch.own.timing import Timer
from plugrad_as_torch.own.weak import WeakTensorKeyDictionary
from tests.as_torch.conftest import Run


def array(tensor: Any) -> Any:
    return np.asarray(tensor.numpy())


@pytest.mark.parametrize(
    ("module", "private", "public"),
    [
        ("conv", "_ConvNd", "Conv2d"),
        ("conv", "_ConvTransposeNd", "ConvTranspose1d"),
        ("batchnorm", "_BatchNorm", "BatchNorm2d"),
        ("batchnorm", "_NormBase", "BatchNorm2d"),
        ("instancenorm", "_InstanceNorm", "InstanceNorm1d"),
        ("dropout", "_DropoutNd", "Dropout2d"),
        ("loss", "_WeightedLoss", "CrossEntropyLoss"),
        ("padding", "_ReflectionPadNd", "ReflectionPad2d"),
        ("padding", "_ConstantPadNd", "ZeroPad2d"),
        ("pooling", "_MaxPoolNd", "MaxPool1d"),
        ("pooling", "_AdaptiveAvgPoolNd", "AdaptiveAvgPool2d"),
        ("rnn", "RNNBase", "LSTM"),
    ],
)
def test_base_classes_have_pytorchs_names(
    module: str, private: str, public: str, torch_oracle: ModuleType
) -> None:
    base = find(f"torch.nn.modules.{module}", private)
    assert issubclass(find("torch.nn", public), base)
    theirs = import_module(f"torch.nn.modules.{module}")
    assert issubclass(getattr(torch_oracle.nn, public), getattr(theirs, private))


def test_threads_are_counted_and_set() -> None:
    counted, setter = find("torch", "get_num_threads"), find("torch", "set_num_threads")
    before = counted()
    try:
        setter(1)
        assert counted() == plugrad.get_num_threads() == 1
    finally:
        setter(before)


@pytest.mark.parametrize("wrong", [0, 1.5])
def test_errors_about_threads_are_pytorchs(wrong: Any, torch_oracle: ModuleType) -> None:
    for name in ("set_num_threads", "set_num_interop_threads"):
        with pytest.raises(RuntimeError) as ours:
            find("torch", name)(wrong)
        if name == "set_num_threads":
            with pytest.raises(RuntimeError) as theirs:
                torch_oracle.set_num_threads(wrong)
            assert str(ours.value) == str(theirs.value)


@pytest.mark.skipif(plugrad.cuda.is_available(), reason="about machines without a GPU")
def test_without_an_accelerator_there_is_none() -> None:
    assert accelerator.current_accelerator() is None
    assert accelerator.device_count() == 0
    with pytest.raises(RuntimeError, match="when none is available"):
        accelerator.synchronize()
    with pytest.raises(TypeError, match=r"type torch.cuda.FloatTensor not available"):
        cuda_tensors.FloatTensor(2)
    assert not isinstance(plugrad.zeros(2), cuda_tensors.FloatTensor)


def test_flat_tensors_are_taken_apart_again() -> None:
    parts = [plugrad.randn(2, 3), plugrad.randn(4), plugrad.randn(())]
    flattened = flat._flatten_dense_tensors(parts)
    assert flattened.shape == (11,)
    for part, again in zip(parts, flat._unflatten_dense_tensors(flattened, parts), strict=True):
        assert plugrad.equal(part, again)


def test_tensors_are_grouped_by_dtype() -> None:
    single, double = plugrad.ones(1), plugrad.ones(1, dtype=plugrad.float64)
    groups = flat._group_tensors_by_device_and_dtype([[single, double, single], [None] * 3], True)
    assert [indices for _, indices in groups.values()] == [[0, 2], [1]]
    assert [len(lists[1]) for lists, _ in groups.values()] == [2, 1]


@pytest.mark.parametrize("device", ["cpu", "cuda:1", 3])
def test_indices_of_devices_are_pytorchs(device: Any, torch_oracle: ModuleType) -> None:
    theirs = import_module("torch._utils")
    assert flat._get_device_index(device, allow_cpu=True) == theirs._get_device_index(
        device, allow_cpu=True
    )


def test_gaussian_functions_are_pytorchs(torch_oracle: ModuleType) -> None:
    theirs = import_module("torch.distributions.lowrank_multivariate_normal")
    more = import_module("torch.distributions.multivariate_normal")
    rng = np.random.default_rng(0)
    w, d, x = rng.normal(size=(5, 2)), rng.uniform(1, 2, 5), rng.normal(size=(3, 5))
    precision = w @ w.T + np.diag(d)

    def values(of: Any, low: Any, many: Any) -> list[Any]:
        factor = low._batch_capacitance_tril(of(w), of(d))
        return [
            factor,
            low._batch_lowrank_logdet(of(w), of(d), factor),
            low._batch_lowrank_mahalanobis(of(w), of(d), of(x), factor),
            many._precision_to_scale_tril(of(precision)),
            many._batch_mahalanobis(of(np.linalg.cholesky(precision)), of(x)),
            many._batch_mv(of(w.T), of(x)),
        ]

    ours = values(plugrad.from_numpy, gaussians, gaussians)
    for here, there in zip(ours, values(torch_oracle.from_numpy, theirs, more), strict=True):
        np.testing.assert_allclose(array(here), array(there), rtol=1e-12)


def test_masks_and_projections_are_pytorchs(torch_oracle: ModuleType) -> None:
    theirs = torch_oracle.nn.functional
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(4, 2, 3)), rng.normal(size=(9, 3))
    b, mask = rng.normal(size=9), rng.uniform(size=(4, 4)) > 0.5

    def values(functions: Any, library: Any) -> list[Any]:
        of = library.from_numpy
        packed = functions._in_projection_packed(of(x), of(x), of(x), of(w), of(b))
        added = functions._canonical_mask(of(mask), "attn_mask", None, "", library.float64)
        return [*packed, added]

    for here, there in zip(values(layers, plugrad), values(theirs, torch_oracle), strict=True):
        np.testing.assert_allclose(array(here), array(there), rtol=1e-12)
    assert layers._detect_is_causal_mask(layers._generate_square_subsequent_mask(3), None, 3)


@pytest.mark.parametrize("size_average", [None, True, False])
@pytest.mark.parametrize("reduce", [None, True, False])
def test_older_flags_mean_pytorchs_reductions(
    size_average: bool | None, reduce: bool | None, torch_oracle: ModuleType
) -> None:
    theirs = import_module("torch.nn._reduction").legacy_get_string
    ours = legacy_get_string(size_average, reduce, emit_warning=False)
    assert ours == theirs(size_average, reduce, emit_warning=False)


def test_weak_dicts_forget_tensors_that_are_gone() -> None:
    x, y = plugrad.zeros(2), plugrad.zeros(2)
    names = WeakTensorKeyDictionary({x: "x", y: "y"})
    assert names[x] == "x"
    assert len(names) == 2
    del x
    gc.collect()
    assert [key is y for key in names] == [True]


def test_futures_call_what_waits_for_them() -> None:
    first: Future[int] = Future()
    doubled = first.then(lambda done: done.value() * 2)
    both = collect_all([first, doubled])
    assert not both.done()
    first.set_result(3)
    assert [future.wait() for future in both.wait()] == [3, 6]
    with pytest.raises(RuntimeError, match="only be marked completed once"):
        first.set_result(4)
    failing: Future[int] = Future()
    failing.set_exception(ValueError("no"))
    with pytest.raises(ValueError, match="no"):
        failing.wait()


def test_a_timer_counts_runs() -> None:
    calls: list[int] = []
    found = Timer("calls.append(1)", globals={"calls": calls}).timeit(7)
    assert len(calls) == 7
    assert found.number_per_run == 7
    assert found.median == found.times[0]


def test_texts_about_the_build_have_the_versions() -> None:
    assert plugrad.__version__ in build.show()
    assert "plugrad-nn" in build.get_pretty_env_info()


def test_a_subclass_of_parameter_takes_arguments_of_its_own() -> None:
    class Named(plugrad.nn.Parameter):
        name_: str

        def __new__(cls, data: Any, *, name: str) -> Any:
            made: Any = super().__new__(cls, data)
            made.name_ = name
            return made

    parameter = Named(plugrad.ones(2), name="bias")
    assert parameter.name_ == "bias"
    assert parameter.requires_grad


def test_the_class_of_futures_has_both_names() -> None:
    assert find("torch", "Future") is find("torch.futures", "Future") is Future


def test_modules_of_devices_are_found_by_their_kind(torch_oracle: ModuleType) -> None:
    with pytest.raises(RuntimeError) as theirs:
        import_module("torch._utils")._get_device_module("other")
    with pytest.raises(RuntimeError) as ours:
        flat._get_device_module("other")
    assert str(ours.value) == str(theirs.value)


def test_seeds_of_workers_are_pytorchs(torch_oracle: ModuleType) -> None:
    theirs = import_module("torch.utils.data._utils.worker")._generate_state(2**40 + 3, 5)
    assert find("torch.utils.data._utils.worker", "_generate_state")(2**40 + 3, 5) == theirs


def test_tables_of_registration_hooks_are_those_of_modules() -> None:
    table = find("torch.nn.modules.module", "_global_parameter_registration_hooks")
    handle = plugrad.nn.global_hooks.register_module_parameter_registration_hook(print)
    assert list(table.values()) == [print]
    handle.remove()
    assert not table


def test_an_assertion_has_its_message() -> None:
    check = find("torch", "_assert")
    check(plugrad.tensor(True), "never")
    with pytest.raises(AssertionError, match="said"):
        check(plugrad.tensor(False), "said")


def test_compiled_operators_are_refused_as_what_cannot_be_loaded(torch_oracle: ModuleType) -> None:
    for load in (find("torch.ops", "load_library"), torch_oracle.ops.load_library):
        with pytest.raises(OSError, match="nothing_here"):
            load("nothing_here.so")


def test_sets_of_keys_are_put_together_as_in_pytorch(torch_oracle: ModuleType) -> None:
    found = []
    for module in (import_module("plugrad_as_torch.own.internals"), torch_oracle._C):
        keys, some = module.DispatchKey, module.DispatchKeySet
        both = some(keys.AutocastCPU) | some(keys.AutocastCUDA)
        found.append([both.has(keys.AutocastCPU), both.has(keys.CPU)])
        found[-1].append((both - some(keys.AutocastCPU)).has(keys.AutocastCPU))
        found[-1].append((both & some(keys.AutocastCUDA)) == some(keys.AutocastCUDA))
    assert found[0] == found[1]


def test_annotations_of_scripts_can_be_subscribed(torch_oracle: ModuleType) -> None:
    for library in (find("torch.jit.annotations", "BroadcastingList2"), None):
        pair = library or import_module("torch.jit.annotations").BroadcastingList2
        assert pair[int] is None


def test_the_folder_of_pytorchs_files_is_pytorchs(
    monkeypatch: pytest.MonkeyPatch, torch_oracle: ModuleType
) -> None:
    theirs = import_module("torch.hub")._get_torch_home
    for variables in ({}, {"XDG_CACHE_HOME": "/a"}, {"TORCH_HOME": "/b"}):
        for name in ("XDG_CACHE_HOME", "TORCH_HOME"):
            monkeypatch.delenv(name, raising=False)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        assert find("torch.hub", "_get_torch_home")() == theirs()


def test_fakes_of_operators_that_were_refused_are_left_out() -> None:
    register = find("torch.library", "register_fake")
    with pytest.raises(RuntimeError, match="no operator 'refused_in_a_test::run'"):
        register("refused_in_a_test::run", abs)
    with pytest.raises(OSError, match="compiled for PyTorch"):
        find("torch.ops", "load_library")("site/refused_in_a_test/_C.so")
    assert register("refused_in_a_test::run")(abs) is abs
    assert register("refused_in_a_test::run", abs) is abs
    with pytest.raises(RuntimeError, match="no operator 'other_in_a_test::run'"):
        register("other_in_a_test::run", abs)


def test_switches_of_backends_are_given_back_after_a_block(run: Run) -> None:
    program = """
import plugrad.as_torch
plugrad.as_torch.install()
import torch
cudnn, mkldnn = torch.backends.cudnn, torch.backends.mkldnn
with cudnn.flags(enabled=False, deterministic=True), mkldnn.flags():
    print(cudnn.enabled, cudnn.deterministic, mkldnn.enabled)
try:
    with cudnn.flags(benchmark=True):
        raise KeyError
except KeyError:
    print(cudnn.enabled, cudnn.deterministic, cudnn.benchmark, mkldnn.enabled)
print(cudnn.set_flags(_benchmark=True), cudnn.benchmark)
"""
    assert run("-c", program).stdout.splitlines() == [
        "False True False",
        "True False False True",
        "(True, False, 10, False, True, 'none', 'auto') True",
    ]


@pytest.mark.parametrize("name", ["cudnn", "mkldnn"])
@pytest.mark.parametrize("function", ["flags", "set_flags"])
def test_switches_of_backends_are_pytorchs(
    name: str, function: str, torch_oracle: ModuleType
) -> None:
    theirs = signature(getattr(getattr(torch_oracle.backends, name), function))
    ours = signature(find(f"torch.backends.{name}", function))
    assert [(one.name, one.default) for one in ours.parameters.values()] == [
        (one.name, one.default) for one in theirs.parameters.values()
    ]


def test_the_arguments_of_to_are_taken_apart_as_in_pytorch(torch_oracle: ModuleType) -> None:
    def calls(lib: Any) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
        return [
            (("cpu",), {}),
            ((lib.float16,), {}),
            (("cpu", lib.float64, True), {}),
            ((lib.ones(1, dtype=lib.float64),), {}),
            ((), {"dtype": lib.float32, "memory_format": lib.channels_last}),
            ((None,), {}),
        ]

    ours = [find("torch._C._nn", "_parse_to")(*args, **more) for args, more in calls(plugrad)]
    theirs = [torch_oracle._C._nn._parse_to(*args, **more) for args, more in calls(torch_oracle)]
    assert repr(ours).replace("plugrad.", "torch.") == repr(theirs)


def test_operators_that_a_program_defines_are_in_torch_ops() -> None:
    library = plugrad.library.Library("defined_in_a_test", "DEF")
    library.define("twice(Tensor x) -> Tensor")
    try:
        assert find("torch.ops", "defined_in_a_test").twice.overloads() == ["default"]
    finally:
        library._destroy()
    with pytest.raises(AttributeError):
        find("torch.ops", "plugrad")


def test_an_operator_for_triton_is_a_custom_one() -> None:
    make = find("torch.library", "triton_op")

    @make("triton_in_a_test::twice", mutates_args=())
    def twice(x: plugrad.Tensor) -> plugrad.Tensor:
        return 2 * x

    assert twice(plugrad.ones(2)).tolist() == [2.0, 2.0]
    assert plugrad.ops.triton_in_a_test.twice(plugrad.ones(1)).tolist() == [2.0]


def test_tensors_are_taken_in_groups_as_in_pytorch(torch_oracle: ModuleType) -> None:
    theirs = import_module("torch._utils")._take_tensors

    def taken(library: Any, take: Any, limit: int) -> list[list[int]]:
        kinds = (library.float32, library.float32, library.int64, library.float32)
        tensors = [library.zeros(size, dtype=kind) for size, kind in enumerate(kinds, 1)]
        return [[tensor.numel() for tensor in group] for group in take(tensors, limit)]

    for limit in (4, 12, 100):
        assert taken(plugrad, flat._take_tensors, limit) == taken(torch_oracle, theirs, limit)


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("torch.distributed", "ReduceOp"),
        ("torch.distributed.fsdp", "BackwardPrefetch"),
        ("torch.distributed.fsdp", "ShardingStrategy"),
        ("torch.distributed.fsdp", "StateDictType"),
    ],
)
def test_constants_of_processes_have_pytorchs_names(
    module: str, name: str, torch_oracle: ModuleType
) -> None:
    theirs = getattr(import_module(module), name)
    assert all(hasattr(theirs, member) for member in find(module, name).__members__)


def test_missing_exceptions_can_be_named_where_others_are_caught() -> None:
    absent = find("torch.distributed.elastic.multiprocessing.errors", "ChildFailedError")

    def caught() -> None:
        try:
            raise ValueError("own")
        except absent:
            pass

    with pytest.raises(ValueError, match="own"):
        caught()


def test_a_range_of_a_profiler_runs_what_it_names() -> None:
    @find("torch.cuda.nvtx", "range")("sum")  # type: ignore[untyped-decorator]
    def added(a: int, b: int) -> int:
        return a + b

    assert added(1, 2) == 3
