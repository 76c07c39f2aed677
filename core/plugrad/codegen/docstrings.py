"""Puts the docstrings of the source behind mypyc's signatures, so that `help()` shows them.

mypyc writes a signature for each function, method and class into its C files and drops the
docstrings. This module puts them back where CPython looks for them, before the C is compiled:
nothing is read or set at run time. `setup.py` passes each C file to `describe`, with the source
that it was made from.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_END = "\n--\n\n"  # What CPython expects between a signature and a text.

_MODULE = re.compile(r'(PyModuleDef_HEAD_INIT,\n *"[^"]*",\n *)NULL, /\* docstring \*/')
_TABLE = re.compile(
    r"^static (?P<kind>PyGetSetDef|PyMethodDef|PyTypeObject) (?:CPyType_)?"
    r"(?P<owner>\w+?)(?P<rest>module_methods|_methods|_getseters|_template_)"
    r"(?:\[\])? = \{\n(?P<body>.*?)^\};$",
    re.MULTILINE | re.DOTALL,
)
_METHOD = re.compile(
    r'\{"(?P<name>\w+)",\s*\(PyCFunction\)\w+,\s*(?P<flags>[A-Z_ |]+), '
    r'PyDoc_STR\((?P<doc>NULL|"[^"\\]*(?:\\.[^"\\]*)*")\)'
)
_CLASS = re.compile(r'\.tp_doc = PyDoc_STR\((NULL|"[^"\\]*(?:\\.[^"\\]*)*")\)')
_GETTER = re.compile(r'(\{"(\w+)",\s*\(getter\)\w+,\s*(?:\(setter\)\w+|NULL),\s*)NULL, NULL\}')
_ATTRIBUTE = re.compile(r"^    (\w[\w, ]*):(?: |$)", re.MULTILINE)
_SPARE = re.compile(r"argument\d+")

_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass
class Scope:
    """The docstrings in the source of a module or a class: its own text, its functions, its
    classes."""

    text: str | None = None
    name: str = ""  # The docstring of the class; a module has none here.
    functions: dict[str, _Function] = field(default_factory=dict)
    classes: dict[str, Scope] = field(default_factory=dict)
    attributes: dict[str, str] = field(default_factory=dict)

    def text_of(self, name: str) -> str | None:
        """The docstring of a function, or the class's text about an attribute."""
        function = self.functions.get(name)
        text = None if function is None else ast.get_docstring(function)
        return text or self.attributes.get(name)


def read(source: str) -> Scope:
    """The texts of a module.

    >>> from plugrad.codegen.docstrings import read
    >>> scope = read('def f(a, b=1):\\n    "Adds."')
    >>> scope.text_of("f")
    'Adds.'
    """
    return _read(ast.parse(source))


