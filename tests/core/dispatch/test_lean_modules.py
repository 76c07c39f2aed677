"""Imports and the making of modules are calls in the C that mypyc writes: on C that the installed
mypyc writes, which is then compiled and used."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from plugrad.codegen.translation import lean_modules, leaner, units
from tests.core.dispatch.translating import translate

pytest.importorskip("mypyc", reason="mypyc is needed to build only")

CORE = Path(__file__).resolve().parents[3] / "core"
MODULES = {
    "base.py": """
from typing import Final

ONE: Final = 1
order: list[str] = ["base"]


def twice(value: int) -> int:
    return 2 * value
""",
    "made.py": """
import json
import os.path as paths
from collections import OrderedDict, deque as Queue
from typing import Final

import base
import base as same
from base import order
from base import twice as double

TABLE: Final = double(21)
NAMES: Final = OrderedDict([("made", TABLE)])
MADE: Final = [Queue([1, 2]), same.twice(4)]
order.append("made")


def text() -> str:
    return json.dumps([TABLE, list(NAMES), len(MADE), paths.sep, same.ONE, base.ONE])


def later() -> int:
    from late import VALUE
    import late
    import late as again
    return VALUE + late.VALUE + again.VALUE
""",
    "late.py": """
from base import order

VALUE = 5
order.append("late")
""",
    "fails.py": """
from typing import Final

from base import order

FIRST: Final = [1]
SECOND: Final = [2]
THIRD: Final = [3]


def checked(text: str) -> int:
    if len(order) < 4:
        order.append("fails")
        raise ValueError(text)
    return 1


FOURTH: Final = [checked("not yet")]
""",
    "missing.py": """
import base
from base import order

from base import absent  # type: ignore[attr-defined]
""",
    "absent.py": """
from typing import Any
from json import no_such_name  # type: ignore[attr-defined]
""",
}
PROGRAM = """
import sys, traceback
import made

assert made.text() == '[42, ["made"], 2, "/", 1, 1]', made.text()
assert made.NAMES == {"made": 42} and made.TABLE == 42 and made.double(1) == 2
assert made.base is made.same is sys.modules["base"] and made.base.__made_by__ == "imports.c"
assert made.order == ["base", "made"], made.order
assert "late" not in sys.modules
assert made.later() == 15 == made.later()
assert made.order == ["base", "made", "late"]
assert made.__made_by__ == "imports.c" and sys.modules["late"].VALUE == 5


def line_of(module):
    try:
        __import__(module)
    except Exception as error:
        assert module not in sys.modules
        return type(error).__name__, traceback.extract_tb(error.__traceback__)[-1].lineno
    return None

assert line_of("fails") == ("ValueError", 14), line_of("fails")
import fails
assert fails.FIRST + fails.FOURTH == [1, 1] and made.order[3:] == ["fails"]
assert line_of("missing") == ("AttributeError", 5)
assert line_of("absent") == ("ImportError", 3)
print("as before")
"""
SETUP = """
import os
from pathlib import Path
from setuptools import setup
from mypyc.build import mypycify
from plugrad.codegen.translation import corrections, lean_modules, leaner, units
found = mypycify(["--cache-dir={null}", *{names!r}], multi_file=True, target_dir="build",
                 group_name="both")
(library,) = [each for each in found if each.name == "both__mypyc"]
for name in {names!r}:
    path = Path(f"build/__native_{{name.removesuffix('.py')}}.c")
    path.write_text(lean_modules.lean(leaner.lean(path.read_text(), lambda name: False)))
