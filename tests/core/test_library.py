"""Compiled modules are found in their library, and answer about themselves like others; what the
core has in C does what `plugrad/_intrinsics.py` says."""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.resources
import importlib.util
import inspect
import pkgutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad import _intrinsics, _library
from plugrad._intrinsics import array_dtype, array_shape, array_strides, new_tensor, thread_number
from plugrad.tensor.base import TensorBase

PACKAGE = Path(plugrad.__file__).parent
compiled_only = pytest.mark.skipif(
    _library.library is None, reason="an interpreted core has no library"
)


def module(name: str) -> ModuleType:
    return importlib.import_module(name)


def run(code: str) -> str:
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return found.stdout.strip()


@compiled_only
@pytest.mark.parametrize("name", ["plugrad.dtype", "plugrad.dispatch.keys", "plugrad.graph.node"])
def test_a_compiled_module_knows_its_file_and_its_source(name: str) -> None:
    found = module(name)
    assert found.__file__ == _library.library.__file__
    assert Path(str(found.__file__)).exists()
    assert found.__name__ == name
    assert found.__package__ == name.rpartition(".")[0]
    spec = found.__spec__
    assert spec is not None
    assert (spec.name, spec.origin, spec.parent) == (name, found.__file__, found.__package__)
    assert spec.submodule_search_locations is None
    loader: Any = found.__loader__
    source = PACKAGE.joinpath(*name.split(".")[1:]).with_suffix(".py")
    assert loader.get_source(name) == source.read_text()
    assert not loader.is_package(name)
    assert importlib.util.find_spec(name) is spec


@pytest.mark.parametrize("name", ["plugrad.ops", "plugrad._generated", "plugrad.autograd.engine"])
def test_a_package_knows_its_folder(name: str) -> None:
    found = module(name)
    folder = PACKAGE.joinpath(*name.split(".")[1:])
    assert found.__file__ == str(folder / "__init__.py")
    assert list(found.__path__) == [str(folder)]
    assert found.__package__ == name
    assert importlib.resources.files(name).joinpath("__init__.py").is_file()
    inside = {each.name for each in pkgutil.iter_modules(found.__path__)}
    assert inside >= {path.stem for path in folder.glob("[a-z]*.py")}


@compiled_only
def test_only_modules_of_the_library_are_found_in_it() -> None:
    find = _library.Finder.find_spec
    assert find("plugrad.dtype") is not None
    assert find("plugrad.nothing") is None
    assert find("plugrad") is None
    assert find("numpy") is None
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'plugrad\.nothing'"):
        module("plugrad.nothing")


@compiled_only
@pytest.mark.parametrize("name", ["plugrad.cli", "plugrad.errors", "plugrad.ops.arguments"])
def test_interpreted_modules_are_found_as_python_finds_them(name: str) -> None:
    folder = PACKAGE.joinpath(*name.split(".")[1:-1])
    assert _library.Finder.find_spec(name) == importlib.machinery.PathFinder.find_spec(
        name, [str(folder)]
    )


@compiled_only
def test_the_import_loads_nothing_for_types() -> None:
    assert run("import plugrad, sys; print('mypy_extensions' in sys.modules)") == "False"


def test_the_import_loads_nothing_that_few_programs_use() -> None:
    names = ("plugrad._torch_names.typed_storages", "plugrad.dispatch.backends.links")
    found = run(f"import plugrad, sys; print([name for name in {names} if name in sys.modules])")
    assert found == "[]"
    assert {"FloatStorage", "is_storage"} <= set(plugrad.__all__) & set(dir(plugrad))
    assert set(plugrad.plugins.__all__) <= set(dir(plugrad.plugins))


@compiled_only
@pytest.mark.parametrize("made", ["plugrad.tensor", "typing"])
def test_an_import_waits_for_a_module_that_another_thread_makes(made: str) -> None:
    """`guards` imports names from `typing`, and `exchange`, which is in the same package."""
    code = (
        "import importlib, sys, threading, plugrad\n"
        "from importlib import _bootstrap\n"
        f"made, wanted = {made!r}, 'plugrad.tensor.guards'\n"
        "assert not {wanted, 'plugrad.tensor.exchange'} & sys.modules.keys()\n"
        "spec = sys.modules[made].__spec__\n"
        "lock = _bootstrap._get_module_lock(made)\n"
        "lock.acquire()\n"
        "spec._initializing = True\n"
        "thread = threading.Thread(target=importlib.import_module, args=(wanted,))\n"
        "thread.start()\n"
        "thread.join(0.2)\n"
        "print(thread.is_alive())\n"
        "spec._initializing = False\n"
        "lock.release()\n"
        "thread.join()\n"
        "print(sys.modules[wanted].__name__)\n"
    )
    assert run(code) == "True\nplugrad.tensor.guards"


