"""The examples in docstrings run, in the core compiled or not, and every class has one.

Docstrings are read from the source: compiled functions are invisible to doctest's own search.
"""

from __future__ import annotations

import ast
import doctest
import functools
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import plugrad

PACKAGES = (
    "plugrad",
    "plugrad_distributed",
    "plugrad_distributions",
    "plugrad_nn",
    "plugrad_onnx",
    "plugrad_viewer",
)
# Their functions have one, too, and describe their arguments.
FUNCTIONS = (
    *("hub", "multiprocessing", "nn.functional", "nn.init", "nn.utils", "nn.utils.fusion"),
    *("nn.utils.memory_format", "nn.utils.parametrizations", "nn.utils.parametrize"),
    *("nn.utils.prune", "nn.utils.rnn", "nn.utils.stateless", "optim", "optim.lr_scheduler"),
    *("optim.swa_utils", "serialization", "utils.checkpoint", "utils.data"),
)
# Their functions and classes have one.
EXAMPLES = (
    *("distributed.algorithms.ddp_comm_hooks", "distributed.checkpoint"),
    *(f"distributed.algorithms.ddp_comm_hooks.{kind}_hooks" for kind in ("debugging", "default")),
    *("distributed.algorithms.ddp_comm_hooks.powerSGD_hook", "distributed.checkpoint.state_dict"),
    *("distributed", "distributed.algorithms.join", "distributed.device_mesh", "distributed.fsdp"),
    *("distributed.nn", "distributed.optim", "distributed.pipelining", "distributed.simulate"),
    *("distributed.tensor", "distributed.tensor.experimental", "distributed.tensor.parallel"),
    *("distributed.tensor.placement_types", "futures", "nn.parallel"),
    *("amp", "config", "func", "linalg", "masked", "onnx", "profiler", "quasirandom", "random"),
    *("special", "utils.flop_counter", "utils.module_tracker", "viewer", "fft"),
    *("autograd.functional", "autograd.graph", "autograd.profiler", "library", "overrides"),
    *("autograd", "plugins", "testing", "types"),
)
# Modules with classes other than exceptions, enumerations and `autograd.Function`s.
EVERY_ARGUMENT = [one for one in FUNCTIONS if one not in ("serialization", "utils.checkpoint")]
CLASSES = ("nn", "optim", "optim.lr_scheduler", "optim.swa_utils", "distributions")
# One failure hides no other, and what follows a failure may wait for ever.
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.FAIL_FAST
Documented = ast.Module | ast.ClassDef | ast.FunctionDef


def docstrings(tree: ast.Module) -> Iterator[tuple[str, int, str]]:
    """Name, line and text of every docstring that has an example."""
    stack: list[tuple[str, Documented]] = [("", tree)]
    while stack:
        prefix, node = stack.pop()
        text = ast.get_docstring(node, clean=True)
        if text and ">>>" in text:
            yield prefix, node.body[0].lineno, text
        stack.extend(
            (f"{prefix}.{child.name}".lstrip("."), child)
            for child in ast.iter_child_nodes(node)
            if isinstance(child, (ast.ClassDef, ast.FunctionDef))
        )


