"""Gives compiled functions PyTorch's error messages for wrong arguments, in place of mypyc's.

mypyc writes the check of every argument, and the parser of calls, into C. This module changes that
C before it is compiled, only where a check has failed: a call that succeeds costs the same.
`setup.py` passes each C file to `reword`.
"""

from __future__ import annotations

import re

# The changes depend on the C that mypyc writes; pyproject.toml requires the version that fits.
_TYPES = {
    "plugrad.tensor.base.TensorBase": "Tensor",
    "plugrad._generated.methods.TensorMethods": "Tensor",
    "plugrad.device.Device": "plugrad.device",
    "plugrad.dtype.DType": "plugrad.dtype",
    "i64": "int",
    "i32": "int",
    "i16": "int",
}

_DECLARATIONS = """\
void plugrad_wrong_argument(const char *expected, PyObject *value, const char *function,
                            const char *argument, const char *const *keywords, Py_ssize_t given);
void plugrad_wrong_attribute(const char *expected, PyObject *value, const char *attribute);
"""

_RUNTIME = r"""
static const char *plugrad_type_name(PyObject *value)
{
    const char *name = Py_TYPE(value)->tp_name;
    if (strcmp(name, "Device") == 0 || strcmp(name, "plugrad.device.Device") == 0) {
        return "plugrad.device";
    }
    if (strcmp(name, "DType") == 0 || strcmp(name, "plugrad.dtype.DType") == 0) {
        return "plugrad.dtype";
    }
    return name;
}

void plugrad_wrong_argument(const char *expected, PyObject *value, const char *function,
                            const char *argument, const char *const *keywords, Py_ssize_t given)
{
    Py_ssize_t position = 0;
    if (PyLong_Check(value) && strcmp(expected, "int") == 0) {
        PyErr_SetString(PyExc_ValueError, "Overflow when unpacking long long");
        return;
    }
    while (keywords[position] != NULL && strcmp(keywords[position], argument) != 0) {
        position++;
    }
    if (position < given && keywords[position] != NULL) {
        PyErr_Format(PyExc_TypeError, "%s(): argument '%s' (position %zd) must be %s, not %s",
                     function, argument, position + 1, expected, plugrad_type_name(value));
    } else {
        PyErr_Format(PyExc_TypeError, "%s(): argument '%s' must be %s, not %s", function, argument,
                     expected, plugrad_type_name(value));
    }
}

void plugrad_wrong_attribute(const char *expected, PyObject *value, const char *attribute)
{
    PyErr_Format(PyExc_TypeError, "%s must be %s, not %s", attribute, expected,
                 plugrad_type_name(value));
}

/* Whether a keyword was given. */
static int plugrad_given(PyObject *kwargs, PyObject *kwnames, const char *name)
{
    if (kwargs != NULL) {
        return PyDict_GetItemString(kwargs, name) != NULL;
    }
    Py_ssize_t count = kwnames == NULL ? 0 : PyTuple_GET_SIZE(kwnames);
    for (Py_ssize_t i = 0; i < count; i++) {
        if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(kwnames, i), name) == 0) {
            return 1;
        }
    }
    return 0;
}

/* The first keyword that matches no parameter, as a new reference, or NULL. */
static PyObject *plugrad_unknown(PyObject *kwargs, PyObject *kwnames, const char *const *known)
{
    PyObject *names = kwargs != NULL    ? PyDict_Keys(kwargs)
                      : kwnames != NULL ? PySequence_List(kwnames)
                                        : PyList_New(0);
    PyObject *found = NULL;
    Py_ssize_t count = names == NULL ? 0 : PyList_GET_SIZE(names);
    for (Py_ssize_t i = 0; i < count && found == NULL; i++) {
        PyObject *name = PyList_GET_ITEM(names, i);
        int at = 0;
        while (PyUnicode_Check(name) && known[at] != NULL
               && PyUnicode_CompareWithASCIIString(name, known[at]) != 0) {
            at++;
        }
        if (!PyUnicode_Check(name) || known[at] == NULL) {
            found = Py_NewRef(name);
        }
    }
    Py_XDECREF(names);
    return found;
}

/* Explain why a call does not fit a function, after a parser has rejected it. `format` is the
   parser's: an O for each parameter, the required ones before |, those that may be given by
   position before $, the required ones among the others after @; % for *args or **kwargs. */
void plugrad_wrong_call(const char *name, const char *format, const char *const *keywords,
                        Py_ssize_t nargs, PyObject *kwargs, PyObject *kwnames)
{
    int len = 0, min = -1, max = -1, required = -1, varargs = 0;
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) {
        return;
    }
    PyErr_Clear();
    for (; *format != '\0' && *format != ':' && *format != ';'; format++) {
        switch (*format) {
        case '%': varargs = 1; break;
        case '|': min = len; break;
        case '$': max = len; break;
        case '@': required = len; break;
        default: len++;
        }
    }
    max = max < 0 ? len : max;
    min = min < 0 || min > max ? max : min;
    required = required < 0 ? len : required;
    if (nargs > max && !varargs) {
        if (min < max) {
            PyErr_Format(PyExc_TypeError,
                         "%s() takes from %d to %d positional arguments but %zd %s given", name,
                         min, max, nargs, nargs == 1 ? "was" : "were");
        } else {
            PyErr_Format(PyExc_TypeError, "%s() takes %d positional argument%s but %zd %s given",
                         name, max, max == 1 ? "" : "s", nargs, nargs == 1 ? "was" : "were");
        }
        return;
    }
    PyObject *missing = PyUnicode_FromString("");
    int count = 0;
    for (int i = 0; i < len && missing != NULL; i++) {
        int given = plugrad_given(kwargs, kwnames, keywords[i]);
        if (i < max && i < nargs) {
            if (given) {
                Py_DECREF(missing);
                PyErr_Format(PyExc_TypeError, "%s() got multiple values for argument '%s'", name,
                             keywords[i]);
                return;
            }
        } else if (!given && (i < min || i >= required)) {
            PyObject *longer =
                PyUnicode_FromFormat("%U%s\"%s\"", missing, count ? ", " : "", keywords[i]);
            Py_DECREF(missing);
            missing = longer;
            count++;
        }
    }
    if (missing == NULL) {
        return;
    }
    if (count > 0) {
        PyErr_Format(PyExc_TypeError, "%s() missing %d required positional arguments: %U", name,
                     count, missing);
        Py_DECREF(missing);
        return;
    }
    Py_DECREF(missing);
    PyObject *unknown = plugrad_unknown(kwargs, kwnames, keywords);
    if (unknown != NULL) {
        PyErr_Format(PyExc_TypeError, "%s() got an unexpected keyword argument '%S'", name,
                     unknown);
        Py_DECREF(unknown);
    } else if (!PyErr_Occurred()) {
        PyErr_Format(PyExc_TypeError, "%s() takes %d positional argument%s but %zd %s given", name,
                     max, max == 1 ? "" : "s", nargs, nargs == 1 ? "was" : "were");
    }
}
"""

