"""Corrections to the C that mypyc writes: what is wrong for its classes, and functions of our own
in the place of some. `setup.py` passes each C file to one of these, or to several."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

# The entries of method tables that only mypyc itself may call, since they crash or reset fields
# when they are called from Python; and where an object is freed or traversed.
_INTERNAL_METHODS = re.compile(
    r'^ *\{"(?:__internal_mypyc_setup|__mypyc_defaults_setup)",[^{}]*\},\n', re.MULTILINE
)
_SUBCLASSED = re.compile(r"^static CPyVTableItem (\w+)_vtable_shadow\[", re.MULTILINE)
_FREES = "    Py_TYPE(self)->tp_free((PyObject *)self);\n"
_FREES_AND_COUNTS = (
    "    PyTypeObject *type_of_self = Py_TYPE(self);\n"
    "    type_of_self->tp_free((PyObject *)self);\n"
    "    Py_DECREF(type_of_self);\n"
)
_TRAVERSES = "    int rv = 0;\n"

# The native classes of tensors, and the C code of mypyc's casts and `isinstance` for them.
_TENSOR_CLASSES = r"(CPyType_base___TensorBase|CPyType_methods___TensorMethods)"
_CAST = re.compile(rf"PyObject_TypeCheck\((\w+), {_TENSOR_CLASSES}\)")
_ISINSTANCE = re.compile(
    rf"( = \(PyObject \*\){_TENSOR_CLASSES};\n +\w+ = )CPy_TypeCheck\((\w+), \w+\)"
)


def correct_classes(text: str) -> str:
    """The C of a module with what mypyc writes for classes changed.

    * Its internal functions are not methods that Python can call.
    * An instance owns a reference to its class; it releases it when it is freed, and reports it to
      the collector. Otherwise a subclass that a program defines is never freed once it has had an
      instance. Only classes that may have such subclasses need this.

    Raises:
        ValueError: the C does not have mypyc's form, or a native class defines `__new__`.
    """
    if "CPy_SetupObject(" in text:
        raise ValueError("a native class must not define __new__")
    text = _INTERNAL_METHODS.sub("", text)
    for name in _SUBCLASSED.findall(text):
        text = _replaced_within(text, f"\n{name}_dealloc(", _FREES, _FREES_AND_COUNTS)
        visits = _TRAVERSES + "    Py_VISIT(Py_TYPE(self));\n"
        text = _replaced_within(text, f"\n{name}_traverse(", _TRAVERSES, visits)
    return text


def _replaced_within(text: str, function: str, old: str, new: str) -> str:
    """Replace a line of the C function with a definition that begins like `function`."""
    start = next(found.end() for found in re.finditer(re.escape(function) + r"[^;{]*\{", text))
    end = text.index("\n}", start)
    if old not in text[start:end]:
        raise ValueError(f"this version of mypyc does not write {old!r} in {function!r}")
    return text[:start] + text[start:end].replace(old, new) + text[end:]


def tell_tensors_apart(text: str) -> str:
    """The C of a module that recognises a tensor by one comparison."""
    changed = _CAST.sub(r"PLUGRAD_IS_TENSOR(\1, \2)", text)
    changed = _ISINSTANCE.sub(r"\1PLUGRAD_IS_TENSOR(\3, \2)", changed)
    return text if changed == text else f'#include "intrinsics.h"\n{changed}'


def call_intrinsics(text: str, source: str, module: str, prefix: str) -> str:
    """The C of the module of intrinsics, whose functions call those in C.

    Args:
        source: of the module.
        module: its name, without its package's.
        prefix: what the names of the functions in C begin with.

    Raises:
        ValueError: the C does not have mypyc's form.
    """
    functions = [
        node.name
        for node in ast.parse(source).body
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
    ]
    for name in functions:
        definition = re.compile(
            rf"^(\w+ \*?)(CPyDef_{module}___{name})\(([^)]*)\) \{{\n.*?^\}}\n", re.M | re.S
        )
        found = definition.search(text)
        if found is None:
            raise ValueError(f"this version of mypyc writes {name!r} in another way")
        kind, function, parameters = found.groups()
        names = ", ".join(re.findall(r"\w+(?=,|$)", parameters.replace("void", "")))
        text = (
            f"{text[: found.start()]}{kind}{prefix}_{name}({parameters});\n"
            f"{kind}{function}({parameters}) {{\n    return {prefix}_{name}({names});\n}}\n"
            f"{text[found.end() :]}"
        )
    return text


def rename(text: str, functions: Iterable[str]) -> str:
    """C of mypyc's own with other names for functions, so that all calls come to ours.

    Raises:
        ValueError: it does not define one of them once.
    """
    for name in functions:
        text, count = re.subn(rf"^(\w+ \*?){name}(?=\()", rf"\1mypyc_{name}", text, flags=re.M)
        if count != 1:
            raise ValueError(f"this version of mypyc does not define {name!r} once")
    return text


def add_functions(text: str, library: str) -> str:
    """The C that makes the library, which takes in the functions of modules.c.

    Raises:
        ValueError: the C does not have mypyc's form.
    """
    declared = "int plugrad_add_functions(PyObject *library);\n"
    start = "    PyObject *tmp;\n"
    call = f"{start}    if (plugrad_add_functions(module) < 0) return -1;\n"
    text = _replaced_within(text, f"\nstatic int exec_{library}(", start, call)
    return text.replace(f"static int exec_{library}(", f"{declared}static int exec_{library}(", 1)


def import_parents(text: str) -> str:
    """C of mypyc's own, in which modules.c imports the package of a module.

    Raises:
        ValueError: the C does not have mypyc's form.
    """
    function = "static int CPyImport_ImportParent("
    old, new = "PyImport_Import(parent_name)", "plugrad_import_parent(parent_name)"
    text = _replaced_within(text, f"\n{function}", old, new)
    declared = "PyObject *plugrad_import_parent(PyObject *module_name);\n"
    return text.replace(function, f"{declared}{function}", 1)


def intern_words(text: str) -> str:
    """C of mypyc's own that interns no string with a space: schemas, tables and messages are no
    names of anything. They are three quarters of all characters.

    Raises:
        ValueError: the C does not have mypyc's form.
    """
    interns = "PyUnicode_InternInPlace(&obj);"
    condition = "if (memchr(data, ' ', len) == NULL) "
    return _replaced_within(text, "\nint CPyStatics_Initialize(", interns, condition + interns)


def look_up_slots(text: str) -> str:
    """C of mypyc's own that makes no exception, with its text, where a class has no `__slots__`.

    Raises:
        ValueError: the C does not have mypyc's form.
    """
    old = "PyObject_GetAttr((PyObject *)t, mypyc_interned_str.__slots__)"
    new = "Py_XNewRef(_PyType_Lookup((PyTypeObject *)t, mypyc_interned_str.__slots__))"
    return _replaced_within(text, "\nPyObject *CPyType_FromTemplate(", old, new)
