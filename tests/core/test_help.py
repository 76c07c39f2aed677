"""What `help()` and `inspect.signature` say. Oracle: the docstrings and definitions in the source,
which the compiled core must repeat."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import plugrad
from plugrad.codegen.docstrings import describe, read, signature

PACKAGE = Path(plugrad.__file__).parent
# The file of compiled modules.
LIBRARY = getattr(sys.modules.get("plugrad__mypyc"), "__file__", None)
SPARE = re.compile(r"argument\d+")  # Takes a deprecated order of arguments, and nothing else.


def public_functions() -> list[str]:
    return [
        name
        for name in sorted(vars(plugrad))
        if not name.startswith("_") and inspect.isroutine(getattr(plugrad, name))
    ]


def members() -> list[str]:
    found = inspect.classify_class_attrs(plugrad.Tensor)
    return sorted(a.name for a in found if a.defining_class is not object and a.name[0] != "_")


@pytest.mark.parametrize("name", public_functions())
def test_every_public_function_has_a_text_and_a_signature(name: str) -> None:
    function = getattr(plugrad, name)
    assert (inspect.getdoc(function) or "").strip(), f"plugrad.{name} has no docstring"
    parameters = inspect.signature(function).parameters
    if inspect.isbuiltin(function):  # Only a compiled core can leave out what is deprecated.
        assert not [p for p in parameters if SPARE.fullmatch(p)]


@pytest.mark.parametrize("name", members())
def test_every_member_of_tensor_has_a_text(name: str) -> None:
    member = inspect.getattr_static(plugrad.Tensor, name)
    assert (inspect.getdoc(member) or "").strip(), f"Tensor.{name} has no docstring"
    if callable(member):
        inspect.signature(member)


# Modules that users and authors of plugins import from.
PUBLIC = (
    *("plugrad.array_api", "plugrad.array_api.fft", "plugrad.array_api.linalg"),
    *("plugrad", "plugrad.amp", "plugrad.autograd", "plugrad.autograd.forward_ad"),
    *("plugrad.autograd.function", "plugrad.autograd.functional", "plugrad.autograd.grad_mode"),
    *("plugrad.autograd.graph", "plugrad.autograd.profiler", "plugrad.autograd.checkpoint"),
    *("plugrad.config", "plugrad.dispatch", "plugrad.errors", "plugrad.func", "plugrad.library"),
    *("plugrad.fft", "plugrad.masked", "plugrad.signal", "plugrad.signal.windows"),
    *("plugrad.linalg", "plugrad.overrides", "plugrad.plugins", "plugrad.plugins.allocation"),
    *("plugrad.plugins.arguments", "plugrad.plugins.array_namespace", "plugrad.plugins.cases"),
    *("plugrad.plugins.error_function", "plugrad.plugins.generators", "plugrad.plugins.hookspecs"),
    *("plugrad.plugins.kernel_errors", "plugrad.plugins.protocols", "plugrad.plugins.scopes"),
    *("plugrad.plugins.resampling", "plugrad.plugins.spacing", "plugrad.plugins.strides"),
    *("plugrad.plugins.tracing",),
    *("plugrad.plugins.windows", "plugrad.profiler", "plugrad.random", "plugrad.testing"),
    *("plugrad.testing.cases", "plugrad.testing.gradcheck", "plugrad.testing.opcheck"),
    *("plugrad.nn", "plugrad.nn.functional", "plugrad.nn.init", "plugrad.nn.utils"),
    *("plugrad.optim", "plugrad.optim.lr_scheduler", "plugrad.utils", "plugrad.utils.data"),
    *("plugrad.types", "plugrad.version"),
    *("plugrad.optim.swa_utils", "plugrad.utils.checkpoint", "plugrad.special"),
    *("plugrad.distributions", "plugrad.hub", "plugrad.multiprocessing", "plugrad.serialization"),
    "plugrad.onnx",
)


@pytest.mark.parametrize("name", PUBLIC)
def test_public_modules_say_what_they_offer(name: str) -> None:
    if name.startswith(("plugrad.nn", "plugrad.optim", "plugrad.utils")) or name in (
        *("plugrad.hub", "plugrad.multiprocessing", "plugrad.serialization"),
    ):
        pytest.importorskip("plugrad_nn")
    elif name in ("plugrad.special", "plugrad.distributions", "plugrad.onnx"):
        pytest.importorskip(name.replace(".", "_"))
    module = importlib.import_module(name)
    assert (module.__doc__ or "").strip()
    assert module.__all__
    assert [item for item in module.__all__ if not hasattr(module, item)] == []


def modules_in_source() -> list[str]:
    """The modules that may be compiled: packages and modules that are loaded by now."""
    return sorted(
        name
        for name, module in sys.modules.items()
        if name.startswith("plugrad.")
        and (file := getattr(module, "__file__", None)) is not None
        and (Path(file).is_relative_to(PACKAGE) or file == LIBRARY)
        and source_of(name).exists()
    )


def source_of(module: str) -> Path:
    path = PACKAGE.joinpath(*module.split(".")[1:])
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


@pytest.mark.parametrize("name", modules_in_source())
def test_a_module_says_what_its_source_says(name: str) -> None:
    scope = read(source_of(name).read_text())
    module = importlib.import_module(name)
    assert module.__doc__ is None or inspect.cleandoc(module.__doc__) == scope.text
    assert (module.__doc__ is None) == (scope.text is None)
    for called, function in scope.functions.items():
        made = vars(module).get(called)
        if not inspect.isroutine(made) or made.__module__ != name or made.__name__ != called:
            continue  # Replaced by something else.
        assert inspect.getdoc(made) == ast.get_docstring(function), called
        if function.decorator_list:
            continue  # They may give it other arguments.
        names = [p for p in inspect.signature(made).parameters if not SPARE.fullmatch(p)]
        written = ast.parse(f"def {signature(called, function)}: ...").body[0]
        assert isinstance(written, ast.FunctionDef)
        expected = every_name(written)
        assert names == expected, called
    for called, cls in scope.classes.items():
        made = vars(module).get(called)
        if isinstance(made, type) and made.__module__ == name and cls.text is not None:
            assert inspect.cleandoc(made.__doc__ or "") == cls.text, called


def every_name(function: ast.FunctionDef) -> list[str]:
    given = function.args
    found = [*given.posonlyargs, *given.args, given.vararg, *given.kwonlyargs, given.kwarg]
    return [argument.arg for argument in found if argument is not None]


SOURCE = textwrap.dedent('''
    """A module's "text"."""

    class Pair:
        """Two numbers.

        Attributes:
            first, second: one
                of them.
        """

        first: int

        def __init__(self, first: int, second: object = ()) -> None: ...

        @property
        def both(self) -> int:
            """Their sum."""

        def scale(self, by, spare=MISSING, *, inplace=OTHER):
            """Scales them."""

    @overload
    def f(a): ...
    def f(self, b=MISSING, argument3=MISSING, /, *rest, c=-1, **more):
        """Größer than a?

        It is.
        """