@compiled_only
def test_the_library_makes_no_module_that_it_does_not_have() -> None:
    with pytest.raises(AttributeError, match="init_plugrad___nothing"):
        _library.library.create(importlib.machinery.ModuleSpec("plugrad.nothing", None))
    with pytest.raises(AttributeError):
        _library.library.create(None)


@compiled_only
def test_a_module_that_is_imported_again_is_the_same() -> None:
    code = (
        "import sys, plugrad, importlib\n"
        "name = 'plugrad.dispatch.keys'\n"
        "before = sys.modules.pop(name)\n"
        "again = importlib.import_module(name)\n"
        "assert again is before, (again, before)\n"
        "assert importlib.reload(again) is again\n"
        "print(plugrad.ones(2).sum().item())\n"
    )
    assert run(code) == "2.0"


@compiled_only
def test_a_program_may_forget_the_library() -> None:
    """Tests of plugins do: they clear what is called plugrad_something."""
    code = (
        "import sys, plugrad\n"
        "del sys.modules['plugrad__mypyc']\n"
        "assert 'plugrad.ops.on_demand.composite' not in sys.modules\n"
        "print(plugrad.pixel_shuffle(plugrad.ones(1, 4, 1, 1), 2).shape)\n"
    )
    assert run(code) == "plugrad.Size([1, 1, 2, 2])"


@pytest.mark.parametrize("enabled", [True, False])
def test_the_collector_is_as_it_was_after_the_import(enabled: bool) -> None:
    before = "enable" if enabled else "disable"
    assert run(f"import gc; gc.{before}(); import plugrad; print(gc.isenabled())") == str(enabled)


class Plain:
    """An array of a Python library, with attributes that are not C getters."""

    def __init__(self) -> None:
        self.dtype = "some dtype"
        self.shape = [2, 3]
        self.strides = None


class Subclass(np.ndarray[Any, Any]):
    @property
    def dtype(self) -> Any:  # type: ignore[override]
        return "another dtype"


def test_attributes_of_arrays() -> None:
    for array in (np.ones((2, 3), "f4"), np.ones((), bool), np.ones((2, 3))[:, ::2]):
        for _ in range(2):
            assert array_dtype(array) is array.dtype
            assert array_shape(array) == array.shape
            assert array_strides(array) == array.strides
    plain = Plain()
    assert array_dtype(plain) is plain.dtype
    assert array_shape(plain) is plain.shape
    assert array_strides(plain) is None
    mine = np.ones(3).view(Subclass)
    assert array_dtype(mine) == "another dtype"
    assert array_shape(mine) == (3,)
    assert array_dtype(np.ones(3, "i8")) == np.dtype("i8")
    scalar = np.float32(1)  # of another class of C
    assert array_dtype(scalar) == np.dtype("f4")
    assert array_shape(scalar) == ()
    assert array_shape(np.ones(2)) == (2,)


@pytest.mark.parametrize("value", [1, "x", None, object()])
def test_values_without_a_dtype_raise(value: object) -> None:
    for _ in range(2):
        with pytest.raises(AttributeError, match="dtype"):
            array_dtype(value)


def test_the_number_of_a_thread() -> None:
    assert thread_number() == threading.get_ident()
    found: list[tuple[int, int]] = []
    thread = threading.Thread(target=lambda: found.append((thread_number(), threading.get_ident())))
    thread.start()
    thread.join()
    assert found[0][0] == found[0][1] != thread_number()


class Mine(plugrad.Tensor):
    pass


def test_new_tensors_have_no_contents() -> None:
    for cls in (plugrad.Tensor, Mine):
        made = new_tensor(cls)
        assert type(made) is cls
        assert isinstance(made, TensorBase)


@pytest.mark.parametrize("cls", [int, str, 3, None])
def test_only_tensors_are_made(cls: object) -> None:
    with pytest.raises(TypeError):
        new_tensor(cls)


@compiled_only
def test_classes_of_tensors_are_classes() -> None:
    for wrong in ((1, TensorBase), (plugrad.Tensor, None)):
        with pytest.raises(TypeError, match="expected two classes"):
            _intrinsics.hold_tensor_class(*wrong)
    assert type(plugrad.ones(2)) is plugrad.Tensor


def test_base_and_bytes_of_arrays() -> None:
    whole = np.ones((2, 3), "f4")
    part = whole[:, 1:]
    plain = Plain()
    for _ in range(2):
        assert _intrinsics.array_base(whole) is None
        assert _intrinsics.array_base(part) is whole
        assert _intrinsics.array_nbytes(whole) == 24
        assert _intrinsics.array_nbytes(part) == 16
        assert _intrinsics.array_base(plain) is None
        assert _intrinsics.array_nbytes(plain) == -1
    plain.base, plain.nbytes = "b", 2.5  # type: ignore[attr-defined]
    assert _intrinsics.array_base(plain) == "b"
    assert _intrinsics.array_nbytes(plain) == -1


