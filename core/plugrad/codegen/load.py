"""The generator at load time: a third party's YAML becomes operators in this process."""

from __future__ import annotations

import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from plugrad.codegen.generate import entries_of, generate_family
from plugrad.codegen.groups import group_entries


def load(
    source: str | Path,
    *,
    namespace: str,
    functions: Mapping[str, Any] | types.ModuleType | None = None,
    name: str | None = None,
) -> types.ModuleType:
    """Define the operators of a YAML file or text; returns the module with their functions.

    Args:
        source: path of a YAML file, or its text.
        namespace: the operators' namespace: ``special`` gives ``special::gammaln``.
        functions: what the entries name: prepare, composite and formula functions, as a module
            or a mapping. Expressions also see every operator of plugrad, and those defined here.
        name: name of the family, by default the file's stem.

    Raises:
        EntryError: an entry is wrong; the message names operator and key.

    >>> from plugrad.codegen import load
    >>> ops = load('''
    ... - func: double(Tensor self) -> Tensor
    ...   composite: double
    ...   doc: Twice the input.
    ... ''', namespace="demo_load", functions={"double": lambda x: x + x})
    >>> import plugrad
    >>> ops.double(plugrad.ones(2))
    tensor([2., 2.])
    """
    import yaml

    from plugrad._generated import functions as core_functions

    is_path = isinstance(source, Path) or "\n" not in source
    text = Path(source).read_text() if is_path else str(source)
    family = name or (Path(source).stem if is_path else namespace)
    entries = entries_of(yaml.safe_load(text), family)
    given = dict(vars(functions) if isinstance(functions, types.ModuleType) else functions or {})
    module = types.ModuleType(f"{namespace}.{family}")
    own = types.SimpleNamespace(**{key: value for key, value in given.items() if key[0] != "_"})
    scope = vars(module)
    scope["prepare"] = scope["composite"] = scope["formulas"] = own
    scope["F"] = _Functions(core_functions, scope)
    code = generate_family(family, entries, group_entries(entries), set(vars(own)), namespace)
    code += "\nfrom plugrad._generated.unpack import unpack, unpack_optional\n"
    exec(compile(code, f"<plugrad.codegen: {namespace}.{family}>", "exec"), scope)
    return module


class _Functions:
    """Where an expression's free names are found: plugrad's operators, then the family's own."""

    def __init__(self, core: types.ModuleType, own: dict[str, Any]) -> None:
        self._core = core
        self._own = own

    def __getattr__(self, name: str) -> Any:
        found = self._own.get(name)
        if found is None:
            found = getattr(self._core, name, None)
        if found is None:
            raise AttributeError(f"a derivative uses {name!r}, which is no operator or function")
        return found