_REPORTED = """\
void plugrad_wrong_call(const char *name, const char *format, const char *const *keywords,
                        Py_ssize_t nargs, PyObject *kwargs, PyObject *kwnames);
"""
_FAST = (
    'plugrad_wrong_call(parser->fname == NULL ? "function" : parser->fname, parser->varargs ? '
    "parser->format - 1 : parser->format, parser->keywords, nargs, NULL, kwnames);"
)
_CONSTRUCTOR = "plugrad_wrong_call(fname, format, kwlist, PyTuple_GET_SIZE(args), keywords, NULL);"

_WRAPPER = "        PyObject *CPyPy_"
_WRAPPER_END = "\n        }\n"
_CLASS = re.compile(r"CPyPy_(?:\w+___)?(\w+?)_____init__\(")
_PARSER = re.compile(r'static CPyArg_Parser parser = \{"[^":]*:(\w+)", kwlist, 0\};')
_ARGUMENT = re.compile(r'CPy_TypeError\("([^"]+)", obj_(\w+)\);')
_SETTER = re.compile(r"^\w+_set_(\w+)\([^)]*PyObject \*value, void \*closure\)\n\{", re.MULTILINE)
_ATTRIBUTE = re.compile(r'CPy_TypeError\("([^"]+)", value\);')
_CAST = re.compile(
    r'(CPy_TypeError\(|CPy_TypeErrorTraceback\("[^"]*", "[^"]*", \d+, \w+, )"([^"]+)"'
)
_PARSED = re.compile(r"^( +)va_end\(va\);\n +return retval;$", re.MULTILINE)


