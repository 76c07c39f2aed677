"""Shortens, in the C that mypyc writes, how a module is made and what it imports.

mypyc writes all steps of an import where it happens, forty lines for `from plugrad.dtype import
DType`, and all steps of making a module once per module. Here both are calls of functions in
imports.c. Imports that follow each other are a table. What differs between modules is in a record,
which the C file of each module has.

`setup.py` passes each C file to `lean`.
"""

from __future__ import annotations

import re
from collections import Counter

_R = r"cpy_r_\w+"
_L = r"CPyL\d+"
_STRING = r"CPyStatics\[\d+\]"


def _failed(condition: str, error: str = r"(?P=error)") -> str:
    """The way out of a call that failed; by default to where the one before goes."""
    return rf"    if \(unlikely\({condition}\)\) \{{\n{error}    \}}"


_ERROR = rf"(?P<error>        \w+\(.*\);\n        goto {_L};\n)"

# `import module`, of one in the library. It leaves a reference.
_NATIVE = re.compile(
    rf"    {_R} = \(void \*\)&CPyModule_(?P<module>\w+);\n"
    rf"    (?P<state>{_R}) = \(void \*\)&CPyImportState_(?P=module);\n"
    rf"    {_R} = CPyModuleLockAPI_\w+;\n"
    rf"    (?P<there>{_R}) = CPyImport_IsInitialized\((?P=state)\);\n"
    rf"    if \(!(?P=there)\) goto (?P<absent>{_L});\n"
    rf"    {_R} = PyImport_GetModuleDict\(\);\n"
    rf"    {_R} = (?P<name>{_STRING});.*\n"
    rf"    (?P<found>{_R}) = CPyDict_GetItem\(.*\);\n"
    rf"{_failed(r'(?P=found) == NULL', _ERROR)}\n"
    rf"    (?P<result>{_R}) = (?P=found);\n"
    rf"    goto (?P<end>{_L});\n"
    rf"(?P=absent): ;\n"
    rf"    {_R} = CPyInitOnly_(?P=module);\n"
    rf"    {_R} = CPyExec_(?P=module);\n"
    rf"    {_R} = \(PyObject \*\*\)&CPyModule_(?P=module)__internal;\n"
    rf"    {_R} = PyImport_GetModuleDict\(\);\n"
    rf"    {_R} = {_STRING};.*\n"
    rf"    (?P<library>{_R}) = CPyDict_GetItem\(.*\);\n"
    rf"{_failed(r'(?P=library) == NULL')}\n"
    rf"    {_R} = {_STRING};.*\n"
    rf"    (?P<file>{_R}) = CPyObject_GetAttr\(.*\);\n"
    rf"    CPy_DECREF\((?P=library)\);\n"
    rf"{_failed(r'(?P=file) == NULL')}\n"
    rf"    {_R} = {_STRING};.*\n"
    rf"    {_R} = (?P=name);.*\n"
    rf"    (?P<made>{_R}) = CPyImport_ImportNative\(.*\);\n"
    rf"    CPy_DECREF\((?P=file)\);\n"
    rf"{_failed(r'(?P=made) == NULL')}\n"
    rf"    (?P=result) = (?P=made);\n"
    rf"(?P=end): ;\n"
)
# What follows it in `from module import names`, where the module's reference is not needed.
_NAMES = (
    rf"    (?P<names>{_R}) = (?P<names_are>{_STRING});.*\n"
    rf"(?:    (?P<as_names>{_R}) = (?P<as_names_are>{_STRING});.*\n)?"
)
_NATIVE_NAMES = re.compile(
    rf"    (?P<result>{_R}) = plugrad_import\((?P<which>.*)\);\n"
    rf"{_failed(r'(?P=result) == NULL', _ERROR)}\n"
    rf"{_NAMES}"
    rf"    {_R} = (?P<globals>CPyStatic_\w+);\n"
    rf"    (?P<same>{_R}) = CPyImport_GetNativeAttrs\((?P=result), .*\);\n"
    rf"    CPy_DECREF\((?P=result)\);\n"
    rf"{_failed(r'(?P=same) == NULL')} else\n"
    rf"        goto (?P<release>{_L});\n"
)
# `import module`, of any other, and `from module import names`.
_OTHER = re.compile(
    rf"    (?P<cache>{_R}) = \(void \*\)&(?P<module>CPyModule_\w+);\n"
    rf"    (?P<name>{_R}) = (?P<string>{_STRING});.*\n"
    rf"    (?P<found>{_R}) = CPyImport_GetModuleCacheForImport\((?P=cache), (?P=name)\);\n"
    rf"{_failed(r'(?P=found) == NULL', _ERROR)}\n"
    rf"    (?P<none>{_R}) = \(PyObject \*\)&_Py_NoneStruct;\n"
    rf"    (?P<there>{_R}) = (?P=found) != (?P=none);\n"
    rf"    if \((?P=there)\) goto (?P<end>{_L});\n"
    rf"    (?P<made>{_R}) = PyImport_Import\((?P=name)\);\n"
    rf"{_failed(r'(?P=made) == NULL')}\n"
    rf"    CPyImport_ReplaceModuleCacheForImport\((?P=cache), (?P=made)\);\n"
    rf"    CPy_DECREF\((?P=made)\);\n"
    rf"(?P=end): ;\n"
)
_OTHER_NAMES = re.compile(
    rf"{_NAMES}"
    rf"    (?P<name>{_R}) = (?P<string>{_STRING});.*\n"
    rf"    {_R} = (?P<globals>CPyStatic_\w+);\n"
    rf"    (?P<made>{_R}) = CPyImport_ImportFromMany\((?P=name), .*\);\n"
    rf"{_failed(r'(?P=made) == NULL', _ERROR)}\n"
    rf"    (?P<cache>{_R}) = \(void \*\)&(?P<module>CPyModule_\w+);\n"
    rf"    CPyImport_ReplaceModuleCacheForImport\((?P=cache), (?P=made)\);\n"
    rf"    CPy_DECREF\((?P=made)\);\n"
)