@functools.cache
def from_docstrings() -> list[doctest.DocTest]:
    parser = doctest.DocTestParser()
    found = []
    roots = [Path(str(importlib.import_module(name).__file__)).parent for name in PACKAGES]
    for path in sorted(path for root in roots for path in root.rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        if ">>>" not in source:
            continue
        module = (
            path.relative_to(next(root for root in roots if root in path.parents).parent)
            .with_suffix("")
            .as_posix()
            .replace("/", ".")
        )
        for name, line, text in docstrings(ast.parse(source)):
            label = f"{module}:{name}" if name else module
            found.append(parser.get_doctest(text, {}, label, str(path), line))
    return found


@pytest.mark.parametrize("example", from_docstrings(), ids=lambda test: test.name)
def test_example(example: doctest.DocTest) -> None:
    plugrad.manual_seed(0)
    output: list[str] = []
    doctest.DocTestRunner(optionflags=FLAGS, verbose=False).run(example, out=output.append)
    assert not output, "".join(output)


def test_there_are_examples() -> None:
    assert len(from_docstrings()) > 10


@pytest.mark.parametrize("namespace", CLASSES)
def test_every_class_of_a_namespace_has_an_example(namespace: str) -> None:
    there = importlib.import_module(f"plugrad.{namespace}")
    classes = {name: getattr(there, name) for name in there.__all__}
    without = [
        name
        for name, found in classes.items()
        if isinstance(found, type) and ">>>" not in (found.__dict__.get("__doc__") or "")
    ]
    assert without == []


def own_members(namespace: str) -> dict[str, Any]:
    """The functions and classes that a namespace lists and that are not Python's or private."""
    there = importlib.import_module(f"plugrad.{namespace}")
    listed = {name: getattr(there, name) for name in there.__all__ if not name.startswith("_")}
    return {
        name: found
        for name, found in listed.items()
        if callable(found) and str(getattr(found, "__module__", "")).startswith("plugrad")
    }


# Attributes that the class describes, PyTorch's names with one answer, and methods that it removed.
WITHOUT_EXAMPLE = {
    *("device", "dtype"),
    *("is_ipu", "is_maia", "is_mkldnn", "is_mtia", "is_nested", "is_quantized", "is_sparse"),
    *("is_sparse_csr", "is_vulkan", "is_xla", "layout", "name"),
    *("is_cuda", "is_meta", "is_mps", "is_xpu"),
    *("eig", "lstsq", "reinforce", "solve", "symeig"),
}


def test_every_public_function_and_class_has_an_example() -> None:
    there = {name: getattr(plugrad, name) for name in plugrad.__all__}
    members = {
        name: found
        for name, found in there.items()
        if callable(found) and str(found.__module__).startswith("plugrad") and not raised(found)
    }
    assert [name for name, found in members.items() if ">>>" not in (found.__doc__ or "")] == []


def test_every_member_of_tensor_has_an_example() -> None:
    members = {
        one.name: inspect.getdoc(one.object) or ""
        for one in inspect.classify_class_attrs(plugrad.Tensor)
        if one.defining_class is not object and one.name[0] != "_"
    }
    assert {name for name, text in members.items() if ">>>" not in text} - WITHOUT_EXAMPLE == set()


@pytest.mark.parametrize("name", [n for n in dir(plugrad) if n.endswith(("Storage", "Tensor"))])
def test_the_example_of_a_class_that_a_loop_makes_runs(name: str) -> None:
    text = inspect.getdoc(getattr(plugrad, name)) or ""
    output: list[str] = []
    example = doctest.DocTestParser().get_doctest(text, {}, name, None, 0)
    doctest.DocTestRunner(optionflags=FLAGS, verbose=False).run(example, out=output.append)
    assert not output, "".join(output)


def raised(found: Any) -> bool:
    """Whether it is an exception: examples are with what raises it."""
    return isinstance(found, type) and issubclass(found, Exception)


@pytest.mark.parametrize("namespace", [*FUNCTIONS, *EXAMPLES])
def test_every_function_of_a_namespace_has_an_example(namespace: str) -> None:
    members = {name: found for name, found in own_members(namespace).items() if not raised(found)}
    assert members
    assert [name for name, found in members.items() if ">>>" not in (found.__doc__ or "")] == []


@pytest.mark.parametrize("namespace", FUNCTIONS)
def test_every_function_of_a_namespace_says_what_its_arguments_are(namespace: str) -> None:
    without = [
        name
        for name, found in own_members(namespace).items()
        if inspect.isroutine(found)
        and inspect.signature(found).parameters
        and "Args:" not in (found.__doc__ or "")
    ]
    assert without == []


def described(text: str) -> set[str]:
    """The arguments that a docstring's section `Args:` has, alone or several with one text."""
    section = re.search(r"^Args:\n((?:(?: {4}.*)?(?:\n|$))+)", text, re.MULTILINE)
    entries = re.findall(r"^ {4}(\w[\w, ]*):", section[1] if section else "", re.MULTILINE)
    return {name.strip() for entry in entries for name in entry.split(",")}


@pytest.mark.parametrize("namespace", EVERY_ARGUMENT)
def test_each_argument_is_described_and_nothing_else(namespace: str) -> None:
    wrong = {}
    for name, found in own_members(namespace).items():
        taken = set(inspect.signature(found).parameters)
        if differing := taken ^ described(inspect.getdoc(found) or ""):
            wrong[name] = {one for one in differing if not one.startswith("_")}
    assert {name: differing for name, differing in wrong.items() if differing} == {}
