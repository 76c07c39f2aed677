"""Takes out of the C that mypyc writes what is not needed: a sixth of the C compiler's time.

* A check at each use of a `Final` name that it has its value, with an exception if not. Modules run
  from top to bottom before their functions are called.
* In generated modules, a check at each use of a tensor's key set that it has one. A tensor that was
  made without contents has none, but then it lacks the other fields, too.
* In each call that adds a line to a traceback, the arguments that are the same in the whole file:
  a function of the file has them.
* Functions that Python calls to enter the C of a function which only C calls.
* Imports of names for the type checker and mypyc, from `mypy_extensions`: to load it takes a
  hundredth of the time of `import plugrad`.

`setup.py` passes each C file to `lean`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping

_LOADED = r"(?P<load>    cpy_r_r\d+ = CPyStatic_\w+;\n)"
_UNSET = r'    PyErr_SetString\(PyExc_NameError, "value for final name '
# The two ways to write the check: the exception elsewhere, or before what comes next.
_CHECK = re.compile(
    rf"{_LOADED}    if \(unlikely\(cpy_r_r\d+ == NULL\)\) \{{\n"
    r"        goto CPyL\d+;\n    \} else\n"
    r"        goto (?P<next>CPyL\d+);\n"
)
_SHORT_CHECK = re.compile(
    rf"{_LOADED}    if \(likely\(cpy_r_r\d+ != NULL\)\) goto (?P<next>CPyL\d+);\n(?={_UNSET})"
)

# A number may be the one that stands for no value: then mypyc asks whether there is an exception.
_KEY_SET = re.compile(
    r"(?P<load>    (?P<it>cpy_r_\w+) = .*->__keyset;\n)"
    r"    if \(unlikely\((?P=it) == -113\) && .*\{\n        PyErr_SetString.*\n    \}\n"
    r"    (?P<none>cpy_r_\w+) = (?P=it) == -113;\n"
    r"    if \(unlikely\((?P=none)\)\) "
    r"(?:goto CPyL\d+;\n|\{\n        goto CPyL\d+;\n    \} else\n(?P<go>        goto CPyL\d+;\n))"
)

_FOR_TYPES = re.compile(
    r"    cpy_r_r\d+ = CPyStatics\[\d+\]; /\* \((?P<names>.*)\) \*/\n"
    r"    cpy_r_r\d+ = CPyStatics\[\d+\]; /\* 'mypy_extensions' \*/\n"
    r"    cpy_r_r\d+ = CPyStatic_\w+;\n"
    r"    (?P<module>cpy_r_r\d+) = CPyImport_ImportFromMany\(.*\);\n"
    r"    if \(unlikely\((?P=module) == NULL\)\) \{\n"
    r"        .*\);\n        goto CPyL\d+;\n    \}\n"
    r"    cpy_r_r\d+ = \(void \*\)&CPyModule_mypy_extensions;\n"
    r"    CPyImport_ReplaceModuleCacheForImport\(.*\);\n"
    r"    CPy_DECREF\((?P=module)\);\n"
)

_TRACE = re.compile(
    r'CPy_AddTraceback\((?P<file>"[^"]*"), "[^"]*", \d+, (?P<globals>CPyStatic_\w+)\)'
)
_TRACES = """\
#ifdef __GNUC__
#define PLUGRAD_COLD __attribute__((cold, noinline))
#else
#define PLUGRAD_COLD
#endif

static void PLUGRAD_COLD plugrad_trace(const char *function, int line)
{{
    CPy_AddTraceback({file}, function, line, {globals});
}}

static void PLUGRAD_COLD plugrad_trace_type(const char *function, int line, const char *type,
                                            PyObject *value)
{{
    CPy_TypeErrorTraceback({file}, function, line, {globals}, type, value);
}}