path = Path("build/misc_ops.c")
path.write_text(corrections.rename(path.read_text(), ["CPyImport_SetDunderAttrs"]))
native = [each for each in library.sources if "__native" in each]
library.sources = [each for each in library.sources if each not in native]
library.sources += [*units.write_units(native), "imports.c", "describe.c"]
assert any("__unit_" in each for each in library.sources)
library.include_dirs += [".", "build"]
setup(name="made", ext_modules=found)
"""
# In the place of mypyc's function, which wants the library's file: the core has one in modules.c.
DESCRIBE = """
#include <Python.h>
#include "CPy.h"
int CPyImport_SetDunderAttrs(PyObject *module, PyObject *name, PyObject *file, PyObject *suffix,
                             Py_ssize_t is_package) {
    PyObject *machinery = PyImport_ImportModule("importlib.machinery");
    PyObject *spec = PyObject_CallMethod(machinery, "ModuleSpec", "OO", name, Py_None);
    Py_DECREF(machinery);
    return PyModule_AddObject(module, "__spec__", spec) < 0 ||
           PyModule_AddStringConstant(module, "__made_by__", "imports.c") < 0 ? -1 : 0;
}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the modules are, with their C in `build`."""
    folder = tmp_path_factory.mktemp("modules")
    translate(folder, MODULES)
    return folder


def translated(folder: Path, name: str) -> tuple[str, str]:
    """The C of a module, and what it is made to."""
    before = (folder / "build" / f"__native_{name}.c").read_text()
    before = leaner.lean(before, lambda name: False)
    return before, lean_modules.lean(before)


STEPS = (
    "CPyImport_IsInitialized(",
    "CPyImport_ImportNative(",
    "CPyImport_GetModuleCacheForImport(",
    "CPyImport_ImportFromMany(",
    "CPyImport_GetNativeAttrs(",
    "CPyImport_BeginInitializing(",
)


@pytest.mark.parametrize("name", [name.removesuffix(".py") for name in MODULES])
def test_no_step_of_an_import_is_left(folder: Path, name: str) -> None:
    before, after = translated(folder, name)
    assert sum(before.count(step) for step in STEPS) >= 3
    assert [step for step in STEPS if step in after] == []
    assert f"CPyInit_{name}(void)\n{{\n    return plugrad_make(" in after


def test_imports_one_after_the_other_are_a_table(folder: Path) -> None:
    _, after = translated(folder, "made")
    tables = re.findall(r"plugrad_step steps\[\] = \{\n((?:        \{.*\},\n)+)    \};", after)
    lines = [re.findall(r"\{(\d+), ", table) for table in tables]
    assert lines == [["4", "5", "7", "8", "9", "10"]]
    assert len(re.findall(r"plugrad_import\w*\(&plugrad_module_late, ", after)) == 3
    assert after.count("plugrad_set_final(") == 2


def test_what_a_module_gives_back_is_a_table(folder: Path) -> None:
    before, after = translated(folder, "fails")
    assert before.count("CPy_XDECREF(CPyStatic_fails___") == 4
    assert "CPy_XDECREF(CPyStatic_fails___" not in after
    assert after.count("        (PyObject **)&CPyStatic_fails___") == 4


def test_other_c_stays(folder: Path) -> None:
    assert lean_modules.lean("int number = 3;\n") == "int number = 3;\n"
    before, _ = translated(folder, "made")
    odd = before.replace("CPyImport_ImportNative(", "CPyImport_ImportAnew(")
    found = lean_modules.lean(odd)
    assert found.count("CPyImport_ImportAnew(") == odd.count("CPyImport_ImportAnew(") > 3


def test_a_variable_that_is_used_again_is_set(folder: Path) -> None:
    before, _ = translated(folder, "made")
    (name,) = re.findall(
        r"^    (cpy_r_\w+) = CPyStatics\[\d+\]; /\* 'collections' \*/$", before, re.M
    )
    odd = before.replace("    return 1;\n", f"    used({name});\n    return 1;\n", 1)
    start = "char CPyDef_made_____top_level__(void) {"
    after = lean_modules.lean(odd)
    assert after[after.rindex(start) :] == odd[odd.rindex(start) :]


def test_the_library_works_as_before(folder: Path) -> None:
    if not (Path(sysconfig.get_path("include")) / "Python.h").exists():
        pytest.skip("Python.h is missing")
    (folder / "setup.py").write_text(SETUP.format(null=os.devnull, names=sorted(MODULES)))
    (folder / "program.py").write_text(PROGRAM)
    (folder / "describe.c").write_text(DESCRIBE)
    for name in ("imports.c", "imports.h"):
        shutil.copy(CORE / name, folder)
    built = subprocess.run(
        [sys.executable, "setup.py", "-q", "build_ext", "--inplace"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr[-3000:]
    for name in MODULES:
        (folder / name).unlink()
    done = subprocess.run(
        [sys.executable, "program.py"], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.stdout == "as before\n", done.stderr


def test_units_hold_small_modules_of_a_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lengths = {
        "a": 10,
        "a___b": 10,
        "a___b___c": 10,
        "a___b___d": 10,
        "a___b___e": units.ENOUGH,
        "a___b___f": units.ENOUGH - 1,
        "a___b___g": 10,
        "a___h": 10,
    }
    for name, length in lengths.items():
        text = f"static void plugrad_trace(int line) {{}} /* {name} */\n"
        (tmp_path / f"__native_{name}.c").write_text(text.ljust(length))
    monkeypatch.chdir(tmp_path)
    found = units.write_units(f"__native_{name}.c" for name in lengths)
    assert found == [
        "__native_a.c",
        "__unit_a_1.c",
        "__native_a___b___e.c",
        "__unit_a___b_2.c",
        "__native_a___b___g.c",
    ]
    before = Path("__unit_a___b_2.c").read_text()
    for number, name in enumerate(("a___b___c", "a___b___d", "a___b___f")):
        assert f"#define plugrad_trace plugrad_trace_{number}\n" in before
        assert f'#include "__native_{name}.c"' in before
    Path("__native_a___b___d.c").write_text("int changed;\n")
    units.write_units(f"__native_{name}.c" for name in lengths)
    assert Path("__unit_a___b_2.c").read_text() != before