def type_words(expected: str) -> str:
    """PyTorch's name for a type as mypyc writes it.

    >>> from plugrad.codegen.translation.call_errors import type_words
    >>> type_words("plugrad.tensor.base.TensorBase or None"), type_words("tuple[int, int]")
    ('Tensor', 'tuple')
    """
    words = expected.removesuffix(" or None")
    if words.startswith("union["):
        return words[len("union[") : -1].replace(", ", " or ")
    words = words.partition("[")[0]
    return _TYPES.get(words, words.rpartition(".")[2])


def reword(name: str, text: str) -> str:
    """The C file of that name with PyTorch's words.

    Raises:
        ValueError: a file of mypyc's own is not as expected.
    """
    if "plugrad_wrong_" in text:
        return text  # An earlier build left it.
    if name == "getargsfast.c":
        return _reword_parser(text, 4, _FAST) + _RUNTIME
    if name == "getargs.c":
        return _reword_parser(text, 1, _CONSTRUCTOR)
    if name == "exc_ops.c":
        return _replace(text, '"%s object expected; got %U"', '"expected %s, got %U"')
    if not name.startswith("__native"):
        return text
    text = _reword_wrappers(text)
    text = _reword_setters(text)
    text = _CAST.sub(lambda m: f'{m[1]}"{type_words(m[2])}"', text)
    if "plugrad_wrong_" not in text:
        return text
    head, include, rest = text.partition('#include "__native_internal')
    line, end, rest = rest.partition("\n")
    return head + include + line + end + _DECLARATIONS + rest


def _replace(text: str, old: str, new: str) -> str:
    if old not in text:
        raise ValueError(f"mypyc's C does not contain {old}")
    return text.replace(old, new)


def _reword_parser(text: str, parsers: int, report: str) -> str:
    """Have each function that parses a call report when it fails."""
    if len(_PARSED.findall(text)) != parsers:
        raise ValueError("mypyc's parser of calls is not as expected")
    said = _PARSED.sub(
        lambda m: (
            f"{m[1]}va_end(va);\n{m[1]}if (unlikely(!retval)) {{\n"
            f"{m[1]}{m[1]}{report}\n{m[1]}}}\n{m[1]}return retval;"
        ),
        text,
    )
    return "#include <Python.h>\n" + _REPORTED + said


def _reword_wrappers(text: str) -> str:
    """The functions that Python calls, which check the arguments."""
    first, *others = text.split(_WRAPPER)
    parts = [first]
    for other in others:
        inside, end, rest = other.partition(_WRAPPER_END)
        parts.append(_reword_wrapper(_WRAPPER + inside) + end + rest)
    return "".join(parts)


def _reword_wrapper(text: str) -> str:
    """One of them: its parser has the names of the function and of the arguments."""
    declared = _PARSER.search(text)
    given = "(Py_ssize_t)nargs"
    function = declared[1] if declared is not None else ""
    if declared is None:
        constructed = _CLASS.search(text)
        if constructed is None or "CPyArg_ParseTupleAndKeywords(args, kw," not in text:
            return text
        function = constructed[1]
        text = text.replace('"__init__", kwlist', f'"{function}", kwlist')
        given = "PyTuple_GET_SIZE(args)"

    def say(found: re.Match[str]) -> str:
        expected, argument = found.groups()
        if f'"{argument}"' not in text:
            return found[0]  # The receiver of a method, which Python has checked.
        return (
            f'plugrad_wrong_argument("{type_words(expected)}", obj_{argument}, "{function}", '
            f'"{argument}", kwlist, {given});'
        )

    return _ARGUMENT.sub(say, text)


def _reword_setters(text: str) -> str:
    parts: list[str] = []
    last = 0
    for found in _SETTER.finditer(text):
        end = text.index("\n}\n", found.end())
        parts.append(text[last : found.end()])
        parts.append(_reword_setter(text[found.end() : end], found[1]))
        last = end
    parts.append(text[last:])
    return "".join(parts)


def _reword_setter(text: str, attribute: str) -> str:
    def say(found: re.Match[str]) -> str:
        return f'plugrad_wrong_attribute("{type_words(found[1])}", value, "{attribute}");'

    return _ATTRIBUTE.sub(say, text)