class Broken:
    @property
    def base(self) -> int:
        raise ValueError("base is broken")

    @property
    def nbytes(self) -> int:
        raise ValueError("nbytes is broken")


def test_errors_of_attributes_go_on() -> None:
    with pytest.raises(ValueError, match="base is broken"):
        _intrinsics.array_base(Broken())
    with pytest.raises(ValueError, match="nbytes is broken"):
        _intrinsics.array_nbytes(Broken())


TIMED = _intrinsics.FIRST_TIMED


def test_a_log_returns_its_records_in_order() -> None:
    log = _intrinsics.new_log()
    x, y, z, w = (object() for _ in range(4))
    large = 1 << 62
    _intrinsics.log0(log, 0, -1, large)
    _intrinsics.log1(log, 1, 3, -large, x)
    _intrinsics.log2(log, TIMED - 1, 1, 2, 3, 4, x, y)
    _intrinsics.log4(log, 3, 5, 6, 7, 8, x, y, z, w)
    expected = [
        (0, 0, -1, large),
        (1, 0, 3, -large, x),
        (TIMED - 1, 0, 1, 2, 3, 4, x, y),
        (3, 0, 5, 6, 7, 8, x, y, z, w),
    ]
    assert _intrinsics.logged(log) == expected
    assert _intrinsics.logged(log) == expected
    assert _intrinsics.logged(_intrinsics.new_log()) == []


def test_kinds_from_the_first_timed_one_on_have_the_time_of_the_performance_counter() -> None:
    log = _intrinsics.new_log()
    before = time.perf_counter_ns()
    _intrinsics.log0(log, TIMED, 1, 2)
    _intrinsics.log1(log, 255, 1, 2, "x")
    after = time.perf_counter_ns()
    (kind, first, *numbers), (last_kind, second, *values) = _intrinsics.logged(log)
    assert (kind, numbers, last_kind, values) == (TIMED, [1, 2], 255, [1, 2, "x"])
    assert before <= first <= second <= after


def test_a_log_grows_and_holds_each_object_once_for_each_record() -> None:
    value = object()
    before = sys.getrefcount(value)
    log = _intrinsics.new_log()
    for number in range(5000):
        _intrinsics.log2(log, TIMED, number, 0, 0, 0, value, None)
        _intrinsics.log1(log, 1, 0, 0, value)
    assert sys.getrefcount(value) == before + 10_000
    found = _intrinsics.logged(log)
    assert [record[2] for record in found[::2]] == list(range(5000))
    assert all(record[-1] is value for record in found[1::2])
    del log, found
    assert sys.getrefcount(value) == before


@compiled_only
def test_only_logs_are_written_into() -> None:
    with pytest.raises(TypeError, match=r"expected a log of records, got \[\]"):
        _intrinsics.log0([], 0, 0, 0)
    with pytest.raises(TypeError, match="expected a log of records, got 3"):
        _intrinsics.logged(3)
    with pytest.raises(TypeError, match="cannot create"):
        type(_intrinsics.new_log())()


def test_each_intrinsic_says_what_it_does() -> None:
    functions = [
        value
        for value in vars(_intrinsics).values()
        if inspect.isroutine(value) and value.__module__ == _intrinsics.__name__
    ]
    assert len(functions) >= 6
    assert all(function.__doc__ for function in functions)


STATE_OF_COLLECTOR = """
import gc
import numpy  # whose import leaves some objects behind
{before}
looked_at = [0]
def look(phase, info):
    if phase == "start":
        younger = range(info["generation"] + 1)
        looked_at.append(sum(len(gc.get_objects(generation=each)) for each in younger))
gc.callbacks.append(look)
import plugrad
lists = [[] for _ in range(1000)]
print(gc.isenabled(), gc.get_freeze_count() > 0, max(looked_at) < 10_000)
"""


@pytest.mark.parametrize(("before", "enabled"), [("", True), ("gc.disable()", False)])
def test_no_collection_looks_through_what_the_import_made(before: str, enabled: bool) -> None:
    assert run(STATE_OF_COLLECTOR.format(before=before)) == f"{enabled} False True"


COLLECTIONS = """
import gc, sys
import numpy
gc.collect()
found = []
# Before its first own import plugrad may be compiled to bytecode, which it cannot help.
gc.callbacks.append(lambda *_: found.append("plugrad._interpreters" in sys.modules))
import plugrad
print(any(found))
"""


def test_nothing_is_collected_during_the_import() -> None:
    assert run(COLLECTIONS) == "False"


def test_objects_that_the_program_froze_stay_frozen() -> None:
    assert run("import gc; gc.freeze(); import plugrad; print(gc.get_freeze_count() > 0)") == "True"
