"""What is taken out of the C that mypyc writes, on C that the installed mypyc writes."""

from __future__ import annotations

import re

import pytest

from plugrad.codegen.translation.leaner import lean, only_for_c
from tests.core.dispatch.translating import translate

pytest.importorskip("mypyc", reason="mypyc is needed to build only")

SOURCE = """
from typing import Final

from mypy_extensions import i64

LIMIT: Final = object()
TABLE: Final = [len]


def _checked(value: int) -> int:
    if TABLE[0]([value]) != 1:
        raise ValueError
    return value + 1


def _named(value: int) -> int:
    return _checked(value) + 1


def double(value: object) -> int:
    number: int = value  # type: ignore[assignment]
    return _named(number) * 2 if LIMIT is not None else 0


CHOSEN: Final = {"named": _named}


class Tensor:
    # Made elsewhere: mypyc does not see that each has one.
    _keyset: i64


def both(a: Tensor, b: Tensor) -> i64:
    return a._keyset | b._keyset
"""


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The C of `SOURCE`."""
    folder = tmp_path_factory.mktemp("translated")
    translate(folder, {"checked.py": SOURCE, "other.py": ""})
    return (folder / "build" / "__native_checked.c").read_text()


def private(name: str) -> bool:
    return only_for_c(name, "checked", {})


# A Final name that is loaded, and compared with NULL.
CHECK = re.compile(r"= CPyStatic_checked___(?:LIMIT|TABLE);\n    if \((?:un)?likely\(")


def test_final_names_are_not_checked_at_each_use(written: str) -> None:
    found = lean(written, private)
    assert len(CHECK.findall(written)) >= 2
    assert CHECK.findall(found) == []
    loads = r"= CPyStatic_checked___(?:LIMIT|TABLE);\n    goto CPyL"
    assert len(re.findall(loads, found)) == len(CHECK.findall(written))


def test_key_sets_are_not_checked_in_generated_modules(written: str) -> None:
    checked = "attribute '_keyset' of 'Tensor' undefined"
    uses = len(re.findall(r"^    cpy_r_\w+ = .*->__keyset;$", written, re.M))
    assert uses == 2
    for generated in (False, True):
        found = lean(written, private, generated)
        body = found[found.index(" CPyDef_checked___both(") :]
        body = body[body.index("{\n") : body.index("\n}\n")]
        assert len(re.findall(r"^    cpy_r_\w+ = .*->__keyset;$", body, re.M)) == uses
        assert body.count(checked) == (0 if generated else uses)


def test_names_for_types_are_imported_only_where_they_are_used(written: str) -> None:
    assert "'mypy_extensions'" in written
    assert "mypy_extensions" not in lean(written, private)
    assert "'mypy_extensions'" in lean(f"{written}\n/* 'i64' */\n", private)


def test_tracebacks_have_functions_of_the_file(written: str) -> None:
    found = lean(written, lambda name: False)
    assert found.count("CPy_AddTraceback(") == 1
    assert found.count("CPy_TypeErrorTraceback(") == 1
    # One more, where it is defined, and one less, since an import is gone.
    assert found.count("plugrad_trace(") == written.count("CPy_AddTraceback(")
    types = written.count("CPy_TypeErrorTraceback(")
    assert found.count("plugrad_trace_type(") == types + 1
    assert found.index("#include") < found.index("PLUGRAD_COLD plugrad_trace(")


def test_python_enters_no_function_that_only_c_calls(written: str) -> None:
    found = lean(written, private)
    for name, there in (("_checked", False), ("_named", True), ("double", True)):
        entered = f" *CPyPy_checked___{name}(PyObject *self"
        assert entered in written
        assert (entered in found) == there
        assert (f'{{"{name}", (PyCFunction)' in found) == there
        assert f" CPyDef_checked___{name}(" in found


def test_c_without_functions_stays(written: str) -> None:
    assert lean("int number = 3;\n", private) == "int number = 3;\n"
