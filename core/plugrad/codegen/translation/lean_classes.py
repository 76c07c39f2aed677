"""Takes out of the C that mypyc writes what the classes of a library do not need.

* The table of a class's methods is filled when the module runs; here it is a constant.
* Of the 300 classes of nodes, which the generator writes and only C makes, each has functions of
  its own to be made, visited, cleared and entered by Python. What they do alike is here once per
  file, and Python enters through the method table.

`setup.py` passes each C file to `lean`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import takewhile

_TABLE = re.compile(
    r"^static CPyVTableItem (?P<table>\w+_vtable)\[\d+\];\n"
    r"static bool\n(?P<setup>CPyDef_\w+_trait_vtable_setup)\(void\)\n\{\n"
    r"    CPyVTableItem (?P=table)_scratch\[\] = \{\n(?P<items>(?:        .*\n)*)    \};\n"
    r"    memcpy\((?P=table), (?P=table)_scratch, sizeof\((?P=table)\)\);\n"
    r"    return 1;\n\}\n",
    re.MULTILINE,
)

_NODE = re.compile(r"^static PyTypeObject CPyType_(\w+___Node_\w+)_template_ = \{$", re.MULTILINE)
_STRUCT = re.compile(r"^\w+___Node_\w+_traverse\((?P<struct>\w+) \*self, ", re.MULTILINE)
_TABLE_OF_NODE = re.compile(r"___Node_\w+_vtable\[\] = \{[^}]*")
_METHOD = re.compile(r"^    \(CPyVTableItem\)(\w+),$", re.MULTILINE)

# What visits and clears the fields that each node has, and what comes in their place.
_FIELDS = r"^    Py_{0}\(self->__edge0\);\n(?:    Py_{0}\(self->\w+\);\n)*"
_VISIT_COMMON = """\
    int common = plugrad_visit_node(({} *)self, visit, arg);
    if (common) {{
        return common;
    }}
"""
_CLEAR_COMMON = "    plugrad_clear_node(({} *)self);\n"

# How a module makes the class of a node.
_R = r"cpy_r_r\d+"
_ERROR = (
    r"    if \(unlikely\({}\)\) \{{\n        plugrad_trace\(.*\);\n        goto CPyL\d+;\n    \}}\n"
)
_RELEASE = r"    CPy_DECREF(?:_NO_IMM)?\({}\);\n"
_CREATION = re.compile(
    rf"    (?P<base>{_R}) = \(PyObject \*\)CPyType_(?P<parent>\w+);\n"
    rf"    (?P<bases>{_R}) = PyTuple_Pack\(1, (?P=base)\);\n"
    r"    if \(unlikely\((?P=bases) == NULL\)\) \{\n(?P<error>.*\n.*\n)    \}\n"
    rf"    {_R} = (?P<module>CPyStatics\[\d+\]);.*\n"
    rf"    {_R} = \(PyObject \*\)CPyType_(?P<cls>\w+___Node_\w+)_template;\n"
    rf"    (?P<type>{_R}) = CPyType_FromTemplate\(.*\);\n"
    + _RELEASE.format(r"(?P=bases)")
    + _ERROR.format(r"(?P=type) == NULL")
    + rf"    (?P<table>{_R}) = CPyDef_(?P=cls)_trait_vtable_setup\(\);\n"
    + _ERROR.format(r"(?P=table) == 2")
    + rf"    (?P<other>{_R}) = CPyDef_(?P=cls)_coroutine_setup\((?P=type)\);\n"
    + _ERROR.format(r"(?P=other) == 2")
    + rf"    {_R} = CPyStatics\[\d+\]; /\* '__mypyc_attrs__' \*/\n"
    rf"(?:    {_R} = CPyStatics\[\d+\];.*\n)+"
    rf"    (?P<names>{_R}) = PyTuple_Pack\(.*\);\n"
    + _ERROR.format(r"(?P=names) == NULL")
    + rf"    (?P<set>{_R}) = PyObject_SetAttr\(.*\);\n"
    + _RELEASE.format(r"(?P=names)")
    + rf"    (?P<is_set>{_R}) = (?P=set) >= 0;\n"
    + _ERROR.format(r"!(?P=is_set)")
    + r"    CPyType_(?P=cls) = \(PyTypeObject \*\)(?P=type);\n"
    r"    CPy_INCREF(?:_NO_IMM)?\(CPyType_(?P=cls)\);\n"
    rf"    {_R} = (?P<globals>CPyStatic_\w+___globals);\n"
    rf"    {_R} = (?P<name>CPyStatics\[\d+\]);.*\n"
    rf"    (?P<put>{_R}) = PyDict_SetItem\(.*\);\n"
    rf"    (?P<is_put>{_R}) = (?P=put) >= 0;\n"
    + _ERROR.format(r"!(?P=is_put)")
    + rf"    (?P<subclass>{_R}) = CPy_InitSubclass\((?P=type)\);\n"
    + _RELEASE.format(r"(?P=type)")
    + _ERROR.format(r"!(?P=subclass)")
)


def _creation(found: re.Match[str]) -> str:
    cls = found["cls"]
    made = f"plugrad_make_node(CPyType_{cls}_template, &CPyType_{cls}, {found['name']})"
    return f"    if (unlikely(!{made})) {{\n{found['error']}    }}\n"


# What else each class has once, and what comes in its place.
_ONCE: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (
    (_CREATION.pattern, _creation),
    (r"^static int\n\w+___Node_\w+_init\(.*\)\n\{\n    return 0;\n\}\n", ""),
    (r"^static PyObject \*\n\w+___Node_\w+_new\(.*\)\n\{\n(?: .*\n)*\}\n", ""),
    (r"^static PyMethodDef \w+___Node_\w+_methods\[\] = \{\n(?:.*\n)*?\};\n", ""),
    (r"^    \.tp_init = \w+___Node_\w+_init,\n", ""),
    (r"\.tp_new = \w+___Node_\w+_new,", ".tp_new = plugrad_new_node,"),
    (r"\.tp_methods = \w+___Node_\w+_methods,", ".tp_methods = plugrad_node_methods,"),
)
# How Python would enter a method; each class has several.
_WRAPPER = re.compile(
    r"^        PyObject \*CPyPy_\w+___Node_\w+\(.*\{\n"
    r"(?:            .*\n|fail: ;\n)*        \}\n",
    re.MULTILINE,
)

_SHARED = """\
/* What the classes of nodes in this file share. */
static void plugrad_clear_node({struct} *self)
{{
{CLEAR}}}

