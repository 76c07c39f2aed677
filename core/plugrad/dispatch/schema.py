"""Parses PyTorch's operator schemas, e.g. `add_(Tensor(a!) self, Tensor other) -> Tensor(a!)`.

The code generator imports this module before anything else of plugrad is built, so it uses only
the standard library.

    schema   := [namespace '::'] name ['.' overload] '(' [arguments] ')' '->' returns
    argument := type name ['=' default]        a lone '*' makes the following arguments keyword-only
    type     := base [alias] ['?'] ['[' [size] ']' ['?']]
    alias    := '(' set ['!'] ['->' set] ')'   with set := '*' or name {'|' name}
    returns  := type [name] | '(' [type [name] {',' type [name]}] ')'
"""

from __future__ import annotations

import re
from typing import Final


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


BASE_TYPES: Final = _words(
    "Tensor Scalar int float bool str ScalarType Device DeviceIndex Layout MemoryFormat Generator"
    " Dimname Storage Stream QScheme"
)

# Shapes are always concrete here, so PyTorch's symbolic types mean the plain ones.
_SYNONYMS: Final = {"SymInt": "int", "SymBool": "bool", "SymFloat": "float"}

_QUOTED_TYPES: Final = ("str", "Device")

_INT_NAMES: Final = ("Mean", "Sum")
_FLOAT_NAMES: Final = ("inf", "nan")
_SCALAR_TYPE_NAMES: Final = _words(
    "bool uint8 int8 int16 short int32 int int64 long float16 half bfloat16 float32 float float64"
    " double complex64 cfloat complex128 cdouble uint16 uint32 uint64 float8_e4m3fn float8_e5m2"
)
_LAYOUT_NAMES: Final = ("strided", "sparse_coo", "sparse_csr")
_MEMORY_FORMAT_NAMES: Final = _words(
    "contiguous_format preserve_format channels_last channels_last_3d"
)

_EXPECTED_DEFAULT: Final = {
    "int": "an int, Mean or Sum",
    "DeviceIndex": "an int",
    "float": "a float",
    "Scalar": "a number",
    "bool": "True or False",
    "str": "a string in quotes",
    "Device": "a string in quotes",
    "ScalarType": "the name of a dtype",
    "Layout": "the name of a layout",
    "MemoryFormat": "the name of a memory format",
}

# `re` compiles and keeps the patterns at the first use: an import of plugrad parses no schema.
_TOKEN: Final = (
    r"(?P<punct>->|::|[()\[\],=?!|*.])"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<number>[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<minus>-)"
    r"|(?P<string>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")"
)
_ESCAPE: Final = r"\\(.)"
_ESCAPED: Final = {"n": "\n", "t": "\t", "r": "\r"}


class SchemaError(ValueError):
    """A schema is not valid: the message shows it with a caret under `column`, counted from 1."""

    def __init__(self, text: str, position: int, problem: str) -> None:
        shown = re.sub(r"\s", " ", text)
        super().__init__(f"\n  {shown}\n  {' ' * position}^\ncolumn {position + 1}: {problem}")
        self.column: Final = position + 1