def _read(node: ast.Module | ast.ClassDef) -> Scope:
    text = ast.get_docstring(node)
    scope = Scope(text, getattr(node, "name", ""), attributes=attributes(text or ""))
    for statement in _statements(node.body):
        if isinstance(statement, ast.ClassDef):
            scope.classes[statement.name] = _read(statement)
        elif isinstance(statement, _Function) and not _only_declares(statement):
            scope.functions[statement.name] = statement
    return scope


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a body, including the blocks of `if` and `try` in it."""
    for statement in body:
        yield statement
        for name in ("body", "orelse", "handlers", "finalbody"):
            if isinstance(statement, ast.If | ast.Try):
                yield from _statements(getattr(statement, name, []))


def _only_declares(function: _Function) -> bool:
    """Whether it is an overload or a property's setter: the function next to it has the
    docstring."""
    names = {ast.unparse(decorator).rpartition(".")[2] for decorator in function.decorator_list}
    return bool(names & {"overload", "setter", "deleter"})


def attributes(text: str) -> dict[str, str]:
    """The entries of a docstring's section `Attributes:`, by name; several may share one.

    >>> from plugrad.codegen.docstrings import attributes
    >>> attributes("A pair.\\n\\nAttributes:\\n    x, y: the\\n        two.\\n\\nMore.")
    {'x': 'the\\ntwo.', 'y': 'the\\ntwo.'}
    """
    found = re.search(r"^Attributes:\n((?:(?: {4}.*)?(?:\n|$))+)", text, re.MULTILINE)
    if found is None:
        return {}
    pieces = _ATTRIBUTE.split(found[1])
    texts: dict[str, str] = {}
    for names, described in zip(pieces[1::2], pieces[2::2], strict=True):
        for name in names.split(","):
            texts[name.strip()] = inspect.cleandoc(described)
    return texts


def signature(name: str, function: _Function, receiver: str = "") -> str:
    """A function's signature as CPython reads it from a text.

    What is not a literal, and cannot be written there, becomes `...`. Parameters that only take
    deprecated orders of arguments are left out.

    >>> import ast
    >>> from plugrad.codegen.docstrings import signature
    >>> f = ast.parse("def f(self, a: int, spare=MISSING, *, b=1): pass").body[0]
    >>> signature("f", f, receiver="$self")
    'f($self, a, spare, *, b=1)'

    Args:
        name: what the function is called.
        function: its definition.
        receiver: what is written for its first parameter, a method's receiver; "" leaves it.
    """
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    given = [None] * (len(positional) - len(arguments.defaults)) + list(arguments.defaults)
    parts: list[str] = []
    leading = 0
    while leading < len(given) and _is_required(given[leading]):
        given[leading] = None
        leading += 1
    for position, (argument, default) in enumerate(zip(positional, given, strict=True), 1):
        if _SPARE.fullmatch(argument.arg) is None:
            parts.append(_parameter(argument.arg, default))
        if position == len(arguments.posonlyargs):
            parts.append("/")
    if receiver:
        parts[0] = receiver
    if arguments.vararg is not None:
        parts.append(f"*{arguments.vararg.arg}")
    elif arguments.kwonlyargs:
        parts.append("*")
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        parts.append(_parameter(argument.arg, default))
    if arguments.kwarg is not None:
        parts.append(f"**{arguments.kwarg.arg}")
    return f"{name}({', '.join(parts)})"


def _is_required(default: ast.expr | None) -> bool:
    """Whether an argument must be given, possibly under another name: `dim` or `axis`."""
    return default is None or (isinstance(default, ast.Name) and default.id == "MISSING")


def _parameter(name: str, default: ast.expr | None) -> str:
    if default is None:
        return name
    try:
        value = repr(ast.literal_eval(default))
    except ValueError:
        value = "..."
    return f"{name}={value}"


def describe(text: str, source: str) -> str:
    """The C file that mypyc made from a module, with the docstrings of the module's source.

    Args:
        text: the C file.
        source: the module that it was made from.

    Raises:
        ValueError: the C does not have mypyc's form; the message names what is missing.
    """
    module = read(source)
    if module.text:
        if _MODULE.search(text) is None:
            raise ValueError("mypyc's C does not define a module as expected")
        text = _MODULE.sub(lambda found: f"{found[1]}{c_string(module.text or '')},", text, count=1)
    described: set[str] = set()

    def fill(found: re.Match[str]) -> str:
        scope = _owner(module, found["owner"], found["rest"])
        if scope is None:
            return found[0]
        described.add(found["rest"])
        head, tail = found[0].split(found["body"])
        return head + _fill(scope, found["kind"], found["body"]) + tail

    text = _TABLE.sub(fill, text)
    if module.functions and "module_methods" not in described:
        raise ValueError("mypyc's C has no table of the module's functions")
    return text


def _owner(module: Scope, name: str, rest: str) -> Scope | None:
    """The module or class that owns this table; None if it is not in the source."""
    if rest == "module_methods":
        return module
    owners = [cls for cls in module.classes if name.endswith(f"___{cls}")]
    return module.classes[max(owners, key=len)] if owners else None


def _fill(scope: Scope, kind: str, body: str) -> str:
    if kind == "PyTypeObject":
        return _CLASS.sub(lambda found: _class(found, scope), body)
    if kind == "PyGetSetDef":
        return _GETTER.sub(lambda found: _getter(found, scope), body)
    return _METHOD.sub(lambda found: _method(found, scope), body)


def _class(found: re.Match[str], scope: Scope) -> str:
    written = "" if found[1] == "NULL" else ast.literal_eval(found[1])
    if not written and "__init__" in scope.functions:
        made = signature(scope.name, scope.functions["__init__"], "$self")
        written = made.replace("$self, ", "").replace("$self", "") + _END
    return f".tp_doc = PyDoc_STR({c_string(written + (scope.text or ''))})"


def _getter(found: re.Match[str], scope: Scope) -> str:
    text = scope.text_of(found[2])
    return found[0] if text is None else f"{found[1]}{c_string(text)}, NULL}}"


def _method(found: re.Match[str], scope: Scope) -> str:
    name, doc = found["name"], found["doc"]
    function = scope.functions.get(name)
    if function is None:
        return found[0]
    if doc == "NULL":
        bound = scope.name and "METH_STATIC" not in found["flags"]
        written = signature(name, function, "$self" if bound else "") + _END
    else:
        written = ast.literal_eval(doc)
    described = c_string(written + (ast.get_docstring(function) or ""))
    return found[0][: found.start("doc") - found.start()] + described + ")"


def c_string(text: str) -> str:
    r"""A literal of C with this text, in UTF-8, a line for each of its lines.

    >>> from plugrad.codegen.docstrings import c_string
    >>> print(c_string('a "b"\nc'))
    "a \"b\"\n"
    "c"
    """
    lines = text.encode().splitlines(keepends=True) or [b""]
    return "\n".join(f'"{"".join(map(_c_byte, line))}"' for line in lines)


def _c_byte(byte: int) -> str:
    if byte == 0x0A:
        return "\\n"
    character = chr(byte)
    if character in '\\"?':
        return f"\\{character}"
    return character if 0x20 <= byte < 0x7F else f"\\{byte:03o}"