"""
_INCLUDE = re.compile(r"^#include .*\n", re.MULTILINE)

_TABLE = re.compile(
    r"^static PyMethodDef \w*module_methods\[\] = \{\n(?P<body>.*?)^\};$", re.MULTILINE | re.DOTALL
)
_ENTRY = re.compile(
    r'^ *\{"(?P<name>\w+)", \(PyCFunction\)(?P<wrapper>CPyPy_\w+), [^{}]*?\},?(?: /\*.*?\*/)?\n',
    re.MULTILINE | re.DOTALL,
)
# mypyc notes the strings that it looks names up with.
_NOTED = re.compile(r"/\* '(\w+)' \*/")
_WRAPPER = "        PyObject *"
_WRAPPER_END = "\n        }\n"


def lean(text: str, unused: Callable[[str], bool], generated: bool = False) -> str:
    """A C file of mypyc's without what is not needed.

    Args:
        text: the C file.
        generated: whether its module is generated: only then key sets are not checked.
        unused: whether no Python code uses the module's function with this name. Those that C
            passes on as objects are found here.
    """
    text = _CHECK.sub(r"\g<load>    goto \g<next>;\n", text)
    text = _SHORT_CHECK.sub(r"\g<load>    goto \g<next>;\n", text)
    if generated:
        text = _KEY_SET.sub(lambda found: found["load"] + (found["go"] or ""), text)
    text = _without_entries(text, unused)
    return _with_traces(_without_types(text))


def _without_entries(text: str, unused: Callable[[str], bool]) -> str:
    """Take out how Python enters functions that only C calls."""
    table = _TABLE.search(text)
    if table is None:
        return text
    noted = set(_NOTED.findall(text))
    gone: list[str] = []

    def entry(found: re.Match[str]) -> str:
        if found["name"] in noted or not unused(found["name"]):
            return found[0]
        gone.append(found["wrapper"])
        return ""

    body = _ENTRY.sub(entry, table["body"])
    text = text[: table.start("body")] + body + text[table.end("body") :]
    for wrapper in gone:
        start = text.index(f"{_WRAPPER}{wrapper}(")
        text = text[:start] + text[text.index(_WRAPPER_END, start) + len(_WRAPPER_END) :]
    return text


def _without_types(text: str) -> str:
    """Take out an import from `mypy_extensions`, unless the module uses a name as an object."""
    found = _FOR_TYPES.search(text)
    if found is None or set(ast.literal_eval(f"({found['names']})")) & set(_NOTED.findall(text)):
        return text
    return text[: found.start()] + text[found.end() :]


def _with_traces(text: str) -> str:
    """Give the file functions that add lines to tracebacks."""
    first = _TRACE.search(text)
    if first is None:
        return text
    file, names = first["file"], first["globals"]
    where = rf"\({re.escape(file)}, (\"[^\"]*\", \d+), {names}"
    text = re.sub(rf"CPy_AddTraceback{where}\)", r"plugrad_trace(\1)", text)
    text = re.sub(rf"CPy_TypeErrorTraceback{where}, ", r"plugrad_trace_type(\1, ", text)
    *_, last = _INCLUDE.finditer(text, 0, text.index("{"))
    return text[: last.end()] + _TRACES.format(file=file, globals=names) + text[last.end() :]


def only_for_c(name: str, module: str, spread: Mapping[str, int]) -> bool:
    """Whether a function of a compiled module is only called by C: it is private to the module, or
    generated for its other functions, and no other module has an identifier like it.

    Args:
        name: of the function.
        module: its module's name in the package.
        spread: in how many modules of the package each identifier is.

    >>> from plugrad.codegen.translation.leaner import only_for_c
    >>> only_for_c("_checked", "tensor.base", {"_checked": 1})
    True
    >>> only_for_c("_checked", "tensor.base", {"_checked": 2})
    False
    >>> only_for_c("checked", "tensor.base", {"checked": 1})
    False
    """
    private = name.startswith("_") and not name.startswith("__")
    made = module.startswith("_generated.") and name.startswith("record_")
    return (private or made) and spread.get(name, 0) < 2