class _Canonical:
    """Base of the parts of a schema: equal if of one class and with one canonical text."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}('{self}')"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))


class Alias(_Canonical):
    """The alias sets of a tensor before and after the call, and whether the call writes to it."""

    def __init__(self, before: tuple[str, ...], is_write: bool, after: tuple[str, ...]) -> None:
        self.before: Final = before
        self.is_write: Final = is_write
        self.after: Final = after

    def __str__(self) -> str:
        written = "!" if self.is_write else ""
        arrow = f" -> {'|'.join(self.after)}" if self.after else ""
        return f"({'|'.join(self.before)}{written}{arrow})"


class SchemaType(_Canonical):
    """The type of an argument or a return.

    `int[2]?` is an optional list of two ints, `Tensor?[]` a list of optional tensors.
    """

    def __init__(
        self,
        base: str,
        optional: bool = False,
        is_list: bool = False,
        list_size: int | None = None,
        element_optional: bool = False,
        alias: Alias | None = None,
    ) -> None:
        self.base: Final = base
        self.optional: Final = optional
        self.is_list: Final = is_list
        self.list_size: Final = list_size
        self.element_optional: Final = element_optional
        self.alias: Final = alias

    def __str__(self) -> str:
        text = self.base if self.alias is None else f"{self.base}{self.alias}"
        if self.element_optional:
            text += "?"
        if self.is_list:
            text += "[]" if self.list_size is None else f"[{self.list_size}]"
        if self.optional:
            text += "?"
        return text


class Argument(_Canonical):
    """One parameter.

    `default` is a Python value: a list is a tuple, a named constant (`Mean`, `strided`) a str.
    A list of fixed size may have one value for all its elements, as in `int[2] stride=1`.
    """

    def __init__(
        self, name: str, type: SchemaType, default: object, has_default: bool, kwarg_only: bool
    ) -> None:
        self.name: Final = name
        self.type: Final = type
        self.default: Final = default
        self.has_default: Final = has_default
        self.kwarg_only: Final = kwarg_only

    def __str__(self) -> str:
        if not self.has_default:
            return f"{self.type} {self.name}"
        return f"{self.type} {self.name}={_format_default(self.default, self.type.base)}"

    def __repr__(self) -> str:
        return f"Argument('{'*, ' if self.kwarg_only else ''}{self}')"


class Return(_Canonical):
    """One result, which may have a name: `Tensor values`."""

    def __init__(self, type: SchemaType, name: str | None = None) -> None:
        self.type: Final = type
        self.name: Final = name

    def __str__(self) -> str:
        return str(self.type) if self.name is None else f"{self.type} {self.name}"


class FunctionSchema(_Canonical):
    """An operator's signature. Its `str` is the canonical text, which parses to an equal schema.

    Attributes:
        positional: how many arguments may be given by position; they come first.
        takes_all: whether the only one of these is a list of tensors, which may be passed one by
            one.
    """

    def __init__(
        self,
        namespace: str | None,
        name: str,
        overload: str,
        arguments: tuple[Argument, ...],
        returns: tuple[Return, ...],
    ) -> None:
        self.namespace: Final = namespace
        self.name: Final = name
        self.overload: Final = overload
        self.arguments: Final = arguments
        self.returns: Final = returns
        self.positional: Final = len([one for one in arguments if not one.kwarg_only])
        first = arguments[0].type if self.positional == 1 else None
        self.takes_all: Final = first is not None and first.base == "Tensor" and first.is_list

    @property
    def full_name(self) -> str:
        """`name.overload`, or `name` alone when the overload has no name."""
        return f"{self.name}.{self.overload}" if self.overload else self.name

    @property
    def is_inplace(self) -> bool:
        """Named as in-place (`add_`) and writing to its first argument."""
        if not self.name.endswith("_") or self.name.endswith("__") or not self.arguments:
            return False
        alias = self.arguments[0].type.alias
        return alias is not None and alias.is_write

    @property
    def is_view(self) -> bool:
        """A result shares memory with an argument that the call does not write to."""
        for returned in self.returns:
            alias = returned.type.alias
            if alias is not None and not alias.is_write:
                return True
        return False

    @property
    def mutates(self) -> bool:
        """The call writes to at least one of its arguments."""
        for argument in self.arguments:
            alias = argument.type.alias
            if alias is not None and alias.is_write:
                return True
        return False

    def __str__(self) -> str:
        prefix = "" if self.namespace is None else f"{self.namespace}::"
        parts: list[str] = []
        star_written = False
        for argument in self.arguments:
            if argument.kwarg_only and not star_written:
                parts.append("*")
                star_written = True
            parts.append(str(argument))
        returns = ", ".join([str(returned) for returned in self.returns])
        if len(self.returns) != 1 or self.returns[0].name is not None:
            returns = f"({returns})"
        return f"{prefix}{self.full_name}({', '.join(parts)}) -> {returns}"


def parse_schema(text: str) -> FunctionSchema:
    """Reads one operator schema; raises `SchemaError`, which points at the offending column.

    >>> from plugrad.dispatch import parse_schema
    >>> schema = parse_schema("sum.dim(Tensor self, int[1]? dim, *, bool keepdim) -> Tensor")
    >>> schema.full_name, [argument.name for argument in schema.arguments]
    ('sum.dim', ['self', 'dim', 'keepdim'])
    """
    return _Parser(text).schema()


def _format_default(value: object, base: str) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join([_format_default(item, base) for item in value])}]"
    if isinstance(value, str) and base in _QUOTED_TYPES:
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        escaped = escaped.replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r")
        return f'"{escaped}"'
    return str(value)


def _quote_token(token: _Token) -> str:
    return "the end" if token.kind == "end" else f"'{token.text}'"


def _nearest(word: str, valid: tuple[str, ...]) -> str:
    """A closing clause for an error: the nearest valid word, or all of them when none is near."""
    import difflib  # only errors need it, and every import of plugrad would pay for it

    close = difflib.get_close_matches(word, valid, n=1)
    if not close:
        # Names that differ in case only ("tensor") can be too far apart for difflib.
        close = [name for name in valid if name.lower() == word.lower()]
    return f"did you mean '{close[0]}'?" if close else f"valid are {', '.join(valid)}"


class _Token:
    def __init__(self, kind: str, text: str, position: int) -> None:
        self.kind: Final = kind
        self.text: Final = text
        self.position: Final = position


class _Parser:
    def __init__(self, text: str) -> None:
        self.text: Final = text
        self.tokens: Final = self._tokenize()
        self.next_index = 0

    def _tokenize(self) -> list[_Token]:
        tokens: list[_Token] = []
        pattern = re.compile(_TOKEN)
        position = 0
        while position < len(self.text):
            if self.text[position].isspace():
                position += 1
                continue
            match = pattern.match(self.text, position)
            if match is None:
                character = self.text[position]
                if character in "'\"":
                    raise SchemaError(
                        self.text, position, f"expected a closing {character}, got the end"
                    )
                raise SchemaError(self.text, position, f"unexpected character {character!r}")
            kind = match.lastgroup
            assert kind is not None
            tokens.append(_Token(kind, match.group(), position))
            position = match.end()
        tokens.append(_Token("end", "", len(self.text)))
        return tokens

    def _peek(self) -> _Token:
        return self.tokens[self.next_index]

    def _take(self) -> _Token:
        token = self.tokens[self.next_index]
        if token.kind != "end":
            self.next_index += 1
        return token

    def _fail(self, token: _Token, problem: str) -> SchemaError:
        return SchemaError(self.text, token.position, problem)

    def _unexpected(self, expected: str) -> SchemaError:
        token = self._peek()
        return self._fail(token, f"expected {expected}, got {_quote_token(token)}")

    def _accept(self, text: str) -> bool:
        token = self._peek()
        if token.kind == "punct" and token.text == text:
            self.next_index += 1
            return True
        return False

    def _expect(self, text: str, where: str = "") -> None:
        if not self._accept(text):
            raise self._unexpected(f"'{text}'{where}")

    def _name(self, what: str) -> _Token:
        if self._peek().kind != "name":
            raise self._unexpected(what)
        return self._take()

    def schema(self) -> FunctionSchema:
        name = self._name("an operator name").text
        namespace: str | None = None
        if self._accept("::"):
            namespace = name
            name = self._name("an operator name after '::'").text
        overload = ""
        if self._accept("."):
            token = self._name("an overload name after '.'")
            overload = token.text
            if overload == "default":
                raise self._fail(token, "'default' means the overload without a name")
        self._expect("(", " and the arguments")
        arguments = self._arguments()
        self._expect("->", " and the returns")
        returns = self._returns(arguments)
        if self._peek().kind != "end":
            raise self._unexpected("the end of the schema")
        return FunctionSchema(namespace, name, overload, arguments, returns)

    def _arguments(self) -> tuple[Argument, ...]:
        arguments: list[Argument] = []
        seen: set[str] = set()
        star: _Token | None = None
        if self._accept(")"):
            return ()
        while True:
            token = self._peek()
            if self._accept("*"):
                if star is not None:
                    raise self._fail(token, "expected an argument, got a second '*'")
                star = token
                if not self._accept(","):
                    raise self._unexpected("',' and a keyword-only argument after '*'")
                continue
            arguments.append(self._argument(seen, star is not None))
            if self._accept(")"):
                return tuple(arguments)
            if not self._accept(","):
                raise self._unexpected(f"',' or ')' after argument '{arguments[-1].name}'")

    def _argument(self, seen: set[str], kwarg_only: bool) -> Argument:
        type = self._type()
        token = self._name(f"an argument name after type '{type}'")
        if token.text in seen:
            raise self._fail(token, f"expected a new argument name, got '{token.text}' again")
        seen.add(token.text)
        if not self._accept("="):
            return Argument(token.text, type, None, False, kwarg_only)
        return Argument(token.text, type, self._default(type), True, kwarg_only)

    def _returns(self, arguments: tuple[Argument, ...]) -> tuple[Return, ...]:
        if not self._accept("("):
            type = self._returned_type(arguments)
            single_name = self._take().text if self._peek().kind == "name" else None
            return (Return(type, single_name),)
        returns: list[Return] = []
        seen: set[str] = set()
        if self._accept(")"):
            return ()
        while True:
            type = self._returned_type(arguments)
            name: str | None = None
            if self._peek().kind == "name":
                token = self._take()
                name = token.text
                if name in seen:
                    raise self._fail(token, f"expected a new return name, got '{name}' again")
                seen.add(name)
            returns.append(Return(type, name))
            if self._accept(")"):
                return tuple(returns)
            if not self._accept(","):
                raise self._unexpected(f"',' or ')' after return type '{type}'")

    def _returned_type(self, arguments: tuple[Argument, ...]) -> SchemaType:
        first = self._peek()
        type = self._type()
        if type.alias is None:
            return type
        known: set[str] = {"*"}
        for argument in arguments:
            if argument.type.alias is not None:
                known.update(argument.type.alias.before)
        for name in type.alias.before:
            if name not in known:
                raise self._fail(
                    first, f"expected an alias set of an argument, got '{name}' in '{type}'"
                )
        return type

    def _type(self) -> SchemaType:
        token = self._name("a type")
        base = _SYNONYMS.get(token.text, token.text)
        if base not in BASE_TYPES:
            raise self._fail(
                token, f"expected a type, got '{token.text}': {_nearest(token.text, BASE_TYPES)}"
            )
        alias = self._alias(base)
        optional = self._accept("?")
        if not self._accept("["):
            return SchemaType(base, optional=optional, alias=alias)
        size: int | None = None
        if not self._accept("]"):
            number = self._peek()
            if not number.text.isdecimal() or int(number.text) == 0:
                raise self._unexpected("']' or the size of the list")
            size = int(self._take().text)
            self._expect("]", " after the size of the list")
        return SchemaType(base, self._accept("?"), True, size, optional, alias)

    def _alias(self, base: str) -> Alias | None:
        opening = self._peek()
        if not self._accept("("):
            return None
        if base != "Tensor":
            raise self._fail(
                opening, f"expected no alias annotation on '{base}': only Tensors share memory"
            )
        before = self._alias_set()
        is_write = self._accept("!")
        after: tuple[str, ...] = ()
        if self._accept("->"):
            after = self._alias_set()
        self._expect(")", " after the alias annotation")
        return Alias(before, is_write, after)

    def _alias_set(self) -> tuple[str, ...]:
        if self._accept("*"):
            return ("*",)
        names = [self._name("an alias set, such as 'a'").text]
        while self._accept("|"):
            names.append(self._name("an alias set after '|'").text)
        return tuple(names)

    def _default(self, type: SchemaType) -> object:
        token = self._peek()
        if token.kind == "name" and token.text == "None":
            if not type.optional:
                raise self._unexpected(f"a default of type '{type}'")
            self.next_index += 1
            return None
        if not type.is_list:
            return self._scalar_default(type)
        if token.kind == "punct" and token.text == "[":
            return self._list_default(type)
        if type.list_size is None:
            raise self._unexpected(f"a default of type '{type}', in '[' and ']'")
        # A list of fixed size accepts a single value for all of its elements.
        return self._scalar_default(type)

    def _list_default(self, type: SchemaType) -> object:
        self._expect("[")
        items: list[object] = []
        if self._accept("]"):
            return ()
        while True:
            items.append(self._scalar_default(type))
            if self._accept("]"):
                return tuple(items)
            if not self._accept(","):
                raise self._unexpected("',' or ']' in the list")

    def _scalar_default(self, type: SchemaType) -> object:
        base = type.base
        token = self._peek()
        if base not in _EXPECTED_DEFAULT:
            raise self._unexpected(f"None, the only default of type '{type}'")
        value: object = None
        if token.kind == "string" and base in _QUOTED_TYPES:
            value = re.sub(
                _ESCAPE, lambda found: _ESCAPED.get(found[1], found[1]), token.text[1:-1]
            )
        elif token.kind == "number":
            value = _number(token.text, base)
        elif token.kind == "minus" and base in ("float", "Scalar"):
            self.next_index += 1
            if self._peek().text != "inf":
                raise self._unexpected("a number or inf after '-'")
            value = float("-inf")
        elif token.kind == "name":
            value = self._named_default(token.text, base)
        if value is None:
            raise self._unexpected(f"a default of type '{type}' ({_EXPECTED_DEFAULT[base]})")
        self.next_index += 1
        return value

    def _named_default(self, name: str, base: str) -> object:
        if name in ("True", "False"):
            return name == "True" if base in ("bool", "Scalar") else None
        if base == "float" or base == "Scalar":
            return float(name) if name in _FLOAT_NAMES else None
        if base == "int":
            return name if name in _INT_NAMES else None
        valid = _constant_names(base)
        if valid and name not in valid:
            expected = _EXPECTED_DEFAULT[base]
            raise self._unexpected(f"{expected} ({_nearest(name, valid)})")
        return name if valid else None


def _constant_names(base: str) -> tuple[str, ...]:
    if base == "ScalarType":
        return _SCALAR_TYPE_NAMES
    if base == "Layout":
        return _LAYOUT_NAMES
    return _MEMORY_FORMAT_NAMES if base == "MemoryFormat" else ()


def _number(text: str, base: str) -> object:
    """The value of a number literal for a type, or None if that type takes no such number."""
    is_integer = text.lstrip("+-").isdecimal()
    if base == "float":
        return float(text)
    if base == "Scalar":
        return int(text) if is_integer else float(text)
    if base in ("int", "DeviceIndex"):
        return int(text) if is_integer else None
    return None