''')
GENERATED = r"""
static PyGetSetDef pair___Pair_getseters[] = {
    {"first",
     (getter)pair___Pair_get_first, (setter)pair___Pair_set_first,
     NULL, NULL},
    {"both",
     (getter)pair___Pair_get_both,
 NULL, NULL, NULL},
    {NULL}  /* Sentinel */
};
static PyMethodDef pair___Pair_methods[] = {
    {"__init__",
     (PyCFunction)CPyPy_pair___Pair_____init__,
     METH_FASTCALL | METH_KEYWORDS, PyDoc_STR(NULL)},
    {"scale",
     (PyCFunction)CPyPy_pair___Pair___scale,
     METH_FASTCALL | METH_KEYWORDS, PyDoc_STR(NULL)},
    {NULL}  /* Sentinel */
};
static PyTypeObject CPyType_pair___Pair_template_ = {
    .tp_name = "Pair",
    .tp_doc = PyDoc_STR(NULL),
};
static PyMethodDef pairmodule_methods[] = {
    {"f", (PyCFunction)CPyPy_pair___f, METH_FASTCALL, PyDoc_STR(NULL) /* docstring */},
    {NULL, NULL, 0, NULL}
};
static struct PyModuleDef pairmodule = {
    PyModuleDef_HEAD_INIT,
    "pair",
    NULL, /* docstring */
};
"""


def test_texts_stand_where_cpython_looks_for_them() -> None:
    text = describe(GENERATED, SOURCE)
    assert '"pair",\n    "A module\'s \\"text\\"."' in text
    assert '"one\\n"\n"of them.", NULL}' in text
    assert '"Their sum.", NULL}' in text
    assert '"scale($self, by, spare, *, inplace=...)\\n"\n"--\\n"\n"\\n"\n"Scales them."' in text
    assert '"Pair(first, second=())\\n"\n"--\\n"\n"\\n"\n"Two numbers.\\n"' in text
    assert '"f(self, b, /, *rest, c=-1, **more)\\n"' in text
    assert '"Gr\\303\\266\\303\\237er than a\\?\\n"\n"\\n"\n"It is."' in text
    assert "PyDoc_STR(NULL)" not in text
    assert "NULL, /* docstring" not in text


def test_c_of_another_form_is_refused() -> None:
    with pytest.raises(ValueError, match="does not define a module"):
        describe("int x;", SOURCE)
    with pytest.raises(ValueError, match="no table of the module's functions"):
        describe("int x;", "def f(): ...")


NAMESPACES = [
    *("", "amp", "autograd", "autograd.anomaly_mode", "autograd.forward_ad", "autograd.function"),
    *("autograd.functional", "autograd.grad_mode", "autograd.graph", "autograd.profiler"),
    *("config", "dispatch", "errors", "func", "library", "linalg", "nn", "nn.functional"),
    *("nn.init", "nn.parameter", "nn.utils", "optim", "optim.lr_scheduler", "overrides"),
    *("plugins", "profiler", "random", "special", "testing", "utils", "utils.checkpoint"),
    *("utils.data", "fft", "masked", "signal", "signal.windows", "types", "version"),
]


def texts(module: ModuleType) -> Iterator[tuple[str, str | None]]:
    """Each name that a module lists, and each member of its classes, with its text."""
    for name in module.__all__:
        value = getattr(module, name)
        if isinstance(value, type):
            yield name, value.__doc__
            for member in inspect.classify_class_attrs(value):
                ours = member.defining_class.__module__.startswith("plugrad")
                if ours and member.kind != "data" and not member.name.startswith("_"):
                    static = inspect.getattr_static(value, member.name)
                    text = inspect.getdoc(getattr(value, member.name, static))
                    yield f"{name}.{member.name}", text or inspect.getdoc(static)
        elif callable(value) or inspect.ismodule(value):
            yield name, inspect.getdoc(value)


@pytest.mark.parametrize("name", NAMESPACES)
def test_a_namespace_lists_what_it_has_and_each_has_a_text(name: str) -> None:
    module = importlib.import_module(f"plugrad.{name}".rstrip("."))
    assert sorted(set(module.__all__)) == sorted(module.__all__)
    # For some classes, mypyc writes a text of its own.
    assert [one for one, text in texts(module) if not (text or "").strip() or "mypyc" in text] == []


def test_dir_shows_what_users_need_and_no_internals() -> None:
    shown = dir(plugrad)
    wanted = "amp autocast autograd func library linalg nn optim special testing utils vmap save"
    assert set(wanted.split()) <= set(shown)
    internal = ("annotations", "graph", "levels", "elu_backward", "nll_loss_forward")
    assert not set(internal) & set(shown)
    assert [name for name in shown if name.startswith("_") and not name.startswith("__")] == []
    for name in shown:
        getattr(plugrad, name)


@pytest.mark.parametrize(
    "name",
    ["fft", "functional", "linalg", "masked", "profiler", "random", "signal.windows", "types"],
)
def test_dir_of_a_namespace_shows_what_it_offers(name: str) -> None:
    module = importlib.import_module(f"plugrad.{name}")
    assert sorted(dir(module)) == sorted(module.__all__)


def test_dir_of_autograd_shows_names_that_there_are() -> None:
    shown = dir(plugrad.autograd)
    assert {"backward", "forward_ad", "function", "functional", "profiler"} <= set(shown)
    assert not {"Any", "importlib", "run_backward"} & set(shown)
    for name in shown:
        getattr(plugrad.autograd, name)


def test_tensors_show_no_internals() -> None:
    shown = set(dir(plugrad.Tensor)) | set(dir(plugrad.ones(2)))
    internal = "bump_version keyset meta needs_grad replace_array shared sizes version view_info"
    assert not set(internal.split()) & shown


def test_a_star_leaves_pythons_types_alone() -> None:
    names: dict[str, object] = {}
    exec("from plugrad import *", names)
    assert names["zeros"] is plugrad.zeros
    assert not {"bool", "float", "int", "nn"} & set(names)


def documented() -> list[str]:
    """The public functions and, where there is no function of their name, the methods."""
    functions = public_functions()
    return [*functions, *(f"Tensor.{name}" for name in members() if name not in functions)]


@pytest.mark.parametrize("name", documented())
def test_the_example_of_an_operator_runs(name: str) -> None:
    value = (
        inspect.getattr_static(plugrad.Tensor, name[7:]) if "." in name else getattr(plugrad, name)
    )
    text = inspect.getdoc(value) or ""
    test = doctest.DocTestParser().get_doctest(text, {}, name, None, None)
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False)
    runner.run(test, out=said.append)
    assert runner.failures == 0, "".join(said)