# `import module as name`, of one in the library.
_NATIVE_AS = re.compile(
    rf"(?:    {_R} = CPyStatic_\w+;\n)?"
    rf"    (?P<result>{_R}) = plugrad_import\((?P<which>.*)\);\n"
    rf"{_failed(r'(?P=result) == NULL', _ERROR)}\n"
    rf"    {_R} = (?P<as_name>{_STRING});.*\n"
    rf"    (?P<put>{_R}) = CPyDict_SetItem\(.*\);\n"
    rf"    CPy_DECREF\((?P=result)\);\n"
    rf"    (?P<is_put>{_R}) = (?P=put) >= 0;\n"
    rf"{_failed(r'!(?P=is_put)')}\n"
)

# `name: Final = ...`, and the same after the call that gave the value, which may have failed.
_SET_FINAL = (
    r"    (?P<place>CPyStatic_\w+) = {value};\n"
    rf"    CPy_INCREF(?:_NO_IMM)?\((?P=place)\);\n"
    rf"    {_R} = (?P<globals>CPyStatic_\w+);\n"
    rf"    {_R} = (?P<name>{_STRING});.*\n"
    rf"    (?P<put>{_R}) = CPyDict_SetItem\(.*, (?P=value)\);\n"
    rf"    CPy_DECREF(?:_NO_IMM)?\((?P=value)\);\n"
    rf"    (?P<is_put>{_R}) = (?P=put) >= 0;\n"
)
_FINAL = re.compile(
    _SET_FINAL.replace("{value}", f"(?P<value>{_R})") + _failed("!(?P=is_put)", _ERROR) + "\n"
)
_FINAL_OF_CALL = re.compile(
    f"{_failed(f'(?P<value>{_R}) == NULL', _ERROR)}\n"
    f"{_SET_FINAL.replace('{value}', '(?P=value)')}{_failed('!(?P=is_put)')}\n"
)