static int plugrad_visit_node({struct} *self, visitproc visit, void *arg)
{{
{VISIT}    return 0;
}}

static PyObject *PLUGRAD_COLD plugrad_new_node(PyTypeObject *type, PyObject *args, PyObject *kwds)
{{
    PyErr_Format(PyExc_TypeError, "cannot create '%s' instances: operators make nodes",
                 type->tp_name);
    return NULL;
}}

static int PLUGRAD_COLD plugrad_make_node(PyTypeObject *template, PyTypeObject **type,
                                          PyObject *name)
{{
    PyObject *bases = PyTuple_Pack(1, CPyType_{parent});
    PyObject *made = bases ? CPyType_FromTemplate((PyObject *)template, bases, {module}) : NULL;
    Py_XDECREF(bases);
    *type = (PyTypeObject *)made;
    return made != NULL && PyDict_SetItem({globals}, name, made) == 0;
}}

static PyObject *PLUGRAD_COLD plugrad_apply_node(PyObject *self, PyObject *const *args,
                                                 size_t nargs, PyObject *kwnames)
{{
    static const char * const kwlist[] = {{"grads", 0}};
    static CPyArg_Parser parser = {{"O:apply", kwlist, 0}};
    PyObject *grads;
    if (!CPyArg_ParseStackAndKeywordsOneArg(args, nargs, kwnames, &parser, &grads)) {{
        return NULL;
    }}
    if (!PyList_Check(grads)) {{
        plugrad_wrong_argument("list", grads, "apply", "grads", kwlist, (Py_ssize_t)nargs);
        return NULL;
    }}
    PyObject *(*apply)(PyObject *, PyObject *) = (void *)(({struct} *)self)->vtable[{apply}];
    return apply(self, grads);
}}

static PyObject *PLUGRAD_COLD plugrad_release_node(PyObject *self, PyObject *none)
{{
    char (*release)(PyObject *) = (void *)(({struct} *)self)->vtable[{release}];
    if (release(self) == 2) {{
        return NULL;
    }}
    Py_RETURN_NONE;
}}

static PyMethodDef plugrad_node_methods[] = {{
    {{"apply", (PyCFunction)plugrad_apply_node, METH_FASTCALL | METH_KEYWORDS,
     PyDoc_STR("apply($self, grads)\\n--\\n\\n")}},
    {{"_release_variables", (PyCFunction)plugrad_release_node, METH_NOARGS,
     PyDoc_STR("_release_variables($self)\\n--\\n\\n")}},
    {{NULL}}
}};

"""


def lean(text: str) -> str:
    """A C file of mypyc's with less code for its classes. Where that of nodes is not as it was when
    this was written, they stay as they are."""
    text = _TABLE.sub(_constant_table, text)
    classes = _NODE.findall(text)
    found = _with_lean_nodes(text, classes) if classes else None
    return text if found is None else found


def _constant_table(found: re.Match[str]) -> str:
    items = found["items"].replace("        ", "    ")
    return (
        f"static CPyVTableItem {found['table']}[] = {{\n{items}}};\n"
        f"static bool\n{found['setup']}(void)\n{{\n    return 1;\n}}\n"
    )


def _with_lean_nodes(text: str, classes: list[str]) -> str | None:
    first, struct, table = (
        pattern.search(text) for pattern in (_CREATION, _STRUCT, _TABLE_OF_NODE)
    )
    if first is None or struct is None or table is None:
        return None
    methods = _METHOD.findall(table[0])
    values = {
        **struct.groupdict(),
        **first.groupdict(),
        "apply": _place(methods, "apply"),
        "release": _place(methods, "_release_variables"),
    }
    for macro, call in (("VISIT", _VISIT_COMMON), ("CLEAR", _CLEAR_COMMON)):
        # What all begin with, one line for each field.
        lists = re.findall(_FIELDS.format(macro), text, re.MULTILINE)
        lines = zip(*(each.splitlines(True) for each in lists), strict=False)
        common = "".join(same[0] for same in takewhile(lambda same: len(set(same)) == 1, lines))
        if not common:
            return None
        values[macro] = common
        text = text.replace(common, call.format(values["struct"]))
    for pattern, replacement in _ONCE:
        text, made = re.subn(pattern, replacement, text, flags=re.MULTILINE)
        if made != len(classes):
            return None
    text = _WRAPPER.sub("", text)
    at = text.index(f"static int\n{classes[0]}_traverse(")
    return text[:at] + _SHARED.format(**values) + text[at:]


def _place(methods: list[str], name: str) -> int:
    """Where a method is in the table of a class."""
    return next(place for place, each in enumerate(methods) if each.endswith(f"___{name}"))
