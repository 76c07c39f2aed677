"""What classes do not need is taken out of the C that mypyc writes: on C that the installed mypyc
writes, which is then compiled and used."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from plugrad.codegen.translation import lean_classes, leaner
from tests.core.dispatch.translating import translate

pytest.importorskip("mypyc", reason="mypyc is needed to build only")

PACKAGE = {
    "base.py": """
from typing import Any


class Node:
    def __init__(self, number: int) -> None:
        self._edge0: object = None
        self._extra: object = None
        self.number = number

    def apply(self, grads: list[Any]) -> list[Any]:
        raise NotImplementedError

    def _release_variables(self) -> None:
        pass

    def name(self) -> str:
        return type(self).__name__


def run(node: Node, grads: list[Any]) -> list[Any]:
    return node.apply(grads)
""",
    "made.py": """
from typing import Any, final

from base import Node


@final
class Node_double(Node):
    def __init__(self, number: int) -> None:
        super().__init__(number)

    def apply(self, grads: list[Any]) -> list[Any]:
        return [grads[0] * 2]


@final
class Node_keep(Node):
    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.saved: Any = None

    def apply(self, grads: list[Any]) -> list[Any]:
        return [self.saved]

    def _release_variables(self) -> None:
        self.saved = None


class Other:
    def twice(self, value: int) -> int:
        return value * 2


def double(number: int) -> Node:
    return Node_double(number)


def keep(number: int, value: object) -> Node:
    node = Node_keep(number)
    node.saved = value
    return node
""",
}

# What `leaner` and `call_errors` add before.
REPORT = """
void plugrad_wrong_argument(const char *expected, PyObject *value, const char *function,
                            const char *argument, const char *const *keywords, Py_ssize_t given)
{
    PyErr_Format(PyExc_TypeError, "%s: %s", argument, expected);
}
"""

PROGRAM = """
import gc, weakref
import made
from base import run

class Held: pass

assert run(made.double(1), [4]) == [8]
node = made.double(3)
assert node.number == 3 and node.name() == "Node_double"
assert node.apply([5]) == [10] and node.apply(grads=[5]) == [10]
assert node._release_variables() is None
try:
    node.apply(5)
except TypeError as error:
    assert str(error) == "grads: list", error
else:
    raise AssertionError
try:
    type(node)(1)
except TypeError as error:
    assert "cannot create 'Node_double' instances" in str(error), error
else:
    raise AssertionError
held = Held()
node, gone = made.keep(1, held), weakref.ref(held)
assert node.apply([]) == [held]
node._release_variables()
assert node.apply([]) == [None]
# A cycle through a field of the class and one of its base, both ways.
other = made.keep(2, held)
held.node = other
del held, other, node
gc.collect()
assert gone() is None
held = Held()
gone = weakref.ref(held)
node = made.double(1)
node._edge0 = held
held.node = node
del held, node
gc.collect()
assert gone() is None
assert made.Other().twice(4) == 8
print("as before")
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the package is, with its C in `build`."""
    folder = tmp_path_factory.mktemp("classes")
    translate(folder, PACKAGE)
    return folder


@pytest.fixture(scope="module")
def before(folder: Path) -> str:
    text = (folder / "build" / "__native_made.c").read_text()
    return leaner.lean(text, lambda name: False)


def test_tables_of_methods_are_constants(before: str) -> None:
    found = lean_classes.lean(before)
    assert before.count("_vtable_scratch[] = {") == 3
    assert "_vtable_scratch" not in found
    assert len(re.findall(r"^static CPyVTableItem \w+_vtable\[\] = \{$", found, re.M)) == 3


def test_nodes_share_what_they_do_alike(before: str) -> None:
    found = lean_classes.lean(before)
    for once in ("Py_VISIT(self->__edge0)", "Py_CLEAR(self->__edge0)", "CPyType_FromTemplate("):
        assert before.count(once) >= 2
    assert found.count("Py_VISIT(self->__edge0)") == 1
    assert found.count("Py_CLEAR(self->__edge0)") == 1
    assert found.count("Py_VISIT(self->_saved)") == 1
    assert found.count("plugrad_make_node(CPyType_") == 2
    assert found.count("CPyType_FromTemplate(") == 2  # the one of Other is left
    assert not re.search(r"CPyPy_made___Node_\w+\(", found)
    assert "CPyPy_made___Other___twice(" in found


def test_other_c_stays(before: str) -> None:
    assert lean_classes.lean("int number = 3;\n") == "int number = 3;\n"
    odd = before.replace("CPy_InitSubclass(", "CPy_InitSubclassAnew(")
    found = lean_classes.lean(odd)
    assert "plugrad_make_node" not in found
    assert "Py_VISIT(self->__edge0)" in found


def test_the_library_works_as_before(folder: Path, before: str) -> None:
    setup = f"""
import os
from pathlib import Path
from setuptools import setup
from mypyc.build import mypycify
found = mypycify(["--cache-dir={os.devnull}", *{sorted(PACKAGE)!r}], multi_file=True,
                 target_dir="build", group_name="both")
from plugrad.codegen.translation import lean_classes, leaner
path = Path("build/__native_made.c")
text = lean_classes.lean(leaner.lean(path.read_text(), lambda name: False))
assert "plugrad_make_node" in text
first, rest = text.split("\\n#ifdef __GNUC__", 1)
path.write_text(first + {REPORT!r} + "\\n#ifdef __GNUC__" + rest)
setup(name="made", ext_modules=found)
"""
    if not (Path(sysconfig.get_path("include")) / "Python.h").exists():
        pytest.skip("Python.h is missing")
    (folder / "setup.py").write_text(setup)
    (folder / "program.py").write_text(PROGRAM)
    built = subprocess.run(
        [sys.executable, "setup.py", "-q", "build_ext", "--inplace"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr[-3000:]
    done = subprocess.run(
        [sys.executable, "program.py"], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.stdout == "as before\n", done.stderr