# Imports that follow each other and go to the same place if they fail.
_STEP = (
    r"    if \(unlikely\(!plugrad_import_(?:as|names|other|other_names)\(.*\)\)\) \{\n"
    r"        \w+\(.*\);\n        goto "
)
_STEPS = re.compile(rf"{_STEP}(?P<bad>{_L});\n    \}}\n(?:{_STEP}(?P=bad);\n    \}}\n)+")
_EACH_STEP = re.compile(
    r"!plugrad_import_(?:as|names|other|other_names)\(&(?P<which>\w+), (?P<names>[^()]*)\)\)\) \{\n"
    r'        (?P<trace>\w+\(.*"<module>", )(?P<line>\d+)(?P<rest>.*\);)\n'
)
_GLOBALS = re.compile(r"\bCPyStatic_\w+___globals\b")
_VARIABLE = re.compile(rf"\b{_R}\b")
_SET = re.compile(rf"^    ({_R}) = ", re.MULTILINE)

# What makes a module and runs it, and what of it differs.
_INIT = re.compile(
    r"^PyObject \*CPyInit_(?P<module>\w+)\(void\)\n\{\n    PyObject\* modname = NULL;\n"
    r"(?:.*\n)*?"
    r"    modname = PyUnicode_FromString\((?P<name>\".*\")\);\n"
    r"(?:.*\n)*?"
    r"    rv = PyDict_GetItemStringRef\(mod_dict, \"(?P<group>\w+)__mypyc\", &shared_lib\);\n"
    r"(?:.*\n)*?"
    r"    Py_ssize_t is_pkg = (?P<is_package>\d);\n"
    r"(?:.*\n)*?"
    r"            return NULL;\n        \}\n",
    re.MULTILINE,
)
_MADE = """\
const plugrad_module plugrad_module_{module} = {{
    CPyInitOnly_{module},
    CPyExec_{module},
    &CPyModule_{module}__internal,
    &CPyModule_{module},
    &CPyImportState_{module},
    &CPyModuleLockAPI_{group},
    {name},
    {is_package},
}};

PyObject *CPyInit_{module}(void)
{{
    return plugrad_make(&plugrad_module_{module});
}}
"""

# What a module that could not run gives back, one by one.
_GIVEN_BACK = re.compile(
    r"(?:    CPy_XDECREF\((\w+)\);\n    \1 = NULL;\n|    Py_CLEAR\(CPyType_\w+\);\n){3,}"
)
_STATIC = re.compile(r"(?:CPy_XDECREF|Py_CLEAR)\((\w+)\)")

_INCLUDE = re.compile(r"^#include .*\n", re.MULTILINE)
_FUNCTION_END = "\n}\n"


def lean(text: str) -> str:
    """A C file of mypyc's in which imports and the making of the module are calls. What does not
    have the form that mypyc gave it when this was written stays as it is."""
    modules: set[str] = set()
    functions = text.split(_FUNCTION_END)
    text = _FUNCTION_END.join(_lean_function(f"{each}\n", modules)[:-1] for each in functions)
    text, made = _INIT.subn(lambda found: _MADE.format(**found.groupdict()), text)
    if not modules and not made and "plugrad_import" not in text:
        return text
    *_, last = _INCLUDE.finditer(text, 0, text.index("{"))
    records = "".join(
        f"extern const plugrad_module plugrad_module_{module};\n" for module in sorted(modules)
    )
    return f'#include "imports.h"\n{text[: last.end()]}{records}{text[last.end() :]}'


def _lean_function(function: str, modules: set[str]) -> str:
    """The C of a function. Notes the modules that it imports, of those in the library."""
    if "__impl(PyObject *module)" in function:
        function = _GIVEN_BACK.sub(_give_back, function)
    if "CPyImport_" not in function:
        return function
    globals_found = _GLOBALS.search(function)
    unset: set[str] = set()
    releases: list[tuple[str, str]] = []
    imported: set[str] = set()

    def raises(condition: str, found: re.Match[str]) -> str:
        unset.update(_SET.findall(found[0]))
        return f"    if (unlikely({condition})) {{\n{found['error']}    }}\n"

    def native(found: re.Match[str]) -> str:
        imported.add(found["module"])
        made = f"plugrad_import(&plugrad_module_{found['module']}, {found['name']})"
        error = raises(f"{found['result']} == NULL", found)
        unset.discard(found["result"])
        return f"    {found['result']} = {made};\n{error}"

    def native_names(found: re.Match[str]) -> str:
        releases.append((found["release"], found["same"]))
        error = raises(f"!plugrad_import_names({found['which']}, {_names(found)})", found)
        return f"{error}    goto {found['release']};\n"

    def native_as(found: re.Match[str]) -> str:
        if globals_found is None:
            return found[0]
        names = f"{found['as_name']}, {globals_found[0]}"
        return raises(f"!plugrad_import_as({found['which']}, {names})", found)

    def other(found: re.Match[str]) -> str:
        return raises(f"!plugrad_import_other(&{found['module']}, {found['string']})", found)

    def other_names(found: re.Match[str]) -> str:
        which = f"&{found['module']}, {found['string']}"
        return raises(f"!plugrad_import_other_names({which}, {_names(found)})", found)

    def final(found: re.Match[str]) -> str:
        what = f"&{found['place']}, {found['value']}, {found['name']}, {found['globals']}"
        return raises(f"!plugrad_set_final((PyObject **){what})", found)

    text = _NATIVE.sub(native, function)
    text = _NATIVE_NAMES.sub(native_names, text)
    text = _NATIVE_AS.sub(native_as, text)
    for label, result in releases:
        text = _without_release(text, label, result)
    text = _OTHER_NAMES.sub(other_names, _OTHER.sub(other, text))
    text = _FINAL.sub(final, _FINAL_OF_CALL.sub(final, text))
    if unset & _used(text):
        return function
    modules |= imported
    return _STEPS.sub(_table, text)


def _used(function: str) -> set[str]:
    """The variables of mypyc's that a function mentions after it has declared them."""
    return {name for name, times in Counter(_VARIABLE.findall(function)).items() if times > 1}


def _without_release(function: str, label: str, result: str) -> str:
    """The C of a function that goes on where it went on after it had released a result."""
    block = re.compile(rf"{label}: ;\n    CPy_DECREF\({result}\);\n    goto ({_L});\n")
    found = block.search(function)
    if found is None:
        raise ValueError(f"this version of mypyc does not release {result!r} at {label!r}")
    function = function[: found.start()] + function[found.end() :]
    there = found[1]
    function = function.replace(f"    goto {label};\n{there}: ;\n", f"{there}: ;\n")
    function = function.replace(f"goto {label};", f"goto {there};")
    return function if f"goto {there};" in function else function.replace(f"{there}: ;\n", "")


def _names(found: re.Match[str]) -> str:
    """The last arguments of a call that binds names of a module."""
    return (
        f"{found['names_are']}, {found['as_names_are'] or found['names_are']}, {found['globals']}"
    )


def _table(found: re.Match[str]) -> str:
    """Imports one after the other, as a table of them."""
    steps = list(_EACH_STEP.finditer(found[0]))
    if len(steps) != found[0].count("unlikely("):
        return found[0]
    rows = []
    for step in steps:
        native = step["which"].startswith("plugrad_module_")
        which = f"&{step['which']}, NULL" if native else f"NULL, &{step['which']}"
        strings = [
            f"&{each}" for each in step["names"].split(", ") if each.startswith("CPyStatics")
        ]
        if len(strings) == 2:
            strings.insert(1, "NULL")
        rows.append(f"        {{{step['line']}, {which}, {', '.join(strings)}}},\n")
    names = _GLOBALS.search(found[0])
    arguments = f"steps, sizeof steps / sizeof *steps, {names[0] if names else 'NULL'}"
    last = steps[-1]
    return (
        f"    {{\n    static const plugrad_step steps[] = {{\n{''.join(rows)}    }};\n"
        f"    int line = plugrad_import_all({arguments});\n"
        f"    if (unlikely(line)) {{\n        {last['trace']}line{last['rest']}\n"
        f"        goto {found['bad']};\n    }}\n    }}\n"
    )


def _give_back(found: re.Match[str]) -> str:
    statics = "".join(f"        (PyObject **)&{name},\n" for name in _STATIC.findall(found[0]))
    return (
        f"    {{\n    static PyObject **const made[] = {{\n{statics}    }};\n"
        "    plugrad_clear(made, sizeof made / sizeof *made);\n    }\n"
    )
